"""The jobs of the audit: from reports to accounts, losses and incidents."""

from __future__ import annotations

from acktrail.contracts.bronze import (
    AUDIT_REPORTS,
    CLUSTER_CONFIGS,
    CLUSTER_STATES,
    GROUP_OFFSETS,
    LOG_RECORDS,
    METRIC_SAMPLES,
)
from acktrail.contracts.gold import (
    DELIVERY_LEDGER,
    LOSS_EVENTS,
    LOSS_INCIDENTS,
    OFFSET_ACCOUNTS,
    PRODUCER_RELIABILITY,
    VERDICT_CHANGES,
)
from acktrail.contracts.runs import COVERAGE
from acktrail.contracts.silver import (
    AUDIT_BLOCKS,
    AUDIT_PARTS,
    BROKER_EVENTS,
    BROKER_METRICS,
    CLIENT_CONFIGS,
    CLIENT_METRICS,
    CLIENT_SIGHTINGS,
    CONSUMER_EVENTS,
    PRODUCER_EVENTS,
)
from pipelines.gold import offset_accounts, producer_reliability
from pipelines.gold.coverage import cover, hours_of_reading, rows_of_days
from pipelines.gold.delivery_ledger import balance
from pipelines.gold.ledger_needed import needed_evidence, sums_of_all_time
from pipelines.gold.ledger_touched import touched_accounts
from pipelines.gold.loss_events import (
    explain_losses,
    facts_near,
    settings_of_losers,
    touched_losses,
)
from pipelines.gold.loss_incidents import gather_incidents
from pipelines.gold.offset_accounts import account_offsets, hours_of_answers
from pipelines.gold.producer_reliability import hours_with_news, join_evidence
from pipelines.gold.verdict_changes import note_changes
from pipelines.job import Diff, Fold, Job, everything
from pipelines.silver import audit_parts
from pipelines.silver.audit_blocks import buckets_with_news, fold_parts, parts_of_buckets

AUDIT_JOBS: tuple[Job, ...] = (
    audit_parts.JOB,
    Fold((AUDIT_PARTS,), AUDIT_BLOCKS, buckets_with_news, fold_parts, parts_of_buckets),
    Fold(
        (
            *(AUDIT_BLOCKS, AUDIT_PARTS, CLIENT_SIGHTINGS),
            *(CLUSTER_STATES, GROUP_OFFSETS, CLUSTER_CONFIGS),
        ),
        DELIVERY_LEDGER,
        touched_accounts,
        balance,
        needed_evidence,
        sums_of_all_time,
    ),
    Fold(
        (
            *(DELIVERY_LEDGER, PRODUCER_EVENTS, CONSUMER_EVENTS, BROKER_EVENTS),
            *(CLIENT_CONFIGS, CLUSTER_STATES, CLUSTER_CONFIGS),
        ),
        LOSS_EVENTS,
        touched_losses,
        explain_losses,
        facts_near,
        settings_of_losers,
    ),
    Fold((LOSS_EVENTS,), LOSS_INCIDENTS, everything, gather_incidents),
    Diff(LOSS_EVENTS, VERDICT_CHANGES, note_changes),
    Fold(
        (DELIVERY_LEDGER, PRODUCER_EVENTS, CLIENT_METRICS, BROKER_METRICS),
        PRODUCER_RELIABILITY,
        hours_with_news,
        join_evidence,
        producer_reliability.rows_of_hours,
    ),
    Fold(
        (CLUSTER_STATES, GROUP_OFFSETS, AUDIT_PARTS),
        OFFSET_ACCOUNTS,
        hours_of_answers,
        account_offsets,
        offset_accounts.rows_of_hours,
    ),
    Fold(
        (AUDIT_REPORTS, METRIC_SAMPLES, LOG_RECORDS, CLUSTER_STATES),
        COVERAGE,
        hours_of_reading,
        cover,
        rows_of_days,
    ),
)
