"""Every domain expectation: a table of named cases over small frames."""

from __future__ import annotations

import uuid

import pandas as pd
import pytest
from gold_rows import NOW, ago, row

from acktrail.contracts.arrow import rows
from acktrail.contracts.gold import DELIVERY_LEDGER, LOSS_INCIDENTS, PRODUCER_RELIABILITY
from acktrail.contracts.runs import COVERAGE, RUNS
from acktrail.contracts.silver import CLIENTS, PRODUCER_EVENTS, UNREAD_RECORDS
from acktrail.contracts.vocabulary import Outcome, State
from expectations.domain import (
    clients,
    counts,
    evidence,
    failed_requests,
    final_errors,
    ledger,
    losses,
    rates,
)

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
    "balanced": (ledger.ExpectLedgerBalances, [{"residual": 0}], {}, []),
    "too few": (
        ledger.ExpectLedgerBalances,
        [{"residual": 2}],
        {},
        ["books_do_not_balance:residual"],
    ),
    "too many": (
        ledger.ExpectLedgerBalances,
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
        ledger.ExpectRedeliveriesWithinBounds,
        [{"redelivered": 999}],
        {},
        [],
    ),
    "redeliveries above it together": (
        ledger.ExpectRedeliveriesWithinBounds,
        [{"redelivered": 999, "block": 0}, {"redelivered": 2, "block": 1}],
        {},
        ["redelivered:restart"],
    ),
    "two groups are apart": (
        ledger.ExpectRedeliveriesWithinBounds,
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
RATES = {
    "no errors": (rates.ExpectErrorRateWithinBounds, [{"error_rate_per_s": 0.0}], []),
    "errors": (
        rates.ExpectErrorRateWithinBounds,
        [{"error_rate_per_s": 0.1}],
        ["error_rate_high:c"],
    ),
    "errors of a client and of its topic": (
        rates.ExpectErrorRateWithinBounds,
        [{"error_rate_per_s": 0.1}, {"error_rate_per_s": 0.2, "topic": ""}],
        ["error_rate_high:c"],
    ),
    "errors of a client whose topics have none": (
        rates.ExpectErrorRateWithinBounds,
        [{"error_rate_per_s": 0.0}, {"error_rate_per_s": 0.2, "topic": ""}],
        ["error_rate_high:c"],
    ),
    "errors not measured": (rates.ExpectErrorRateWithinBounds, [{}], ["no_metrics"]),
    "few retries": (rates.ExpectRetryRateWithinBounds, [{"retry_rate_per_s": 0.9}], []),
    "retries": (
        rates.ExpectRetryRateWithinBounds,
        [{"retry_rate_per_s": 1.1}],
        ["retry_rate_high:c"],
    ),
}


@pytest.mark.parametrize("case", RATES)
def test_the_rates(case):
    expectation, records, found = RATES[case]
    hours = [{**HOUR, **r} for r in records]
    assert outcomes(expectation, PRODUCER_RELIABILITY, *hours) == found


NEXT, LATER = {"hour": "2026-01-31T12"}, {"hour": "2026-01-31T13"}
WHOLE = {"client_id": "", "topic": ""}
UNWATCHED = "failed_produce_unexplained:client_not_watched"
NO_TOPICS = "failed_produce_topics_not_exported"


def failed(count, **facts):
    return {"client_id": "", "failed_produce_requests_total": float(count), **facts}


FAILED = {
    # case: records -> findings
    "nothing measured": ([{}], ["no_metrics"]),
    "clients measured, brokers not": ([{"error_rate_per_s": 0.0}], ["no_broker_metrics"]),
    "a healthy cluster": ([failed(0, **WHOLE), {"sends_total": 9.0}], []),
    "no client at all, nothing failed": ([failed(0, **WHOLE)], []),
    "explained by a log": ([failed(4), {"retry_lines": 2}], []),
    "explained by a metric": ([failed(4), {"retries_total": 2.0}], []),
    "explained by an audit": ([failed(4), {"lost": 2}], []),
    "explained beside the client": ([failed(4, client_id="c", retry_lines=1)], []),
    "the client is there and silent": ([failed(4, client_id="c", sends_total=9.0)], [UNWATCHED]),
    "nobody sends to it": ([failed(4, topic="u"), {"retry_lines": 2}], [UNWATCHED]),
    "a topic's sender names no topic": (
        [failed(4), {"sends_total": 5.0}, {"topic": "", "retries_total": 1.0}],
        [],
    ),
    "another topic's sender names no topic": (
        [failed(4, topic="u"), {"sends_total": 5.0}, {"topic": "", "retries_total": 1.0}],
        [UNWATCHED],
    ),
    "an unnamed client names no topic": (
        [failed(4), {"client_id": "", "topic": "", "failure_lines": 1}],
        [UNWATCHED],
    ),
    "measured in the next hour": ([failed(4, **NEXT), {"retry_lines": 2}], []),
    "two hours later": ([failed(4, **LATER), {"retry_lines": 2}], [UNWATCHED]),
    "in another cluster": ([failed(4, cluster="west"), {"retry_lines": 2}], [UNWATCHED]),
    "the total is that of the topics": (
        [failed(4, **WHOLE), failed(4), {"retry_lines": 2}],
        [],
    ),
    "the total is more": ([failed(9, **WHOLE), failed(4), {"retry_lines": 2}], [NO_TOPICS]),
    "the total was read a little later": (
        [failed(103, **WHOLE), failed(100), {"retry_lines": 2}],
        [],
    ),
    "a total alone, and a client reports errors": (
        [failed(9, **WHOLE), {"retry_lines": 2}],
        [NO_TOPICS],
    ),
    "a total alone, and nobody reports any": ([failed(9, **WHOLE)], [NO_TOPICS]),
}


@pytest.mark.parametrize("case", FAILED)
def test_failed_requests_are_explained_by_the_clients_of_their_topic(case):
    records, found = FAILED[case]
    hours = [{**HOUR, **r} for r in records]
    check = failed_requests.ExpectFailedProduceRequestsExplained
    assert outcomes(check, PRODUCER_RELIABILITY, *hours) == found


def test_a_count_that_stands_beside_two_clients_is_one_count():
    records = [failed(1154, topic="u", client_id=c, sends_total=1.0) for c in ("c", "d")]
    frame = rows(PRODUCER_RELIABILITY, [row(PRODUCER_RELIABILITY, **HOUR | r) for r in records])
    check = failed_requests.ExpectFailedProduceRequestsExplained(as_of=AT)
    (found,) = check.findings(frame.to_pandas())
    assert found.count == 1154
    assert "1,154 produce requests on topic u" in found.because


def test_failed_requests_begin_and_end_when_they_were_counted():
    samples = [(ago(1500), 3.0), (ago(1480), 4.0), (ago(30), 5.0)]
    records = [failed(12, topic="u", client_id=c, sends_total=1.0) for c in ("c", "d")]
    frame = rows(PRODUCER_RELIABILITY, [row(PRODUCER_RELIABILITY, **HOUR | r) for r in records])
    given = frame.to_pandas().assign(failed_samples=[samples, samples])
    check = failed_requests.ExpectFailedProduceRequestsExplained(as_of=NOW.isoformat())
    found = [(f.starts_at, f.ends_at, f.count) for f in check.findings(given)]
    assert found == [(ago(1500), ago(1480), 7), (ago(30), None, 5)]


SEEN = {"source": "app", "hour": "2026-01-31T11", "last_at": ago(60), "first_at": ago(90)}
COMPUTED = {"computed_at": NOW, "read_at": pd.Series([ago(60)], dtype="datetime64[us, UTC]")}
COVERED = {
    "fresh logs": (evidence.ExpectEvidenceCompleteAndFresh, {"kind": "logs"}, []),
    "a gap": (
        evidence.ExpectEvidenceCompleteAndFresh,
        {"kind": "audit", "missing": "reports 3 to 5"},
        ["evidence_missing:audit"],
    ),
    "no audits for two hours": (
        evidence.ExpectEvidenceCompleteAndFresh,
        {"kind": "audit", "last_at": ago(7200)},
        ["evidence_stale:app"],
    ),
    "a log that is read, without lines for two hours": (
        evidence.ExpectEvidenceCompleteAndFresh,
        {"kind": "logs", "last_at": ago(7200)},
        [],
    ),
    "quiet after saying good-bye": (
        evidence.ExpectEvidenceCompleteAndFresh,
        {"kind": "audit", "last_at": ago(7200), "closed": True},
        [],
    ),
    "metrics there": (evidence.ExpectMetricsOfEverySource, {"kind": "metrics"}, []),
    "a target that did not answer": (
        evidence.ExpectMetricsOfEverySource,
        {"kind": "metrics", "missing": "3 scrapes failed: connection refused"},
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
    assert outcomes(expectation, COVERAGE, {**SEEN, **record}, **COMPUTED) == found


def test_a_log_that_nobody_reads_is_stale():
    quiet = {**SEEN, "kind": "logs", "last_at": ago(7200)}
    for read_at in (pd.NaT, ago(7100)):
        read = pd.Series([read_at], dtype="datetime64[us, UTC]")
        found = outcomes(
            evidence.ExpectEvidenceCompleteAndFresh, COVERAGE, quiet, computed_at=NOW, read_at=read
        )
        assert found == ["evidence_stale:app"]


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


def seen(name, host, *kinds):
    return {"client_id": name, "host": host, **{f"in_{kind}": True for kind in kinds}}


BOTH = seen("a", "h1", "logs", "metrics")
APART = [seen("b", "h1", "logs"), seen("b", "10.0.0.1", "metrics")]
UNMATCHED = ["clients_unmatched:names_do_not_agree"]
CLIENTS_SEEN = {
    "no clients": ([], []),
    "logs only": ([seen("a", "h1", "logs")], ["no_metrics"]),
    "metrics only": ([seen("a", "h1", "metrics")], ["no_logs"]),
    "one cluster has one kind": (
        [BOTH, {**seen("b", "h", "logs"), "cluster": "west"}],
        ["no_metrics"],
    ),
    "matched": ([BOTH], []),
    "a client without metrics": ([BOTH, seen("b", "h2", "logs")], []),
    "a client that prints nothing": ([BOTH, seen("b", "h1", "metrics")], []),
    "hosts that do not agree": ([BOTH, *APART], UNMATCHED),
    "few of them": (
        [*(seen(f"{chr(97 + n)}x", "h", "logs", "metrics") for n in range(19)), *APART],
        [],
    ),
    "restarts on new hosts": (
        [seen("a", f"pod-{n}", "logs", *(["metrics"] if n else [])) for n in range(9)],
        [],
    ),
    "restarts under random ids": (
        [BOTH, *(seen(f"app-{uuid.UUID(int=n)}", "h1", "logs") for n in range(9))],
        [],
    ),
    "random ids, matched once": (
        [seen("app-0a1b2c3d", "h1", "logs", "metrics"), seen("app-99aa88bb", "h2", "metrics")],
        [],
    ),
    "random ids on hosts that do not agree": (
        [seen("app-0a1b2c3d", "h1", "logs"), seen("app-99aa88bb", "h2", "metrics")],
        UNMATCHED,
    ),
    "an audit without its host": ([seen("a", "h1", "logs"), seen("a", "", "audits")], UNMATCHED),
    **{
        f"{name} is everybody's": ([seen(name, "h1", "logs"), seen(name, "h2", "metrics")], [])
        for name in ("producer-1", "rdkafka", "console-producer", "perf-producer-client", "sarama")
    },
}


@pytest.mark.parametrize("case", CLIENTS_SEEN)
def test_clients_match_unless_their_hosts_do_not_agree(case):
    records, found = CLIENTS_SEEN[case]
    assert outcomes(clients.ExpectClientsMatchedAcrossSources, CLIENTS, *records) == found


def test_only_errors_that_are_not_retried_are_told():
    check = final_errors.ExpectNoNonRetriableError
    event = {"kind": "send_failed", "error": "TOPIC_AUTHORIZATION_FAILED", "at": ago(5)}
    final = {**event, "retriable": False, "topic": "t"}
    assert outcomes(check, PRODUCER_EVENTS, final, final) == [
        "non_retriable_error:TOPIC_AUTHORIZATION_FAILED"
    ]
    assert outcomes(check, PRODUCER_EVENTS, {**event, "retriable": True}, event) == []
    printed_twice = [{**final, "event_key": key} for key in ("a", "a", "b")]
    frame = rows(PRODUCER_EVENTS, [row(PRODUCER_EVENTS, **r) for r in printed_twice]).to_pandas()
    assert [f.count for f in check(as_of=AT).findings(frame)] == [2]
    assert outcomes(check, PRODUCER_EVENTS, {**final, "at": ago(-5)}) == []


GOES_ON = (
    "retry",
    "split_retry",
    "invalid_metadata",
    "sequence_reset",
    "late_success",
    "reordered",
)


def test_an_error_whose_line_announces_a_retry_is_not_final():
    event = {"error": "OUT_OF_ORDER_SEQUENCE_NUMBER", "at": ago(5), "retriable": False}
    lines = [{**event, "kind": kind} for kind in GOES_ON]
    check = final_errors.ExpectNoNonRetriableError
    assert outcomes(check, PRODUCER_EVENTS, *lines) == []
    given_up = {**event, "kind": "send_failed"}
    assert outcomes(check, PRODUCER_EVENTS, *lines, given_up) == [
        "non_retriable_error:OUT_OF_ORDER_SEQUENCE_NUMBER"
    ]


TOLD = {
    # state, told, events -> said
    ("lost_indeterminate", True, 3): "The application got an error.",
    ("lost_indeterminate", False, 1): "The application got no error.",
    ("lost_unacked", False, 3): "The application got no error for some of them.",
    ("rejected", True, 1): "The application got an error.",
    ("lost_after_ack", False, 1): "",
    ("skipped_by_consumer", False, 1): "",
}


@pytest.mark.parametrize("case", TOLD, ids=str)
def test_whether_the_application_was_told_is_what_the_row_has(case):
    state, told, events = case
    facts = {"state": state, "told": told, "events": events, "topic": "t", "client_ids": ["c"]}
    facts |= {"ids": 5, "because": "5 messages of c to t were lost: acks=0: nobody answered."}
    frame = rows(LOSS_INCIDENTS, [row(LOSS_INCIDENTS, **facts)]).to_pandas()
    (found,) = LOSSES[State(state)](as_of=AT).findings(frame)
    assert found.because.count("The application got") == bool(TOLD[case])
    assert TOLD[case] in found.because
    assert found.because.startswith("5 messages of c on topic t ")
    assert found.because.endswith(" Cause: acks=0: nobody answered.")
    assert found.because.count("5") == 1
