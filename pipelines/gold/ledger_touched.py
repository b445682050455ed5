"""Which buckets of the ledger new evidence concerns.

Decided from a few columns by Arrow, before Spark reads anything.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from acktrail.audit.log_end import NEVER
from acktrail.contracts.vocabulary import State, Tier
from acktrail.lake.rows import Rows
from pipelines.gold.ledger_needed import IS_SCAN, MEMBER_CLOSED
from pipelines.job import Evidence

Place = tuple[str, str, int]
"""Cluster, topic, partition."""
Topic = tuple[str, str]

_TOPIC = ("cluster", "topic")
_PLACE = (*_TOPIC, "partition")
_FILES_AT_ONCE = 64
_READ = ds.field("tier").isin([Tier.SCANNED.value, Tier.CONSUMED.value]) | MEMBER_CLOSED
_BEFORE = timedelta(days=1)
"""A topic about which the cluster answered nothing for so long may have been made again."""
_NOT_FINAL = tuple(
    state.value
    for state in State
    if state not in (State.DELIVERED, State.NOT_OWED, State.REJECTED, State.ABORTED)
)
"""Accounts with ids in one of these states are open, or decided unless certain news come."""


def touched_accounts(evidence: Evidence) -> frozenset[str]:
    """Changed blocks; open accounts of topics and sessions with news; blocks above new offsets.

    An account in which all is delivered changes only when the log is cut below its offsets, when
    a group turns out to owe it, or when a scan reads its offsets again: all of these concern an
    offset at or below the block's last one. For what is decided: `_open_accounts`.
    """
    changed = evidence.changed.get("audit_blocks", frozenset())
    # The ids at the end of the bucket before exist where this one has any.
    split = [key.rpartition(".") for key in changed]
    before = {f"{place}.{int(number) - 1}" for place, _, number in split if int(number) > 0}
    news = _lowest_offsets(evidence)
    found = {*changed, *before, *_above(evidence, news)}
    if evidence.output is not None:
        found |= _open_accounts(evidence, evidence.output, news)
        found |= _owed_by_new_groups(evidence, evidence.output)
    return frozenset(found)


def _lowest_offsets(evidence: Evidence) -> dict[Place, int | None]:
    """The lowest offset of each partition that new evidence is about; None: of no offset."""
    found: dict[Place, int | None] = {}
    parts = evidence.new.get("audit_parts")
    if parts is not None:
        _note(found, parts.read(*_PLACE, "first_offset", where=_READ))
    commits = evidence.new.get("group_offsets")
    if commits is not None:
        _note(found, commits.read(*_PLACE, "committed_offset"))
    states = evidence.new.get("cluster_states")
    if states is not None:
        _note(found, _ends_since(states.read(*_PLACE, "at"), evidence.inputs["cluster_states"]))
    return found


def _note(found: dict[Place, int | None], rows: pa.Table) -> None:
    """The lowest value of the last column of *rows* for every place."""
    value = rows.column_names[-1]
    for row in rows.group_by(list(_PLACE)).aggregate([(value, "min")]).to_pylist():
        place, low = (row["cluster"], row["topic"], row["partition"]), row[f"{value}_min"]
        known = found.get(place)
        found[place] = low if known is None else known if low is None else min(known, low)


def _ends_since(new: pa.Table, states: Rows) -> pa.Table:
    """The ends answered since the first new answer: a late one may make others a proof."""
    since = new.group_by(list(_PLACE)).aggregate([("at", "min")])
    if not since.num_rows:
        return states.read(*_PLACE, "latest_offset", where=ds.scalar(False))
    first = pc.min(since.column("at_min"))
    later = states.read(*_PLACE, "at", "latest_offset", where=ds.field("at") >= first)
    beside = later.join(since, list(_PLACE), join_type="inner")
    kept = beside.filter(pc.greater_equal(beside.column("at"), beside.column("at_min")))
    return kept.select([*_PLACE, "latest_offset"])


def _above(evidence: Evidence, news: dict[Place, int | None]) -> set[str]:
    """Buckets of blocks that reach to or above an offset with news."""
    offsets = {place: low for place, low in news.items() if low is not None}
    if not offsets or "audit_blocks" not in evidence.inputs:
        return set()
    topics: dict[Topic, int] = {}
    for place, low in offsets.items():
        topics[place[:2]] = min(low, topics.get(place[:2], low))
    reaches = (
        (ds.field("cluster") == cluster)
        & (ds.field("topic") == topic)
        & (ds.field("last_offset") >= low)
        for (cluster, topic), low in topics.items()
    )
    wanted = reduce(or_, reaches)
    high_enough = evidence.inputs["audit_blocks"].reaching({"last_offset": min(topics.values())})
    blocks = high_enough.read(*_PLACE, "last_offset", "bucket", where=wanted)
    return {
        bucket
        for cluster, topic, partition, last, bucket in _tuples(blocks)
        if (from_offset := offsets.get((cluster, topic, partition))) is not None
        and last >= from_offset
    }


def _open_accounts(evidence: Evidence, output: Rows, news: Collection[Place]) -> set[str]:
    """Buckets of accounts, open or decided, that the news of their topic can change.

    An open account by any. A decided one by new settings, by heartbeats of its session, by a
    topic that may have been made again, and by news from before the instant at which its ids
    without an offset were settled. One that awaits a scan, by a scan that begins low enough, or
    where the log begins higher.
    """
    configs = evidence.new.get("cluster_configs")
    set_now = set() if configs is None else set(_tuples(configs.read(*_CONFIG)))
    brokers = {cluster for cluster, kind, _ in set_now if kind == "broker"}
    settings = {(cluster, topic) for cluster, _, topic in set_now}
    parts = evidence.new.get("audit_parts")
    alive = ds.field("tier").isin([Tier.HEARTBEAT.value, Tier.ACKED_OFFSETS.value])
    beats = None if parts is None else parts.read("cluster", "session", where=alive)
    sessions = set() if beats is None else set(_tuples(beats))
    topics = {place[:2] for place in news}
    scans, starts = _scans_and_starts(evidence)
    clients = _clients_with_news(evidence)
    if not topics and not set_now and not sessions and not clients:
        return set()
    found: set[str] = set()
    decided: list[tuple[Topic, datetime | None, str]] = []
    wanted = reduce(or_, (ds.field(state) > 0 for state in _NOT_FINAL))
    accounts = output.reaching(dict.fromkeys(_NOT_FINAL, 1)).read(*_ACCOUNT, where=wanted)
    for account in map(_Account._make, _tuples(accounts)):
        cluster, settles_at, bucket = account.cluster, account.settles_at, account.bucket
        place = (cluster, account.topic)
        begun = clients.get((cluster, account.client_id, account.host))
        by_name = place in settings or cluster in brokers or (cluster, account.session) in sessions
        by_client = begun is not None and (
            account.open or (settles_at is not None and begun <= settles_at)
        )
        by_topic = account.open and place in topics
        by_scan = account.awaits_to is not None and scans.get(place, NEVER) <= account.awaits_to
        by_start = account.awaits_from is not None and starts.get(place, -1) > account.awaits_from
        if by_name or by_client or by_topic or by_scan or by_start:
            found.add(bucket)
        elif place in topics:
            decided.append((place, settles_at, bucket))
    return found | _unsettled(evidence, decided, news)


class _Account(NamedTuple):
    """What of an account says which news can change it."""

    cluster: str
    topic: str
    session: str
    client_id: str | None
    host: str | None
    open: bool
    awaits_from: int | None
    awaits_to: int | None
    settles_at: datetime | None
    bucket: str


_ACCOUNT = _Account._fields


def _scans_and_starts(evidence: Evidence) -> tuple[dict[Topic, int], dict[Topic, int]]:
    """By topic: the lowest offset of new scans, and the highest at which the log now begins."""
    parts, states = evidence.new.get("audit_parts"), evidence.new.get("cluster_states")
    scans, starts = {}, {}
    if parts is not None:
        rows = parts.read(*_TOPIC, "first_offset", where=IS_SCAN).group_by(list(_TOPIC))
        scans = _by_topic(rows.aggregate([("first_offset", "min")]), "first_offset_min")
    if states is not None:
        rows = states.read(*_TOPIC, "earliest_offset").group_by(list(_TOPIC))
        starts = _by_topic(rows.aggregate([("earliest_offset", "max")]), "earliest_offset_max")
    return scans, starts


def _by_topic(rows: pa.Table, column: str) -> dict[Topic, int]:
    found = _tuples(rows.select([*_TOPIC, column]))
    return {(cluster, topic): at for cluster, topic, at in found if at is not None}


def _clients_with_news(evidence: Evidence) -> dict[tuple[str, str | None, str | None], datetime]:
    """Clients and hosts with news of sessions, and the first receipt of these.

    A session that begins shows that another has ended.
    """
    sightings = evidence.new.get("client_sightings")
    if sightings is None:
        return {}
    audited = (ds.field("session") != "") & (ds.field("host") != "")
    rows = sightings.read("cluster", "client_id", "host", "first_received_at", where=audited)
    first = rows.group_by(["cluster", "client_id", "host"])
    return {
        (cluster, client, host): at or _LONG_AGO
        for cluster, client, host, at in _tuples(first.aggregate([("first_received_at", "min")]))
    }


def _unsettled(
    evidence: Evidence,
    decided: Collection[tuple[Topic, datetime | None, str]],
    news: Collection[Place],
) -> set[str]:
    """Buckets of *decided* accounts whose verdict the *news* of their topic can change."""
    if not decided:
        return set()
    since = _first_instants(evidence)
    strange = _may_be_other_topics(evidence, news, since)
    return {
        bucket
        for topic, settles_at, bucket in decided
        if topic in strange or (settles_at is not None and since[topic] <= settles_at)
    }


def _first_instants(evidence: Evidence) -> dict[Topic, datetime]:
    """When the earliest news of each topic happened."""
    found: dict[Topic, datetime] = {}
    rows = []
    for name in ("group_offsets", "cluster_states"):
        if name in evidence.new:
            rows.append(evidence.new[name].read("cluster", "topic", "at"))
    if "audit_parts" in evidence.new:
        read = evidence.new["audit_parts"].read(
            *("cluster", "topic", "after_ms", "received_ms"), where=_READ
        )
        began = pc.coalesce(read.column("after_ms"), read.column("received_ms"))
        at = pc.multiply(began, 1000).cast(_INSTANT)
        rows.append(read.select(["cluster", "topic"]).append_column("at", at))
    for table in rows:
        first = table.group_by(["cluster", "topic"]).aggregate([("at", "min")])
        for cluster, topic, at in _tuples(first):
            earliest: datetime = at or _LONG_AGO
            found[cluster, topic] = min(earliest, found.get((cluster, topic), earliest))
    return found


def _may_be_other_topics(
    evidence: Evidence, news: Collection[Place], since: Mapping[Topic, datetime]
) -> set[Topic]:
    """Topics with two ids, or with a partition of which nothing was known the day before."""
    states = evidence.inputs.get("cluster_states")
    if states is None:
        return set(since)
    first = pa.scalar(max(min(since.values()), _LONG_AGO + _BEFORE) - _BEFORE, _INSTANT)
    answers = states.read(*_PLACE, "topic_id", "at", where=ds.field("at") >= first)
    ids: dict[Topic, set[str]] = {}
    known: set[Place] = set()
    oldest = answers.group_by([*_PLACE, "topic_id"]).aggregate([("at", "min")])
    for row in oldest.to_pylist():
        topic = (row["cluster"], row["topic"])
        if row["topic_id"]:
            ids.setdefault(topic, set()).add(row["topic_id"])
        if topic in since and row["at_min"] < since[topic]:
            known.add((*topic, row["partition"]))
    return {topic for topic, found in ids.items() if len(found) > 1} | {
        place[:2] for place in news if place[2] >= 0 and place not in known
    }


_CONFIG = ("cluster", "entity_kind", "entity")
_INSTANT = pa.timestamp("us", tz="UTC")
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


def _owed_by_new_groups(evidence: Evidence, output: Rows) -> set[str]:
    """A group that reports its first read on a topic has an account of every block it owes."""
    parts = evidence.new.get("audit_parts")
    if parts is None:
        return set()
    consumed = ds.field("tier") == Tier.CONSUMED.value
    new = set(_tuples(parts.read("cluster", "topic", "group", where=consumed)))
    for files in _newest_first(output):  # a group that goes on is in the newest buckets
        if not new:
            return set()
        known = Rows(output.table, output.store, output.seen, files)
        new -= set(_tuples(known.read("cluster", "topic", "group")))
    topics = {(cluster, topic) for cluster, topic, _ in new}
    if not topics:
        return set()
    blocks = evidence.inputs["audit_blocks"].read("cluster", "topic", "bucket")
    return {bucket for cluster, topic, bucket in _tuples(blocks) if (cluster, topic) in topics}


def _newest_first(output: Rows) -> Iterator[list[str]]:
    """The files of the ledger, some at a time, the newest buckets first."""
    files = output.seen.files
    ordered = sorted(files, key=lambda path: str(files[path].get("bucket")), reverse=True)
    for start in range(0, len(ordered), _FILES_AT_ONCE):
        yield ordered[start : start + _FILES_AT_ONCE]


def _tuples(rows: pa.Table) -> Iterable[tuple[Any, ...]]:
    """The distinct rows."""
    distinct = rows.group_by(rows.column_names).aggregate([])
    return zip(*(column.to_pylist() for column in distinct.columns), strict=True)
