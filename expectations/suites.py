"""Every suite, as a list you can read."""

from __future__ import annotations

from acktrail.contracts.gold import (
    DELIVERY_LEDGER,
    LOSS_EVENTS,
    LOSS_INCIDENTS,
    OFFSET_ACCOUNTS,
    PRODUCER_RELIABILITY,
    RETRY_BUDGETS,
    VERDICT_CHANGES,
)
from acktrail.contracts.runs import COVERAGE, RUNS, SOURCE_STATES
from acktrail.contracts.silver import BROKER_METRICS, CLIENTS, PRODUCER_EVENTS, UNREAD_RECORDS
from expectations import views
from expectations.domain.broker_requests import (
    ExpectNoFailedFetchRequests,
    ExpectNoFailedProduceRequests,
)
from expectations.domain.brokers import (
    ExpectIsrStable,
    ExpectNoPartitionOffline,
    ExpectPartitionsAboveMinIsr,
    ExpectPartitionsReplicated,
)
from expectations.domain.clients import ExpectClientsMatchedAcrossSources
from expectations.domain.counts import (
    ExpectEveryRowAccountedFor,
    ExpectNothingUnreadableDropped,
)
from expectations.domain.evidence import (
    ExpectClocksWithinBound,
    ExpectEvidenceCompleteAndFresh,
    ExpectKnownLogLinesParsed,
    ExpectMetricsOfEverySource,
)
from expectations.domain.failed_requests import ExpectFailedProduceRequestsExplained
from expectations.domain.final_errors import ExpectNoNonRetriableError
from expectations.domain.ledger import (
    ExpectLedgerBalances,
    ExpectNoDuplicateFromIdempotentProducer,
    ExpectOrderWherePromised,
    ExpectRedeliveriesWithinBounds,
)
from expectations.domain.losses import (
    ExpectNoLossAfterAck,
    ExpectNoMessageLost,
    ExpectNoMessageRejected,
    ExpectNothingSkippedOrExpired,
    ExpectNoUnaccountedMessage,
)
from expectations.domain.rates import (
    ExpectErrorRateWithinBounds,
    ExpectRetryRateWithinBounds,
)
from expectations.domain.retries import ExpectRetryBudgetLeft
from expectations.domain.sources import ExpectConfiguredInputsFound, ExpectEverySourceUp
from expectations.suite import Suite, fail, warn

SUITES: tuple[Suite, ...] = (
    Suite(
        RETRY_BUDGETS,
        views.retry_budgets,
        needs="logs",
        checks=(
            fail(
                ExpectRetryBudgetLeft(),
                "A producer is about to give up on messages that can still be saved.",
            ),
        ),
    ),
    Suite(
        PRODUCER_EVENTS,
        views.producer_errors,
        needs="logs",
        checks=(
            fail(
                ExpectNoNonRetriableError(),
                "A send failed for good, and will fail again until something is changed.",
            ),
        ),
    ),
    Suite(
        LOSS_INCIDENTS,
        views.loss_incidents,
        needs="audits",
        checks=(
            fail(
                ExpectNoLossAfterAck(),
                "Acknowledged messages are gone; `acktrail explain` shows why.",
            ),
            fail(
                ExpectNoUnaccountedMessage(),
                "Messages were sent, and nothing shows what became of them.",
            ),
            fail(
                ExpectNoMessageLost(),
                "Messages were lost before they were acknowledged.",
            ),
            fail(
                ExpectNothingSkippedOrExpired(),
                "A consumer group will never see messages that were in the log.",
            ),
            warn(
                ExpectNoMessageRejected(),
                "Sends were refused for good: their applications must act.",
            ),
        ),
    ),
    Suite(
        DELIVERY_LEDGER,
        views.delivery_ledger,
        needs="audits",
        checks=(
            fail(
                ExpectLedgerBalances(),
                "The accounts have a residual: a verdict is wrong, or evidence is damaged.",
            ),
            fail(
                ExpectNoDuplicateFromIdempotentProducer(),
                "A producer that promises no duplicates has written some.",
            ),
            fail(
                ExpectOrderWherePromised(),
                "Messages are out of order where the producer's settings promise order.",
            ),
            warn(
                ExpectRedeliveriesWithinBounds(),
                "A group reads more records again than a restart explains.",
            ),
        ),
    ),
    Suite(LOSS_EVENTS, views.loss_events, checks=(), needs="audits"),
    Suite(VERDICT_CHANGES, views.verdict_changes, checks=(), needs="audits"),
    Suite(OFFSET_ACCOUNTS, views.offset_accounts, checks=(), needs="cluster"),
    Suite(
        PRODUCER_RELIABILITY,
        views.producer_reliability,
        needs="metrics",
        checks=(
            fail(
                ExpectErrorRateWithinBounds(),
                "Sends fail for good more often than is allowed.",
            ),
            warn(
                ExpectRetryRateWithinBounds(),
                "A producer retries more than is allowed: look before it runs out of retries.",
            ),
            warn(
                ExpectFailedProduceRequestsExplained(),
                "Brokers fail produce requests that no client reports.",
            ),
        ),
    ),
    Suite(
        BROKER_METRICS,
        views.broker_metrics,
        needs="metrics",
        checks=(
            fail(
                ExpectNoPartitionOffline(),
                "Partitions have no leader: nobody can write to or read from them.",
            ),
            fail(
                ExpectNoFailedProduceRequests(),
                "Brokers fail produce requests.",
            ),
            fail(
                ExpectNoFailedFetchRequests(),
                "Brokers fail fetch requests.",
            ),
            warn(
                ExpectPartitionsAboveMinIsr(),
                "Partitions have too few replicas in sync: sends with acks=all are refused.",
            ),
            warn(
                ExpectPartitionsReplicated(),
                "Partitions lack replicas: the next broker that stops may cost messages.",
            ),
            warn(
                ExpectIsrStable(),
                "Replicas fall out of sync again and again.",
            ),
        ),
    ),
    Suite(
        COVERAGE,
        views.coverage_and_states,
        needs="evidence",
        checks=(
            fail(
                ExpectEvidenceCompleteAndFresh(),
                "Evidence is missing: a loss that it would show is not reported.",
            ),
            warn(
                ExpectMetricsOfEverySource(),
                "Metrics are missing: do not trust rates and record counts.",
            ),
            warn(
                ExpectClocksWithinBound(),
                "A clock is ahead: do not trust the order of events around it.",
            ),
        ),
    ),
    Suite(
        SOURCE_STATES,
        views.source_states,
        needs="evidence",
        checks=(
            fail(
                ExpectEverySourceUp(),
                "A source is down or no agent reads it: its evidence is missing.",
            ),
            warn(
                ExpectConfiguredInputsFound(),
                "Files or topics in the settings of a source are not found.",
            ),
        ),
    ),
    Suite(
        RUNS,
        views.runs,
        needs="evidence",
        checks=(
            fail(
                ExpectEveryRowAccountedFor(),
                "A job lost rows: its answers are incomplete.",
            ),
            warn(
                ExpectNothingUnreadableDropped(),
                "Evidence was collected that a job could not read.",
            ),
        ),
    ),
    Suite(
        UNREAD_RECORDS,
        views.unread_records,
        needs="logs",
        checks=(
            warn(
                ExpectKnownLogLinesParsed(),
                "Log records that look like evidence could not be read.",
            ),
        ),
    ),
    Suite(
        CLIENTS,
        views.clients,
        needs="logs",
        checks=(
            warn(
                ExpectClientsMatchedAcrossSources(),
                "Logs, metrics and audits of one client are not joined: its host names differ.",
            ),
        ),
    ),
)
