"""Which files a fold is given: those that new evidence can need, not those of all time.

The lakes here have a file for each hour; nothing is run.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from acktrail.audit.wire import bucket_of, new_session
from acktrail.contracts import Table
from acktrail.contracts.bronze import CLUSTER_STATES, GROUP_OFFSETS
from acktrail.contracts.silver import AUDIT_BLOCKS, AUDIT_PARTS, CLIENT_SIGHTINGS
from acktrail.contracts.vocabulary import Tier
from acktrail.lake import Lake
from acktrail.lake.rows import Rows, files_with
from acktrail.window import hour_of
from pipelines.gold.ledger_needed import (
    FIRST_COMMITS,
    RANGES_READ,
    SCANNED_PLACES,
    SESSIONS_BEGUN,
)
from pipelines.job import Evidence, Fold
from pipelines.registry import jobs_named
from pipelines.silver.audit_parts import OFFSETS
from tests.unit.expectations.gold_rows import row, write

HOURS = 40
BEGIN = datetime(2026, 1, 30, 0, 30, tzinfo=UTC)
NEWEST = BEGIN + timedelta(hours=HOURS - 1)
SESSION = new_session(int(NEWEST.timestamp() * 1000))
BUCKET = bucket_of(SESSION, 0)


def evidence_of(job: Fold, lake: Lake) -> Evidence:
    """The tables of the job as they are; none of it is new."""
    rows = {}
    for table in job.inputs:
        seen = lake.look(table)
        if seen is not None:
            rows[table.name] = Rows(table, lake.at(table), seen)
    return Evidence({}, {}, rows, None)


def files_given(name: str, lake: Lake, keys: set[str]) -> dict[str, int]:
    """How many files of each input the job *name* is given for its partitions *keys*."""
    (job,) = jobs_named([name])
    assert isinstance(job, Fold)
    evidence = evidence_of(job, lake)
    needed = job.needed(evidence, frozenset(keys))
    return {
        name: len(files_with(rows.seen, rows.store, needed.get(name)))
        for name, rows in evidence.inputs.items()
    }


def answers(lake: Lake) -> None:
    """The cluster has answered in every hour."""
    for hour in range(HOURS):
        at = BEGIN + timedelta(hours=hour)
        state = row(CLUSTER_STATES, topic="orders", partition=0, at=at, after_at=at, read_at=at)
        write(lake, CLUSTER_STATES, state)


def block(tier: Tier, first_at: datetime | None, session: str = SESSION) -> dict[str, object]:
    return row(
        AUDIT_BLOCKS, session=session, topic="orders", partition=0, tier=tier.value, group="",
        block=0, bucket=BUCKET, first_at=first_at, parts=[],
    )  # fmt: skip


BLOCKS = {
    # case: blocks, whether the answers of earlier days are left out
    "all have a time": ([block(Tier.ACKED, NEWEST)], True),
    "what was sent has none": ([block(Tier.ACKED, NEWEST), block(Tier.SENT, None)], True),
    "a session without any": (
        [block(Tier.ACKED, NEWEST), block(Tier.SENT, None, new_session(1))], False,
    ),
    "an older session": ([block(Tier.ACKED, NEWEST), block(Tier.ACKED, BEGIN)], False),
}  # fmt: skip


@pytest.mark.parametrize("case", BLOCKS)
def test_the_ledger_reads_answers_from_the_first_event_of_its_blocks(tmp_path, case):
    blocks, bounded = BLOCKS[case]
    lake = Lake(tmp_path)
    answers(lake)
    write(lake, AUDIT_BLOCKS, *blocks)
    given = files_given("delivery_ledger", lake, {BUCKET})
    assert given["audit_blocks"] == 1
    assert (given["cluster_states"] < HOURS) == bounded, given
    assert given["cluster_states"] > 0


def test_the_ledger_reads_recent_commits_and_sums_up_those_of_all_time(tmp_path):
    lake = Lake(tmp_path)
    for hour in range(HOURS):
        at = BEGIN + timedelta(hours=hour)
        for group, offset in (("billing", 100 + hour), ("audit", HOURS - hour)):
            commit = row(
                GROUP_OFFSETS, topic="orders", partition=0, group=group, at=at, after_at=at,
                committed_offset=offset,
            )  # fmt: skip
            write(lake, GROUP_OFFSETS, commit)
    unanswered = row(GROUP_OFFSETS, topic="orders", partition=1, group="billing", at=BEGIN)
    write(lake, GROUP_OFFSETS, {**unanswered, "committed_offset": None})
    write(lake, AUDIT_BLOCKS, block(Tier.ACKED, NEWEST))
    given = files_given("delivery_ledger", lake, {BUCKET})
    assert 0 < given["group_offsets"] < HOURS
    (ledger,) = jobs_named(["delivery_ledger"])
    assert isinstance(ledger, Fold)
    lowest = ledger.summaries(evidence_of(ledger, lake), frozenset({BUCKET}))[FIRST_COMMITS]
    found = {(r["partition"], r["group"]): r["committed_offset"] for r in lowest.to_pylist()}
    assert found == {(0, "billing"): 100, (0, "audit"): 1}


def test_the_ledger_reads_scans_and_ranges_that_its_blocks_need(tmp_path):
    lake = Lake(tmp_path)
    made = {**block(Tier.IN_LOG, NEWEST), "first_offset": 390, "first_received_at": NEWEST}
    write(lake, AUDIT_BLOCKS, made)
    for hour in range(HOURS):
        at_ms = int((BEGIN + timedelta(hours=hour)).timestamp() * 1000)
        read = {**scan(AUDIT_PARTS, at_ms), "first_offset": 10 * hour, "last_offset": 10 * hour + 9}
        read |= {"received_ms": at_ms, "after_ms": at_ms, "part": hour}
        member = {"tier": Tier.CONSUMED.value, "group": "g", "reporter": "m", "assignment": 1}
        elsewhere = {**read, "topic": "other"}
        write(lake, AUDIT_PARTS, read, {**read, **member}, {**elsewhere, **member})
    (ledger,) = jobs_named(["delivery_ledger"])
    assert isinstance(ledger, Fold)
    found = ledger.summaries(evidence_of(ledger, lake), frozenset({BUCKET}))
    rows = found[RANGES_READ].to_pylist()
    assert {r["topic"] for r in rows} == {"orders"}
    scans = [r["first_offset"] for r in rows if r["tier"] == Tier.SCANNED.value]
    assert sorted(scans) == [360, 370, 380, 390]
    reads = [r["first_offset"] for r in rows if r["tier"] == Tier.CONSUMED.value]
    assert sorted(reads) == [0, 370, 380, 390]
    assert found[SCANNED_PLACES].num_rows == 1


def test_the_ledger_reads_sessions_that_may_follow_those_of_its_blocks(tmp_path):
    lake = Lake(tmp_path)
    write(lake, AUDIT_BLOCKS, {**block(Tier.ACKED, NEWEST), "first_received_at": NEWEST})
    for hour in range(HOURS):
        at = BEGIN + timedelta(hours=hour)
        for name in (f"s{hour}", "long", *([SESSION] if hour > HOURS - 3 else [])):
            write(
                lake, CLIENT_SIGHTINGS,
                row(
                    CLIENT_SIGHTINGS, client_id="pay", host="h", session=name, evidence="audits",
                    first_received_at=at, day=f"{at:%Y-%m-%d}",
                ),
            )  # fmt: skip
    (ledger,) = jobs_named(["delivery_ledger"])
    assert isinstance(ledger, Fold)
    found = ledger.summaries(evidence_of(ledger, lake), frozenset({BUCKET}))[SESSIONS_BEGUN]
    assert set(found.column("session").to_pylist()) == {SESSION, f"s{HOURS - 1}"}


def test_accounts_of_offsets_read_answers_and_scans_of_their_hour(tmp_path):
    lake = Lake(tmp_path)
    answers(lake)
    for hour in range(HOURS):
        began_ms = int((BEGIN + timedelta(hours=hour)).timestamp() * 1000)
        one = scan(AUDIT_PARTS, began_ms)
        beat = {"tier": Tier.HEARTBEAT.value, "began_ms": None, "first_offset": None}
        write(lake, AUDIT_PARTS, one, {**one, **beat})  # nulls do not hide the bounds
    given = files_given("offset_accounts", lake, {hour_of(NEWEST)})
    assert given == {"cluster_states": 1, "audit_parts": 1}


def scan(table: Table, began_ms: int) -> dict[str, object]:
    return row(
        table, tier=Tier.SCANNED.value, topic="orders", partition=0, bucket=OFFSETS,
        first_offset=0, last_offset=9, began_ms=began_ms,
    )  # fmt: skip
