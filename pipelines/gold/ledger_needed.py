"""Which evidence the touched buckets of the ledger need, and what is summed up for them.

Decided from a few columns by Arrow, before Spark reads anything.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from acktrail.audit.needed_ranges import GROUP, PLACE, TOPIC, needed_ranges
from acktrail.audit.topic_evidence import BEFORE_MS
from acktrail.contracts.vocabulary import Tier
from acktrail.lake.rows import Rows
from pipelines.job import Evidence
from pipelines.silver.audit_parts import OFFSETS

FIRST_COMMITS = "first_commits"
"""The name of a summary: the lowest offset that each group has ever committed."""
RANGES_READ = "ranges_read"
"""The rows of the bucket of offsets in `audit_parts` that the buckets need."""
SCANNED_PLACES = "scanned_places"
"""Every partition that was ever scanned."""
SESSIONS_BEGUN = "sessions_begun"
"""When sessions of each client and host were first heard of."""
MEMBER_CLOSED = (
    (ds.field("tier") == Tier.HEARTBEAT.value) & (ds.field("group") != "") & ds.field("closed")
)
IS_SCAN = ds.field("tier") == Tier.SCANNED.value
_IS_RANGE = ds.field("first_offset").is_valid() & ds.field("last_offset").is_valid()
_MEMBER = (*TOPIC, "group", "reporter")
_RANGE = (
    *(*GROUP, "tier", "reporter", "part", "number", "assignment", "first_offset", "last_offset"),
    *("records", "leader_epoch", "topic_id", "closed", "after_ms", "received_ms"),
    *("began_ms", "ended_ms", "reported_ms"),
)
_INSTANT = pa.timestamp("us", tz="UTC")


def needed_evidence(evidence: Evidence, keys: frozenset[str]) -> dict[str, ds.Expression]:
    """The blocks of the buckets *keys* and after them, and their heartbeats.

    The cluster's answers matter from some time before the first event of the blocks. Of earlier
    commits, and of all that groups and scans have read, `sums_of_all_time` has what matters.
    """
    split = [key.rpartition(".") for key in keys]
    after = {f"{place}.{int(number) + 1}" for place, _, number in split}
    bucket, first = ds.field("bucket"), _first_buckets(keys)
    needed = {
        "audit_blocks": bucket.isin(sorted(keys | after)),
        "audit_parts": bucket.isin(sorted(first)),
        "client_sightings": ds.scalar(False),
    }
    blocks = _of_buckets(evidence.inputs["audit_blocks"], keys)
    begun = _first_events(blocks, bucket.isin(sorted(keys)))
    if begun is not None:
        since = pa.scalar(begun - timedelta(milliseconds=BEFORE_MS + 1), _INSTANT)
        for name in ("cluster_states", "group_offsets"):
            answers = evidence.inputs.get(name)
            needed[name] = ds.field("at") >= since
            if answers is not None and answers.has("after_at"):
                needed[name] |= ds.field("after_at") >= since
    return needed


def sums_of_all_time(evidence: Evidence, keys: frozenset[str]) -> dict[str, pa.Table]:
    """What is needed of commits, scans, ranges and sessions of all time, in place of all rows."""
    found = _first_commits(evidence) | _ranges_read(evidence, keys)
    return found | _sessions_begun(evidence, keys)


def _first_buckets(keys: frozenset[str]) -> set[str]:
    """Where heartbeats of the sessions in *keys* lie."""
    return {f"{key.rpartition('.')[0]}.0" for key in keys}


def _of_buckets(rows: Rows, keys: Collection[str]) -> Rows:
    """*rows* of these buckets: chosen all at once, where a filter looks at file after file."""
    ours = [path for path, values in rows.seen.files.items() if values.get("bucket") in keys]
    return replace(rows, files=ours)


def _first_events(blocks: Rows, where: ds.Expression) -> datetime | None:
    """The first event of *blocks*; None where no report of some session has a time.

    A slice of a topic has whole sessions, and takes the answers from before the first event that
    is known in it. That some reports have no time, as those of what was sent, changes nothing.
    """
    times = ("first_at", "first_received_at")
    rows = blocks.read("cluster", "topic", "session", *times, where=where)
    sessions = rows.group_by(["cluster", "topic", "session"])
    firsts = sessions.aggregate([(name, "min") for name in times]).to_pylist()
    began = [[at for name in times if (at := row[f"{name}_min"])] for row in firsts]
    return min(map(min, began)) if began and all(began) else None


def _first_commits(evidence: Evidence) -> dict[str, pa.Table]:
    """The lowest offset that each group has ever committed: it decides what the group owes."""
    commits = evidence.inputs.get("group_offsets")
    if commits is None:
        return {}
    lowest = _lowest(commits, GROUP, "committed_offset", ds.scalar(True))
    least = lowest.column("committed_offset_min")
    places = lowest.select(list(GROUP))
    return {FIRST_COMMITS: places.append_column("committed_offset", least)}


def _lowest(rows: Rows, place: tuple[str, ...], column: str, where: ds.Expression) -> pa.Table:
    """The lowest value of *column*, which is not null, by *place*."""
    found = rows.read(*place, column, where=where & ds.field(column).is_valid())
    return found.group_by(list(place)).aggregate([(column, "min")])


def _ranges_read(evidence: Evidence, keys: frozenset[str]) -> dict[str, pa.Table]:
    """What scans and members of groups have read, as far as it matters to the buckets *keys*."""
    parts, blocks = evidence.inputs.get("audit_parts"), evidence.inputs["audit_blocks"]
    if parts is None:
        return {}
    parts, blocks = _of_buckets(parts, {OFFSETS}), _of_buckets(blocks, keys)
    ours = ds.field("bucket").isin(sorted(keys))
    topics = pc.unique(blocks.read("topic", where=ours).column("topic")).to_pylist()
    known = (ds.field("bucket") == OFFSETS) & ds.field("topic").isin(topics)
    scanned = known & IS_SCAN & _IS_RANGE
    places = parts.read(*PLACE, where=scanned).group_by(list(PLACE)).aggregate([])
    scans = parts.read(*_RANGE, "unnamed", where=scanned & _late_enough(blocks, ours))
    closed = parts.read(*_RANGE, where=known & MEMBER_CLOSED)
    members = closed.group_by(list(_MEMBER)).aggregate([])
    reads = parts.read(*_RANGE, where=known & (ds.field("tier") == Tier.CONSUMED.value) & _IS_RANGE)
    seen = ours & ds.field("tier").isin([Tier.IN_LOG.value, Tier.DELIVERED.value])
    floors = _by_place(_lowest(blocks, PLACE, "first_offset", seen))
    reads = reads.filter(pa.array(needed_ranges(reads, floors, _commits(evidence, keys), members)))
    ended = closed.join(reads.select(list(_MEMBER)), list(_MEMBER), join_type="left semi")
    rows = pa.concat_tables([scans, reads, ended.select(list(_RANGE))], promote_options="default")
    return {RANGES_READ: rows, SCANNED_PLACES: places}


def _late_enough(blocks: Rows, ours: ds.Expression) -> ds.Expression:
    """Scans that may show something of *blocks*: not those begun long before their receipt.

    Where a session has no receipt, any may.
    """
    rows = blocks.read("cluster", "topic", "session", "first_received_at", where=ours)
    heard = rows.group_by(["cluster", "topic", "session"]).aggregate([("first_received_at", "min")])
    firsts: Any = heard.column("first_received_at_min")
    if not len(firsts) or firsts.null_count:
        return ds.scalar(True)
    since = int(pc.min(firsts).as_py().timestamp() * 1000) - BEFORE_MS - 1
    after = ds.field("after_ms")
    return after.is_null() | (after == 0) | (after >= since)


def _commits(evidence: Evidence, keys: frozenset[str]) -> dict[tuple[Any, ...], int]:
    """The lowest offset of the commits that count, by group and partition."""
    commits = evidence.inputs.get("group_offsets")
    if commits is None:
        return {}
    late: Any = needed_evidence(evidence, keys).get("group_offsets")
    late = ds.scalar(True) if late is None else late | late.is_null()
    return _by_place(_lowest(commits, GROUP, "committed_offset", late))


def _by_place(lowest: pa.Table) -> dict[tuple[Any, ...], int]:
    """The value in the last column of each row, by the other columns."""
    return {
        tuple(place): value
        for *place, value in zip(*(c.to_pylist() for c in lowest.columns), strict=True)
    }


def _sessions_begun(evidence: Evidence, keys: frozenset[str]) -> dict[str, pa.Table]:
    """The sessions in *keys*, and others that were first heard of later than some report of one.

    Only a session that begins after all that was heard of another shows that this one has ended.
    """
    sightings = evidence.inputs.get("client_sightings")
    if sightings is None:
        return {}
    whose = ["cluster", "client_id", "host", "session"]
    audited = (ds.field("session") != "") & (ds.field("host") != "")
    rows = sightings.read(*whose, "first_received_at", where=audited)
    begun = rows.group_by(whose).aggregate([("first_received_at", "min")])
    begun = begun.rename_columns([*whose, "first_received_at"])
    since = _first_receipt(evidence, keys)
    if since is not None:
        blocks = _of_buckets(evidence.inputs["audit_blocks"], keys)
        ours = blocks.read("session", where=ds.field("bucket").isin(sorted(keys)))
        at, own = ds.field("first_received_at"), pc.unique(ours.column("session"))
        later = at.is_null() | (at >= pa.scalar(since, _INSTANT))
        begun = begun.filter(later | ds.field("session").isin(own))
    return {SESSIONS_BEGUN: begun}


def _first_receipt(evidence: Evidence, keys: frozenset[str]) -> datetime | None:
    """When the first report of the sessions in *keys* was received; None: not known."""
    parts, blocks = evidence.inputs.get("audit_parts"), evidence.inputs["audit_blocks"]
    blocks = _of_buckets(blocks, keys)
    ours = ds.field("bucket").isin(sorted(keys))
    known = [pc.min(blocks.read("first_received_at", where=ours).column(0)).as_py()]
    if parts is not None:
        beats = ds.field("bucket").isin(sorted(_first_buckets(keys)))
        beats &= ds.field("tier") == Tier.HEARTBEAT.value
        parts = _of_buckets(parts, _first_buckets(keys))
        ms = pc.min(parts.read("received_ms", where=beats).column(0)).as_py()
        known.append(None if ms is None else datetime.fromtimestamp(ms / 1000, UTC))
    return min((at for at in known if at is not None), default=None)
