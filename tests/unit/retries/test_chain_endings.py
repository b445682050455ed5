"""How a chain ended: what proves it, what outweighs what, and what proves nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from acktrail.retries.audited_chains import Audits
from acktrail.retries.budget import budgets_of
from acktrail.retries.error_counter import CounterSample
from acktrail.retries.signs import Sign
from acktrail.retries.state import BudgetState, state_of
from tests.unit.retries.audited import Message, seen, verifiable
from tests.unit.retries.retry_lines import (
    DEFAULTS,
    FIVE,
    MAX,
    NO_TIMEOUT,
    SPENT,
    at,
    counter,
    expiry,
    line,
)


def audited(fate: str, told: float, until: float = 300, partition: int = 3) -> Audits:
    """A message every second; those of the 20 s before noon and of the minute after meet a fate."""
    before = [Message(n, n - 100.0, "acked", n - 99.9) for n in range(80)]
    burning = [
        Message(80 + n, n - 20.0, fate, max(told, n - 20.0 + 119), partition) for n in range(80)
    ]
    return Audits(seen([*before, *burning], until))


ONE = [line(0, MAX - 1, 1), line(0.1, MAX - 2, 2)]
TWO = [*ONE, line(50, MAX - 1, 9), line(50.1, MAX - 2, 10)]
FAILED = Sign("f", "send_failed", at(5), "orders", -1, error="NotEnoughReplicasException")
NEIGHBOUR = [
    replace(s, partition=4, key=f"{s.key}b", at=s.at + timedelta(seconds=0.1)) for s in SPENT
]
NEIGHBOUR_FAILED = replace(FAILED, partition=4)
TOO_LARGE = Sign("big", "send_failed", at(96), "invoices", -1, error="RecordTooLargeException")


def said(second: float, kind: str, detail: str | None = None, origin: str = "app.log") -> Sign:
    """What a client says of itself, not of a batch."""
    return Sign(f"{kind}{second}", kind, at(second), origin=origin, detail=detail)


def lone(second: float, partition: int = 3, error: str = "NotLeaderOrFollowerException") -> Sign:
    """An invalid-metadata line."""
    return Sign(f"im{second}-{partition}", "invalid_metadata", at(second), "orders", partition,
                error=error, origin="app.log")  # fmt: skip


def process(name: str, samples: list[CounterSample]) -> list[CounterSample]:
    return [replace(s, key=f"{name}/{s.key}", series=name) for s in samples]


MOVED = "NOT_LEADER_OR_FOLLOWER"
SPENT_MOVED = [*SPENT[:-1], line(4, 0, 5, error=MOVED)]
STEADY = [line(n, MAX - 1 - n, n + 1) for n in range(11)]
LATE_LOSS = [CounterSample("a", at(-10), at(120.05), 0.0),
             CounterSample("b", at(120.05), at(135), 7.0)]  # fmt: skip
BEGUN_ANEW = [replace(s, total=5.0 if s.at < at(40) else 0.0) for s in counter()]

ENDINGS = {
    # settings, signs, error counter, audits -> how each chain ended
    "no evidence": (DEFAULTS, ONE, [], [], [None]),
    "an expiry line": (DEFAULTS, [*ONE, expiry(119.9, 119.95)], [], [], ["exhausted"]),
    "the same line for each record": (
        DEFAULTS, [*TWO, *(expiry(119.9, 119.95, key=str(n)) for n in range(12))], [], [],
        ["exhausted", None]),
    "an expiry line of another partition": (
        DEFAULTS, [*ONE, expiry(119.9, 119.95, partition=4)], [], [], [None]),
    "an expiry line of a batch created after the first retry": (
        DEFAULTS, [*ONE, expiry(130, 120)], [], [], [None]),
    "the second of two batches expired": (
        DEFAULTS, [*TWO, expiry(169.9, 119.95)], [], [], [None, "exhausted"]),
    "the last attempt failed": (FIVE, [*SPENT, FAILED], [], [], ["exhausted"]),
    "the last attempt failed, in a line for each record": (
        FIVE, [*SPENT, *NEIGHBOUR, *(replace(FAILED, key=f"f{n}", at=at(5 + n / 100))
                                     for n in range(12))],
        [], [], [None, "exhausted"]),
    "the failure of another partition": (
        FIVE, [*SPENT, NEIGHBOUR_FAILED], [], [], [None]),
    "one failure, and two partitions at their end: the nearer one's": (
        FIVE, [*SPENT, *NEIGHBOUR, FAILED], [], [], [None, "exhausted"]),
    "one failure, which names the second of them": (
        FIVE, [*SPENT, *NEIGHBOUR, NEIGHBOUR_FAILED], [], [], [None, "exhausted"]),
    "a failure of each": (
        FIVE, [*SPENT, *NEIGHBOUR, FAILED, NEIGHBOUR_FAILED], [], [], ["exhausted", "exhausted"]),
    "the error failed when the time was over": (
        DEFAULTS, [*ONE, replace(FAILED, at=at(120.1))], [], [], ["exhausted"]),
    "the error failed before the time was over": (
        DEFAULTS, [*ONE, replace(FAILED, at=at(60))], [], [], [None]),
    "another error failed": (
        FIVE, [*SPENT, replace(FAILED, error="RecordTooLargeException")], [], [], [None]),
    "a failure while attempts were left": (FIVE, [*SPENT[:3], FAILED], [], [], [None]),
    "0 left and nothing more": (FIVE, SPENT, [], [], [None]),
    "the producer started its numbers anew when the time was over": (
        DEFAULTS, [*ONE, Sign("r", "sequence_reset", at(121), "orders", 3)], [], [],
        ["exhausted"]),
    "it started them anew for an earlier batch": (
        DEFAULTS, [*ONE, Sign("r", "sequence_reset", at(60), "orders", 3)], [], [], [None]),
    "the counter did not move": (DEFAULTS, ONE, counter(), [], ["recovered"]),
    "the counter moved at the end": (DEFAULTS, ONE, counter(120), [], ["exhausted"]),
    "the counter moved before the end could come": (DEFAULTS, ONE, counter(20), [], [None]),
    "the counter was not seen until the end": (DEFAULTS, ONE, counter(until=80), [], [None]),
    "the counter was not seen for a while": (
        DEFAULTS, ONE, [s for s in counter() if s.at != at(60)], [], [None]),
    "the counter moved right after its end": (DEFAULTS, ONE, LATE_LOSS, [], ["exhausted"]),
    "the counter was seen to the end and not beyond": (
        DEFAULTS, ONE, counter(until=120), [], [None]),
    "the counter was begun anew": (DEFAULTS, ONE, BEGUN_ANEW, [], [None]),
    "the last retry may still wait for its broker": (FIVE, SPENT, counter(until=60), [], [None]),
    "the last retry's time is over": (FIVE, SPENT, counter(), [], ["recovered"]),
    "nobody knows for how long the last retry may wait": (
        NO_TIMEOUT, SPENT, counter(), [], [None]),
    "two processes, and neither's counter moved": (
        DEFAULTS, ONE, [*process("a", counter()), *process("b", counter())], [], ["recovered"]),
    "two processes, and the counter of one moved": (
        DEFAULTS, ONE, [*process("a", counter()), *process("b", counter(120))], [], [None]),
    "two processes, and one was not seen until the end": (
        DEFAULTS, ONE, [*process("a", counter()), *process("b", counter(until=80))], [], [None]),
    "two processes, and both counters moved": (
        DEFAULTS, ONE, [*process("a", counter(120)), *process("b", counter(120))], [],
        ["exhausted"]),
    "the counter did not move, but batches were dropped after a fatal error": (
        DEFAULTS, [*ONE, said(5, "send_failed", "fatal_abort")], counter(), [],
        ["ended_unknown"]),
    "the counter did not move, but the client was closed by force": (
        DEFAULTS, [*ONE, said(5, "dropped_at_close", "force_close")], counter(), [],
        ["ended_unknown"]),
    "the counter did not move, but the sequence was broken": (
        DEFAULTS, [*ONE, said(5, "fatal_sequence")], counter(), [], [None]),
    "the counter did not move, but the transaction was given up": (
        DEFAULTS, [*ONE, said(5, "send_failed", "transaction_error_state")], counter(), [],
        [None]),
    "the client was closed by force when all was over": (
        DEFAULTS, [*ONE, said(150, "dropped_at_close")], counter(), [], ["recovered"]),
    "a process whose log was written beside was closed by force": (
        DEFAULTS, [*ONE, line(-5, MAX - 1, 7, partition=9, origin="b.log"),
                   said(5, "dropped_at_close", origin="b.log")],
        counter(), [], ["ended_unknown", "recovered"]),
    "the log was rotated, then the client was closed by force": (
        DEFAULTS, [*ONE, said(5, "dropped_at_close", origin="app.log.2")], counter(), [], [None]),
    "closed by force while its retry waited for its backoff": (
        DEFAULTS, [*STEADY, said(10.4, "dropped_at_close")], counter(), [], ["exhausted"]),
    "closed by force when its retry may have been sent": (
        DEFAULTS, [*STEADY, said(10.9, "dropped_at_close")], counter(), [], ["ended_unknown"]),
    "closed by force, and it went on: another instance was": (
        DEFAULTS, [*STEADY, said(5.4, "dropped_at_close")], [], [], [None]),
    "closed by force, and the audit has every record acknowledged": (
        DEFAULTS, [*ONE, said(5, "dropped_at_close")], [], audited("acked", 40), ["recovered"]),
    "the counter moved within a wide end, but attempts were left": (
        FIVE, SPENT[:1], counter(60), [], [None]),
    "the counter moved within a wide end, and another topic's failure may be it": (
        FIVE, [*SPENT[:1], TOO_LARGE], counter(96), [], [None]),
    "the counter moved when the time was over, and another topic's failure may be it": (
        DEFAULTS, [*ONE, replace(TOO_LARGE, at=at(118))], counter(118), [], [None]),
    "an answer was not retried after the last attempt": (
        FIVE, [*SPENT, lone(6)], [], [], ["exhausted"]),
    "the same of another partition": (FIVE, [*SPENT, lone(6, partition=4)], [], [], [None]),
    "an answer was not retried when the time was over": (
        DEFAULTS, [*ONE, lone(119)], [], [], ["exhausted"]),
    "an answer came late, when its batch had expired": (
        DEFAULTS, [*ONE, lone(140)], [], [], ["exhausted"]),
    "an answer was not retried while there was time": (
        DEFAULTS, [*ONE, lone(60)], [], [], [None]),
    "an answer was not retried, and two batches may be it": (
        FIVE, [*SPENT, *(replace(s, key=f"{s.key}b", at=s.at + timedelta(seconds=0.2),
                                 correlation_id=s.correlation_id + 10) for s in SPENT), lone(6)],
        [], [], [None, None]),
    "the answer of a batch that is known to have expired": (
        DEFAULTS, [*TWO, expiry(119.9, 119.95), lone(121)], [], [], ["exhausted", None]),
    "the line beside its retry": (
        FIVE, [*SPENT_MOVED, lone(4)], [], [], [None]),
    "the line a moment after its retry": (
        FIVE, [*SPENT_MOVED, lone(4.9)], [], [], [None]),
    "the line after a retry for another error": (
        FIVE, [*SPENT, lone(4.9)], [], [], ["exhausted"]),
    "the audit outweighs an answer that was not retried": (
        DEFAULTS, [*ONE, lone(119)], [], audited("acked", 40), ["recovered"]),
    "the counter moved, and an answer that was not retried elsewhere may be it": (
        DEFAULTS, [*ONE, lone(119, partition=4)], counter(119), [], [None]),
    "the counter moved, and two chains may be it": (
        DEFAULTS, [*ONE, line(0.05, MAX - 1, 5, partition=4)], counter(120), [], [None, None]),
    "the audit has every record acknowledged": (
        DEFAULTS, ONE, [], audited("acked", 40), ["recovered"]),
    "the audit has records failed": (
        DEFAULTS, ONE, [], audited("indeterminate", 40), ["exhausted"]),
    "they were refused": (DEFAULTS, ONE, [], audited("failed", 40), ["exhausted"]),
    "the audit has records of another partition": (
        DEFAULTS, ONE, [], audited("acked", 40, partition=4), [None]),
    "the audit has some of both": (
        DEFAULTS, ONE, [],
        Audits(seen([Message(0, -5, "acked", 40), Message(1, -1, "indeterminate", 119)], 300)),
        [None]),
    "the audit still has records open": (
        DEFAULTS, ONE, [], Audits(seen([Message(0, -5, "acked", 40), Message(1, -1)], 300)),
        [None]),
    "the audit has not reported since": (DEFAULTS, ONE, [], audited("acked", 40, -1), [None]),
    "every record was acknowledged before the last sign": (
        DEFAULTS, [*ONE, line(1.5, MAX - 3, 3)], [],
        Audits(seen([Message(0, -5, "acked", 1)], 300)), [None]),
    "an audit of answers alone": (
        DEFAULTS, ONE, [],
        Audits(verifiable([Message(n, n - 20, "acked", n + 20) for n in range(300)], 300)),
        ["recovered"]),
    "an audit of answers alone, before its time is over": (
        DEFAULTS, ONE, [],
        Audits(verifiable([Message(n, n - 20, "acked", n + 20) for n in range(300)], 125)),
        [None]),
    "an exception line outweighs the audit": (
        DEFAULTS, [*ONE, expiry(119.9, 119.95)], [], audited("acked", 40), ["exhausted"]),
    "the audit outweighs the counter": (
        DEFAULTS, ONE, counter(120), audited("acked", 40), ["recovered"]),
    "an audit beyond what is read of a chain": (
        replace(DEFAULTS, delivery_timeout_ms=3_600_000), ONE, [], audited("acked", 40), [None]),
}  # fmt: skip


@pytest.mark.parametrize("case", ENDINGS)
def test_how_it_ended(case: str) -> None:
    config, signs, errors, audits, expected = ENDINGS[case]
    given = audits or None
    assert [b.ended_by for b in budgets_of(signs, [config], errors, given)] == expected


def test_a_restart_of_the_client_ends_its_chains_without_a_verdict() -> None:
    again = replace(DEFAULTS, since=at(10), origin="app.log")
    other = replace(DEFAULTS, since=at(10), origin="other.log")
    assert [b.ended_by for b in budgets_of(ONE, [DEFAULTS, again])] == ["restarted"]
    assert [b.ended_by for b in budgets_of(ONE, [DEFAULTS, other])] == [None]


STARTS = {
    # when, which log, error counter -> how it ended
    "the counter begins at 0 again": (10, "app.log", counter(), "restarted"),
    "another log begins: the same client, or another": (10, "new.log", counter(), None),
    "after its end, within the last sample": (125, "app.log", counter(), None),
    "after all was seen": (150, "app.log", counter(), "recovered"),
    "the new one's errors": (10, "app.log", counter(120), "restarted"),
}


@pytest.mark.parametrize("case", STARTS)
def test_a_restart_outweighs_the_counter(case: str) -> None:
    second, origin, errors, expected = STARTS[case]
    again = replace(DEFAULTS, since=at(second), origin=origin)
    assert [b.ended_by for b in budgets_of(ONE, [DEFAULTS, again], errors)] == [expected]


def test_what_proves_no_end_is_said_beside_what_burns() -> None:
    (budget,) = budgets_of([*ONE, lone(60)], [DEFAULTS])
    assert "2 retries so far" in budget.because
    assert "an answer that was not retried" in budget.because
    assert lone(60).key in budget.evidence
    assert state_of(budget, at(121)) is BudgetState.ENDED_UNKNOWN


def test_a_chain_is_over_when_its_client_is() -> None:
    (budget,) = budgets_of([*ONE, said(5, "dropped_at_close")], [DEFAULTS])
    assert state_of(budget, at(4)) is BudgetState.BURNING
    assert state_of(budget, at(6)) is BudgetState.ENDED_UNKNOWN
    assert "closed by force" in budget.because


def test_records_at_stake_come_from_the_audit() -> None:
    audits = audited("acked", 40)
    assert budgets_of(ONE, [DEFAULTS], audits=audits)[0].records_at_stake == 20
    later = [*ONE, line(10.1, MAX - 3, 3)]
    assert budgets_of(later, [DEFAULTS], audits=audits)[0].records_at_stake == 30
    assert budgets_of(ONE, [DEFAULTS])[0].records_at_stake is None


def test_an_end_by_the_audit_names_its_reports() -> None:
    (budget,) = budgets_of(ONE, [DEFAULTS], audits=audited("indeterminate", 40))
    assert "records in flight at that time failed" in budget.because
    assert any(key.startswith("audit/s/orders--1/indeterminate/") for key in budget.evidence)
    assert budget.ended_at is not None
    assert at(99) <= budget.ended_at <= at(130)
