"""Every domain expectation: a table of named cases over small frames."""

from __future__ import annotations

import pytest
from gold_rows import NOW, ago, row

from acktrail.contracts.arrow import rows
from acktrail.contracts.gold import DELIVERY_LEDGER, LOSS_INCIDENTS, PRODUCER_RELIABILITY
from acktrail.contracts.runs import COVERAGE, RUNS
from acktrail.contracts.silver import CLIENTS, PRODUCER_EVENTS, UNREAD_RECORDS
from acktrail.contracts.vocabulary import Outcome, State
from expectations.domain import counts, errors, evidence, ledger, losses, rates

AT = NOW.isoformat()


def outcomes(expectation, table, *records, **more):
    """State and outcome of each finding, as short texts."""
    frame = rows(table, [row(table, **r) for r in records]).to_pandas().assign(**more)
    found = expectation(as_of=AT).findings(frame)
    assert all(f.because and f.starts_at.tzinfo for f in found)
    return [f"{f.state}:{f.cause}" if f.outcome is Outcome.FAIL else f.cause for f in found]


LOSSES = {
    State.LOST_AFTER_ACK: losses.ExpectNoLossAfterAck,
    State.UNACCOUNTED: losses.ExpectNoUnaccountedMessage,
    State.LOST_UNACKED: losses.ExpectNoMessageLost,
    State.LOST_INDETERMINATE: losses.ExpectNoMessageLost,
    State.LOST_IN_CRASH: losses.ExpectNoMessageLost,
    State.SKIPPED_BY_CONSUMER: losses.ExpectNothingSkippedOrExpired,
    State.EXPIRED_BEFORE_READ: losses.ExpectNothingSkippedOrExpired,
    State.REJECTED: losses.ExpectNoMessageRejected,
}


@pytest.mark.parametrize("state", LOSSES)
def test_each_state_of_loss_fails_exactly_one_check(state):
    record = {"state": state.value, "cause": "unclean_election", "started_at": ago(60), "ids": 7}
    for check in set(LOSSES.values()):
        expected = [f"{state}:unclean_election"] if check is LOSSES[state] else []
        assert outcomes(check, LOSS_INCIDENTS, record) == expected


@pytest.mark.parametrize("state", [s for s in State if s not in LOSSES])
def test_other_states_are_no_loss(state):
    for check in set(LOSSES.values()):
        assert outcomes(check, LOSS_INCIDENTS, {"state": state.value}) == []


def test_an_incident_that_begins_after_the_time_asked_about_is_not_told():
    later = {"state": "lost_after_ack", "started_at": ago(-60)}
    assert outcomes(losses.ExpectNoLossAfterAck, LOSS_INCIDENTS, later) == []


BLOCK = {"session": "s", "topic": "t", "client_id": "c"}
LEDGER = {
    # case: expectation, records, promises -> findings
    "balanced": (ledger.ExpectBooksToBalance, [{"residual": 0}], {}, []),
    "too few": (
        ledger.ExpectBooksToBalance,
        [{"residual": 2}],
        {},
        ["books_do_not_balance:residual"],
    ),
    "too many": (
        ledger.ExpectBooksToBalance,
        [{"residual": -1}],
        {},
        ["books_do_not_balance:residual"],
    ),
    "duplicates of an idempotent producer": (
        ledger.ExpectNoDuplicateFromIdempotentProducer,
        [{"duplicates": 3}],
        {"idempotent": [True]},
        ["duplicated:idempotence_broken"],
    ),
    "duplicates of another": (
        ledger.ExpectNoDuplicateFromIdempotentProducer,
        [{"duplicates": 3}],
        {"idempotent": [False]},
        [],
    ),
    "duplicates of who knows": (
        ledger.ExpectNoDuplicateFromIdempotentProducer,
        [{"duplicates": 3}],
        {"idempotent": [None]},
        ["no_settings_idempotent"],
    ),
    "no duplicates of who knows": (
        ledger.ExpectNoDuplicateFromIdempotentProducer,
        [{"duplicates": 0}],
        {"idempotent": [None]},
        [],
    ),
    "one duplicate seen by two groups is one": (
        ledger.ExpectNoDuplicateFromIdempotentProducer,
        [{"duplicates": 1, "group": "a"}, {"duplicates": 1, "group": "b"}],
        {"idempotent": [True, True]},
        ["duplicated:idempotence_broken"],
    ),
    "out of order where promised": (
        ledger.ExpectOrderWherePromised,
        [{"out_of_order": 1}],
        {"ordered": [True]},
        ["out_of_order:order_broken"],
    ),
    "out of order where not": (
        ledger.ExpectOrderWherePromised,
        [{"out_of_order": 1}],
        {"ordered": [False]},
        [],
    ),
    "redeliveries below the bound": (
        ledger.ExpectRestartsToRedeliverFew,
        [{"redelivered": 999}],
        {},
        [],
    ),
    "redeliveries above it together": (
        ledger.ExpectRestartsToRedeliverFew,
        [{"redelivered": 999, "block": 0}, {"redelivered": 2, "block": 1}],
        {},
        ["redelivered:restart"],
    ),
    "two groups are apart": (
        ledger.ExpectRestartsToRedeliverFew,
        [{"redelivered": 999, "group": "a"}, {"redelivered": 2, "group": "b"}],
        {},
        [],
    ),
}


@pytest.mark.parametrize("case", LEDGER)
def test_the_accounts(case):
    expectation, records, promises, found = LEDGER[case]
    blocks = [{**BLOCK, **r} for r in records]
    assert outcomes(expectation, DELIVERY_LEDGER, *blocks, **promises) == found


HOUR = {"client_id": "c", "topic": "t", "hour": "2026-01-31T11"}
BROKER = {"client_id": "", "topic": "t", "hour": "2026-01-31T11"}
RATES = {
    "no errors": (rates.ExpectErrorRateWithinBounds, [{"error_rate_per_s": 0.0}], []),
    "errors": (
        rates.ExpectErrorRateWithinBounds,
        [{"error_rate_per_s": 0.1}],
        ["error_rate_high:c"],
    ),
    "errors not measured": (rates.ExpectErrorRateWithinBounds, [{}], ["no_metrics"]),
    "few retries": (rates.ExpectRetryRateWithinBounds, [{"retry_rate_per_s": 0.9}], []),
    "retries": (
        rates.ExpectRetryRateWithinBounds,
        [{"retry_rate_per_s": 1.1}],
        ["retry_rate_high:c"],
    ),
    "brokers not measured": (rates.ExpectFailedProduceRequestsExplained, [{}], ["no_metrics"]),
    "failed and explained by a log": (
        rates.ExpectFailedProduceRequestsExplained,
        [{**BROKER, "failed_produce_requests_total": 4.0}, {"retry_lines": 2}],
        [],
    ),
    "failed and explained by a metric": (
        rates.ExpectFailedProduceRequestsExplained,
        [{**BROKER, "failed_produce_requests_total": 4.0}, {"retries_total": 2.0}],
        [],
    ),
    "failed in another hour": (
        rates.ExpectFailedProduceRequestsExplained,
        [
            {**BROKER, "failed_produce_requests_total": 4.0},
            {"retry_lines": 2, "hour": "2026-01-31T10"},
        ],
        ["failed_produce_unexplained:no_client_speaks_of_it"],
    ),
    "failed somewhere, and somebody speaks": (
        rates.ExpectFailedProduceRequestsExplained,
        [{**BROKER, "topic": "", "failed_produce_requests_total": 4.0}, {"retry_lines": 2}],
        [],
    ),
}


@pytest.mark.parametrize("case", RATES)
def test_the_rates(case):
    expectation, records, found = RATES[case]
    hours = [{**HOUR, **r} for r in records]
    assert outcomes(expectation, PRODUCER_RELIABILITY, *hours) == found


SEEN = {"source": "app", "hour": "2026-01-31T11", "last_at": ago(60), "first_at": ago(90)}
COVERED = {
    "fresh logs": (evidence.ExpectEvidenceCompleteAndFresh, {"kind": "logs"}, []),
    "a gap": (
        evidence.ExpectEvidenceCompleteAndFresh,
        {"kind": "audit", "missing": "reports 3 to 5"},
        ["evidence_missing:audit"],
    ),
    "quiet for two hours": (
        evidence.ExpectEvidenceCompleteAndFresh,
        {"kind": "logs", "last_at": ago(7200)},
        ["evidence_stale:app"],
    ),
    "quiet after saying good-bye": (
        evidence.ExpectEvidenceCompleteAndFresh,
        {"kind": "audit", "last_at": ago(7200), "closed": True},
        [],
    ),
    "metrics there": (evidence.ExpectMetricsOfEverySource, {"kind": "metrics"}, []),
    "a metric without series": (
        evidence.ExpectMetricsOfEverySource,
        {"kind": "metrics", "missing": "no series of record-error-rate"},
        ["evidence_missing:metrics"],
    ),
    "no metrics at all": (evidence.ExpectMetricsOfEverySource, {"kind": "logs"}, ["no_metrics"]),
    "on time": (evidence.ExpectClocksWithinBound, {"kind": "logs", "last_at": ago(-4)}, []),
    "a clock ahead": (
        evidence.ExpectClocksWithinBound,
        {"kind": "logs", "last_at": ago(-6)},
        ["clock_ahead:app"],
    ),
}


@pytest.mark.parametrize("case", COVERED)
def test_the_evidence(case):
    expectation, record, found = COVERED[case]
    assert outcomes(expectation, COVERAGE, {**SEEN, **record}, computed_at=NOW) == found


DROPPED = {
    # case: shape, in, out, dropped -> vanished, unreadable
    "all written": ("map", 5, 5, {}, False, False),
    "dropped on purpose": ("map", 5, 3, {"nothing_here": "2"}, False, False),
    "dropped as unreadable": ("map", 5, 4, {"unreadable_ids": "1"}, False, True),
    "gone": ("map", 5, 3, {"nothing_here": "1"}, True, False),
    "a fold sums up": ("fold", 5, 1, {}, False, False),
}


@pytest.mark.parametrize("case", DROPPED)
def test_the_counts_of_the_runs(case):
    shape, rows_in, rows_out, dropped, vanished, unreadable = DROPPED[case]
    run = {"job": "j", "shape": shape, "rows_in": rows_in, "rows_out": rows_out}
    run["dropped"] = list(dropped.items())
    found = outcomes(counts.ExpectEveryRowAccountedFor, RUNS, run)
    assert found == (["rows_vanished:j"] if vanished else [])
    found = outcomes(counts.ExpectNothingUnreadableDropped, RUNS, run)
    assert found == (["rows_unreadable:j"] if unreadable else [])


def test_every_known_log_line_is_parsed():
    check = evidence.ExpectKnownLogLinesParsed
    assert outcomes(check, UNREAD_RECORDS) == []
    unread = {"source": "app", "reason": "retry", "text": "Got error", "day": "2026-01-31"}
    assert outcomes(check, UNREAD_RECORDS, unread, unread) == ["log_lines_unread:retry"]


BOTH = {"client_id": "a", "in_logs": True, "in_metrics": True}
ALONE = {"client_id": "b", "in_logs": True}


def test_clients_are_matched_where_there_is_more_than_one_source():
    check = evidence.ExpectClientsMatchedAcrossSources
    assert outcomes(check, CLIENTS) == []
    assert outcomes(check, CLIENTS, ALONE) == ["no_metrics"]
    assert outcomes(check, CLIENTS, {"client_id": "a", "in_metrics": True}) == ["no_logs"]
    assert outcomes(check, CLIENTS, BOTH, {**ALONE, "cluster": "west"}) == ["no_metrics"]
    assert outcomes(check, CLIENTS, BOTH) == []
    assert outcomes(check, CLIENTS, BOTH, ALONE) == ["clients_unmatched:names_do_not_agree"]
    assert outcomes(check, CLIENTS, *[BOTH] * 19, ALONE) == []


def test_only_errors_that_are_not_retried_are_told():
    check = errors.ExpectNoNonRetriableError
    event = {"kind": "send_failure", "error": "TOPIC_AUTHORIZATION_FAILED", "at": ago(5)}
    final = {**event, "retriable": False, "topic": "t"}
    assert outcomes(check, PRODUCER_EVENTS, final, final) == [
        "non_retriable_error:TOPIC_AUTHORIZATION_FAILED"
    ]
    assert outcomes(check, PRODUCER_EVENTS, {**event, "retriable": True}, event) == []
    printed_twice = [{**final, "event_key": key} for key in ("a", "a", "b")]
    frame = rows(PRODUCER_EVENTS, [row(PRODUCER_EVENTS, **r) for r in printed_twice]).to_pandas()
    assert [f.count for f in check(as_of=AT).findings(frame)] == [2]
    assert outcomes(check, PRODUCER_EVENTS, {**final, "at": ago(-5)}) == []
