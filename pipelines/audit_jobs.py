"""The jobs of the books: from audit reports to accounts, losses and incidents."""

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
    CONSUMER_EVENTS,
    PRODUCER_EVENTS,
)
from pipelines.gold.coverage import cover, hours_of_reading
from pipelines.gold.delivery_ledger import balance
from pipelines.gold.ledger_touched import concerned_buckets as concerned_accounts
from pipelines.gold.loss_events import concerned_buckets as concerned_losses
from pipelines.gold.loss_events import explain_losses
from pipelines.gold.loss_incidents import gather_incidents
from pipelines.gold.offset_accounts import account_offsets, hours_of_answers
from pipelines.gold.producer_reliability import hours_with_news, join_evidence
from pipelines.gold.verdict_changes import note_changes
from pipelines.job import Diff, Fold, Job, everything
from pipelines.silver import audit_parts
from pipelines.silver.audit_blocks import buckets_with_news, fold_parts

BOOKS: tuple[Job, ...] = (
    audit_parts.JOB,
    Fold((AUDIT_PARTS,), AUDIT_BLOCKS, buckets_with_news, fold_parts),
    Fold(
        (AUDIT_BLOCKS, AUDIT_PARTS, CLUSTER_STATES, GROUP_OFFSETS, CLUSTER_CONFIGS),
        DELIVERY_LEDGER,
        concerned_accounts,
        balance,
    ),
    Fold(
        (
            *(DELIVERY_LEDGER, PRODUCER_EVENTS, CONSUMER_EVENTS, BROKER_EVENTS),
            *(CLIENT_CONFIGS, CLUSTER_STATES),
        ),
        LOSS_EVENTS,
        concerned_losses,
        explain_losses,
    ),
    Fold((LOSS_EVENTS,), LOSS_INCIDENTS, everything, gather_incidents),
    Diff(LOSS_EVENTS, VERDICT_CHANGES, note_changes),
    Fold(
        (DELIVERY_LEDGER, PRODUCER_EVENTS, CLIENT_METRICS, BROKER_METRICS),
        PRODUCER_RELIABILITY,
        hours_with_news,
        join_evidence,
    ),
    Fold(
        (CLUSTER_STATES, GROUP_OFFSETS, AUDIT_PARTS),
        OFFSET_ACCOUNTS,
        hours_of_answers,
        account_offsets,
    ),
    Fold(
        (AUDIT_REPORTS, METRIC_SAMPLES, LOG_RECORDS, CLUSTER_STATES),
        COVERAGE,
        hours_of_reading,
        cover,
    ),
)
