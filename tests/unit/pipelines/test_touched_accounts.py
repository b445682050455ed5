"""Which accounts of the ledger are judged again by which news."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from acktrail.contracts import Table
from acktrail.contracts.bronze import CLUSTER_CONFIGS, CLUSTER_STATES, GROUP_OFFSETS
from acktrail.contracts.gold import DELIVERY_LEDGER
from acktrail.contracts.silver import AUDIT_PARTS, CLIENT_SIGHTINGS
from acktrail.contracts.vocabulary import Tier
from acktrail.lake import Lake
from acktrail.lake.rows import Rows
from pipelines.gold.ledger_touched import touched_accounts
from pipelines.job import Evidence
from pipelines.silver.audit_parts import OFFSETS
from tests.unit.expectations.gold_rows import row, write

SETTLES = datetime(2026, 1, 31, 7, tzinfo=UTC)
BEFORE, AFTER = SETTLES - timedelta(minutes=30), SETTLES + timedelta(hours=5)
ACCOUNT = {
    "topic": "refunds", "session": "s", "client_id": "pay", "host": "h1", "bucket": "here",
    "settles_at": SETTLES,
}  # fmt: skip
ACCOUNTS = {
    "open": {"open": True, "pending": 3},
    "awaits a scan": {"open": False, "pending": 3, "awaits_from": 100, "awaits_to": 200},
    "lost": {"open": False, "lost_in_crash": 3},
    "delivered": {"open": False, "delivered": 3},
}


def state(
    at: datetime, topic: str = "refunds", partition: int = 0, earliest: int = 0
) -> dict[str, Any]:
    return row(
        CLUSTER_STATES, topic=topic, partition=partition, at=at, after_at=at, topic_id="id",
        earliest_offset=earliest,
    )  # fmt: skip


def part(tier: Tier, received: datetime, **facts: Any) -> dict[str, Any]:
    ms = int(received.timestamp() * 1000)
    known = {"topic": "refunds", "partition": 0, "bucket": OFFSETS, "received_ms": ms}
    return row(AUDIT_PARTS, **{**known, "tier": tier.value, "after_ms": ms, **facts})


def sighting(received: datetime, **facts: Any) -> dict[str, Any]:
    known = {"client_id": "pay", "host": "h1", "session": "next", "first_received_at": received}
    return row(CLIENT_SIGHTINGS, **{**known, **facts})


def scan(first: int, topic: str = "refunds") -> dict[str, Any]:
    return part(Tier.SCANNED, AFTER, topic=topic, first_offset=first, last_offset=first + 9)


ANY, WAITING, DECIDED = {"open"}, {"open", "awaits a scan"}, set(ACCOUNTS) - {"delivered"}
NEWS = {
    # case: table, its new row, the accounts that are judged again
    "an answer about the topic": (CLUSTER_STATES, state(AFTER), ANY),
    "an answer about another topic": (CLUSTER_STATES, state(AFTER, "orders"), set()),
    "an answer from before they settled": (CLUSTER_STATES, state(BEFORE), DECIDED),
    "an answer about a partition that was not there": (
        CLUSTER_STATES, state(AFTER, partition=7), DECIDED,
    ),
    "a member that closed, of no partition": (
        AUDIT_PARTS,
        part(Tier.HEARTBEAT, AFTER, session="m", group="g", partition=-1, closed=True), ANY,
    ),
    "a commit": (
        GROUP_OFFSETS,
        row(GROUP_OFFSETS, topic="refunds", partition=0, at=AFTER, committed_offset=5), ANY,
    ),
    "a log that begins above": (CLUSTER_STATES, state(AFTER, earliest=101), WAITING),
    "a log that begins no higher": (CLUSTER_STATES, state(AFTER, earliest=100), ANY),
    "a scan that goes on": (AUDIT_PARTS, scan(200), WAITING),
    "a scan that begins above": (AUDIT_PARTS, scan(201), ANY),
    "a scan of another topic": (AUDIT_PARTS, scan(0, "orders"), set()),
    "a heartbeat of the session": (AUDIT_PARTS, part(Tier.HEARTBEAT, AFTER, session="s"), DECIDED),
    "another session of the client, later": (CLIENT_SIGHTINGS, sighting(AFTER), ANY),
    "another session of the client, before they settled": (
        CLIENT_SIGHTINGS, sighting(BEFORE), DECIDED,
    ),
    "a session of the client on another host": (
        CLIENT_SIGHTINGS, sighting(BEFORE, host="h2"), set(),
    ),
    "settings of the topic": (
        CLUSTER_CONFIGS, row(CLUSTER_CONFIGS, entity_kind="topic", entity="refunds", at=AFTER),
        DECIDED,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", NEWS)
def test_an_account_is_judged_again_by_news_that_can_change_it(tmp_path, case) -> None:
    table, news, expected = NEWS[case]
    found = set()
    for name, facts in ACCOUNTS.items():
        lake = Lake(tmp_path / name)
        write(lake, DELIVERY_LEDGER, row(DELIVERY_LEDGER, **ACCOUNT, **facts))
        known = [state(at, topic) for at in (BEFORE, AFTER) for topic in ("refunds", "orders")]
        write(lake, CLUSTER_STATES, *known)
        if touched_accounts(added(lake, table, news)) == {"here"}:
            found.add(name)
    assert found == expected


def added(lake: Lake, table: Table, news: Mapping[str, Any]) -> Evidence:
    """What the job may look at when the row *news* is new in *table*."""
    before = set(lake.files(table)) if lake.exists(table) else set()
    write(lake, table, news)
    rows = {}
    for each in (DELIVERY_LEDGER, CLUSTER_STATES, table):
        seen = lake.look(each)
        assert seen is not None
        rows[each.name] = Rows(each, lake.at(each), seen)
    files = set(lake.files(table)) - before
    new = {table.name: Rows(table, lake.at(table), rows[table.name].seen, files)}
    output = rows.pop(DELIVERY_LEDGER.name)
    return Evidence(new, {}, rows, output)
