"""What is known of a client beside its lines: its starts, its audit sessions, the inventory."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from acktrail.audit.wire import Report, row_of_report
from acktrail.retries.budget import Budget
from acktrail.retries.client_budgets import (
    AUDIT,
    CONFIG,
    ERRORS,
    EVENT,
    ClientHour,
    Leaders,
    budgets_of_hour,
)
from tests.unit.retries.audited import NOON, Message, seen

HOUR = datetime(2026, 1, 2, 3, tzinfo=UTC)
NAMES = (
    "cluster", "host", "node", "topic", "partition", "correlation_id", "attempts_left", "error",
    "retriable", "category", "records", "elapsed_ms", "origin", "settings", "kind", "at", "key",
    "tag", "instance", "value", "report",
)  # fmt: skip


def row(**given):
    return dict.fromkeys(NAMES) | {"cluster": "c", "host": "h", "origin": "s/f"} | given


RETRY = row(
    tag=EVENT,
    key="s/f/9",
    kind="retry",
    at=HOUR + timedelta(minutes=1),
    topic="t",
    partition=0,
    attempts_left=2,
    error="CONCURRENT_TRANSACTIONS",
    retriable=True,
)


@pytest.mark.parametrize(
    ("version", "expected"),
    [("3.2.3", False), ("3.9.2", True), (None, True)],
    ids=["before it was retried", "since", "unknown: as the line was read"],
)
def test_the_version_decides(version, expected):
    settings = {"retries": "3"} | ({"client.version": version} if version else {})
    start = row(tag=CONFIG, key="s/f/1", at=HOUR, settings=settings)
    ((_, budget),) = budgets_of_hour(ClientHour("c", "p", HOUR), [RETRY, start], {}, Leaders())
    assert budget.retriable is expected


LINE = row(tag=EVENT, key="s/f/9", kind="retry", at=NOON, topic="orders", partition=3,
           attempts_left=2_147_483_646, correlation_id=1, error="NOT_ENOUGH_REPLICAS",
           host="app1")  # fmt: skip
ACKED = [Message(n, n - 5.0, "acked", 40 + n / 10) for n in range(10)]
SAID = {"client_id": "pay-1", "host": "app1", "acks": "all", "delivery.timeout.ms": "60000"}


def audit(reports: list[Report]) -> list[dict]:
    return [row(tag=AUDIT, report=row_of_report(r, "c", "audits", NOON)) for r in reports]


def budgets(rows: list[dict], **inventory) -> dict[str, Budget]:
    wanted = ClientHour("c", "pay-1", NOON)
    return dict(budgets_of_hour(wanted, rows, {"pay-*": inventory} if inventory else {}, Leaders()))


def printed(minutes: int, timeout: int, host: str = "app1") -> dict:
    given = {"delivery.timeout.ms": str(timeout)}
    return row(tag=CONFIG, key=f"config/{host}", at=NOON + timedelta(minutes=minutes),
               host=host, settings=given)  # fmt: skip


def session(name: str, minute: float, **said: str) -> list[dict]:
    messages = [Message(n, 60 * minute + n, "acked", 60 * minute + n + 0.1) for n in range(20)]
    reports = seen(messages, 60 * minute + 25, session=name, settings={**SAID, **said})
    return audit([replace(r, reporter=f"{name}{minute}") for r in reports])


SILENT = {"client_id": "pay-1", "acks": "all"}
SOURCES = {
    # rows, inventory -> delivery timeout, known from
    "an audit session": (audit(seen(ACKED, 60, settings=SAID)), {}, 60_000, "audit session s"),
    "a start that was printed says more": (
        [printed(-90, 30_000), *audit(seen(ACKED, 60, settings=SAID))], {}, 30_000, "config/app1"),
    "a start printed after the chain opened does not": (
        [printed(1, 30_000), *audit(seen(ACKED, 60, settings=SAID))], {}, 60_000,
        "audit session s"),
    "the session of this host, not a start of another": (
        [printed(-90, 30_000, "app2"), *audit(seen(ACKED, 60, settings=SAID))], {}, 60_000,
        "audit session s"),
    "the session is nearer than the inventory": (
        audit(seen(ACKED, 60, settings=SAID)), {"delivery.timeout.ms": "5000"}, 60_000,
        "audit session s"),
    "the inventory says what the session does not": (
        audit(seen(ACKED, 60, settings={**SILENT, "retries": "7"})),
        {"delivery.timeout.ms": "5000"}, 5_000, "audit session s, inventory/pay-*"),
    "a session that says nothing of it": (
        audit(seen(ACKED, 60, settings=SILENT)), {}, None, None),
    "the session of then, of several": (
        [*session("a", -20, **{"delivery.timeout.ms": "1000"}), *session("b", -10),
         *session("c", 10, **{"delivery.timeout.ms": "3000"})], {}, 60_000, "audit session b"),
    "a session that was first heard of after its first retry": (
        session("late", 1), {}, 60_000, "audit session late"),
    "a session of another time": (session("old", -45), {}, None, None),
    "what two producers claim is neither's": (
        [*session("shared", -1), *session("shared", 0, host="app2")], {}, None, None),
    "without a heartbeat it is nobody's": (
        [r for r in audit(seen(ACKED, 60, settings=SAID)) if r["report"]["tier"] != "heartbeat"],
        {}, None, None),
}  # fmt: skip


@pytest.mark.parametrize("case", SOURCES)
def test_where_settings_are_known_from(case):
    rows, inventory, timeout, known_from = SOURCES[case]
    budget = budgets([LINE, *rows], **inventory)["app1"]
    assert budget.delivery_timeout_ms == timeout
    assert known_from is None or known_from in budget.evidence


def test_the_audit_of_a_host_speaks_of_that_host():
    elsewhere = {**LINE, "host": "app2", "key": "s/g/9"}
    found = budgets([LINE, elsewhere, *audit(seen(ACKED, 60, settings=SAID))])
    assert (found["app1"].ended_by, found["app2"].ended_by) == ("recovered", None)


@pytest.mark.parametrize("host", ["", "pod-7"], ids=["names no host", "names it otherwise"])
def test_the_only_audit_of_a_client_id_is_of_its_only_host(host):
    reports = seen(ACKED, 60, settings={**SAID, "host": host})
    assert budgets([LINE, *audit(reports)])["app1"].ended_by == "recovered"
    second = seen(ACKED, 60, session="t", settings={**SAID, "host": "pod-8"})
    assert budgets([LINE, *audit([*reports, *second])])["app1"].ended_by is None


def totals(port: int, grown_at: float | None = None, fell_at: float | None = None) -> list[dict]:
    """record-error-total of one process, every 15 s."""
    found = []
    for second in range(-30, 180, 15):
        grew = grown_at is not None and second - 15 < grown_at <= second
        found.append(
            row(tag=ERRORS, key=f"prom/series{port}/{second}", at=NOON + timedelta(seconds=second),
                instance=f"app1:{port}", elapsed_ms=15_000, value=7.0 if grew else 0.0,
                total=0.0 if fell_at is not None and second > fell_at else 3.0)
        )  # fmt: skip
    return found


CLOSED = row(tag=EVENT, key="s/f/10", kind="dropped_at_close", detail="force_close", host="app1",
             at=NOON + timedelta(seconds=5))  # fmt: skip
ABORTED = {**CLOSED, "kind": "send_failed", "detail": "fatal_abort"}
COUNTED = {
    # rows -> how it ended
    "its counter did not move": (totals(7071), "recovered"),
    "nor that of a second process": ([*totals(7071), *totals(7072)], "recovered"),
    "that of a second process moved": ([*totals(7071), *totals(7072, grown_at=120)], None),
    "it fell: the process was started anew": (totals(7071, fell_at=30), None),
    "it was closed by force": ([*totals(7071), CLOSED], "ended_unknown"),
    "it dropped its batches": ([*totals(7071), ABORTED], "ended_unknown"),
}


@pytest.mark.parametrize("case", COUNTED)
def test_what_the_error_counter_proves(case):
    rows, expected = COUNTED[case]
    found = budgets([LINE, *rows], **{"delivery.timeout.ms": "120000", "linger.ms": "5"})
    assert found["app1"].ended_by == expected


def grown(host: str, instance: str) -> dict:
    """A sample in which errors grew after the budget of LINE had ended."""
    return row(tag=ERRORS, key=f"m/{instance}", at=NOON + timedelta(seconds=125), value=3.0,
               elapsed_ms=10_000, host=host, instance=instance)  # fmt: skip


def test_a_sample_is_of_the_host_that_the_alias_rules_name():
    elsewhere = {**LINE, "host": "app2", "key": "s/g/9"}
    settings = [printed(-90, 120_000), printed(-90, 120_000, "app2")]
    samples = [grown("app1", "10.0.0.7:9404"), {**grown("app2", "10.0.0.8:9404"), "value": 0.0}]
    found = budgets([LINE, elsewhere, *settings, *samples])
    assert (found["app1"].ended_by, found["app2"].ended_by) == ("exhausted", None)
