"""What a version does about an error is told by the client's own start."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pipelines.rules.client_budgets import CONFIG, EVENT, ClientHour, Leaders, budgets_of_hour

HOUR = datetime(2026, 1, 2, 3, tzinfo=UTC)
NAMES = (
    "cluster", "host", "node", "topic", "partition", "correlation_id", "attempts_left", "error",
    "retriable", "category", "records", "elapsed_ms", "origin", "settings", "kind", "at", "key",
    "tag", "instance", "value",
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
