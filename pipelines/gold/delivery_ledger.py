"""The accounts of every block for the log and for each group: sent = sum of the states."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from acktrail.aliases import Aliases, named_session
from acktrail.audit.bitmaps import union
from acktrail.audit.block import Block, Placed
from acktrail.audit.block_account import account_block, fields_of
from acktrail.audit.parts import part_of
from acktrail.audit.topic_evidence import SessionEvidence, TopicEvidence
from acktrail.audit.wire import bucket_of
from acktrail.audit.wire.identity import BLOCK_IDS
from acktrail.contracts.arrow import schema
from acktrail.contracts.gold import DELIVERY_LEDGER
from acktrail.contracts.vocabulary import PRODUCER_TIERS, Tier
from pipelines.arrow_rows import Row, by_key, rows_of
from pipelines.gold.ledger_evidence import topic_of
from pipelines.gold.ledger_rows import evidence_rows, in_buckets
from pipelines.job import Options
from pipelines.spark_schema import loose

_SCHEMA = pa.schema([f.with_nullable(True) for f in schema(DELIVERY_LEDGER)])
_INSTANTS = {"first_at": "first_ms", "last_at": "last_ms", "settles_at": "settles_ms"}
_NAMED = ("client_id", "host")
_TOLD = (
    *("client_id", "host", "acks", "retries", "delivery.timeout.ms", "message.timeout.ms"),
    *("request.timeout.ms", "linger.ms", "enable.idempotence", "transactional.id"),
)


def balance(
    inputs: Mapping[str, DataFrame], keys: frozenset[str] | None, options: Options
) -> DataFrame:
    """Judge every id of the buckets *keys*, and write the accounts."""
    aliases = Aliases(tuple(options.aliases))
    blocks = in_buckets(inputs["audit_blocks"], keys)
    rows = evidence_rows(inputs, blocks, keys)
    return (
        rows.repartition("cluster", "topic", "slice")
        .sortWithinPartitions("cluster", "topic", "slice", "session")
        .mapInArrow(lambda batches: _balance(batches, aliases), loose(DELIVERY_LEDGER))
    )


def _balance(batches: Iterable[pa.RecordBatch], aliases: Aliases) -> Iterator[pa.RecordBatch]:
    topic, place = TopicEvidence(), ("", "", -1)
    made: list[dict[str, Any]] = []
    for key, rows in by_key(rows_of(batches), ("cluster", "topic", "slice", "session")):
        cluster, name, number, session = key
        if place != (cluster, name, number):
            topic, place = TopicEvidence(), (cluster, name, number)
        if not session:  # sorts first: all that is known of the topic
            topic = topic_of(rows)
            continue
        for account in accounts_of(rows, topic):
            named = named_session({n: account[n] for n in _NAMED}, session, aliases)
            account |= {"cluster": cluster, "topic": name, "session": session, **named}
            account["bucket"] = bucket_of(session, account["block"])
            made.append(account)
        if len(made) >= 256:
            yield _batch(made)
            made = []
    if made:
        yield _batch(made)


def accounts_of(rows: list[Row], topic: TopicEvidence) -> Iterator[dict[str, Any]]:
    """The accounts of all blocks of one session on one topic, bucket by bucket."""
    blocks = _blocks(rows)
    later = {int(r["later_bucket"].rpartition(".")[2]) for r in rows if r["kind"] == "later"}
    elsewhere = any(r["kind"] == "elsewhere" for r in rows)
    for bucket in sorted({number >> 6 for number in blocks}):
        own = {n: block for n, block in blocks.items() if n >> 6 == bucket}
        session = _session(rows, own)
        named: dict[str, Any] = {k: session.settings.get(k) for k in _NAMED}
        named["settings"] = {k: session.settings[k] for k in _TOLD if k in session.settings}
        if elsewhere and not _addressed(own):
            made = [_forwarded(block) for block in own.values()]
        else:
            made = list(_judged(own, bucket, bucket + 1 in later, session, topic))
        for account in made:
            yield account | named


def _judged(
    blocks: Mapping[int, Block],
    bucket: int,
    goes_on: bool,
    session: SessionEvidence,
    topic: TopicEvidence,
) -> Iterator[dict[str, Any]]:
    """The accounts of one bucket; ids below a known one exist, whether or not they were seen."""
    last = max(blocks)
    for number in range(bucket << 6, last + 1):
        found = blocks.get(number, Block(number, {}))
        implied = BLOCK_IDS if number < last or goes_on else found.top()
        for account in account_block(Block(number, found.tiers, implied), topic, session):
            yield account | {"block": number}


def _blocks(rows: list[Row]) -> dict[int, Block]:
    tiers: dict[int, dict[tuple[Tier, str], tuple[Placed, ...]]] = {}
    for row in rows:
        if row["kind"] == "block":
            key = (Tier(row["tier"]), row["group"])
            placed = tuple(Placed(row["partition"], part_of(p)) for p in row["parts"])
            block = tiers.setdefault(row["block"], {})
            block[key] = (*block.get(key, ()), *placed)
    return {number: Block(number, dict(sorted(tiers[number].items()))) for number in sorted(tiers)}


def _addressed(blocks: Mapping[int, Block]) -> bool:
    return any(tier in PRODUCER_TIERS for b in blocks.values() for tier, _ in b.tiers)


def _forwarded(block: Block) -> dict[str, Any]:
    """Ids of a session that never wrote to this topic: somebody else copied them here."""
    seen = union(block.mask(tier, group) for tier, group in block.tiers)
    empty = account_block(Block(block.number, {}), TopicEvidence(), SessionEvidence())[0]
    return empty | {"block": block.number, "forwarded": int(seen.sum())}


def _session(rows: list[Row], blocks: Mapping[int, Block]) -> SessionEvidence:
    """What the session's heartbeats say, and when its ids were handled."""
    beats = sorted(
        (r for r in rows if r["kind"] == "heartbeat"),
        key=lambda r: (r["ended_ms"], r["number"], r["reporter"]),
    )
    settings: dict[str, str] = {}
    minutes: dict[int, int] = {}
    for beat in beats:
        settings |= dict(beat["settings"] or {})
        pairs = beat["minutes"] or []
        for minute, seq in zip(pairs[::2], pairs[1::2], strict=False):
            minutes[minute] = min(seq, minutes.get(minute, seq))
    own = [
        p.part
        for block in blocks.values()
        for (tier, _), placed in block.tiers.items()
        for p in placed
        if tier in PRODUCER_TIERS
    ]
    everything = [p.part for b in blocks.values() for placed in b.tiers.values() for p in placed]
    times = [p.ended_ms for p in own if p.ended_ms is not None] + [b["ended_ms"] for b in beats]
    return SessionEvidence(
        settings=settings,
        closed=bool(beats) and any(b["closed"] for b in beats),
        first_ms=min((p.began_ms for p in everything if p.began_ms is not None), default=None),
        last_ms=max(times, default=None),
        minutes=tuple(sorted(minutes.items())),
    )


def _batch(made: list[dict[str, Any]]) -> pa.RecordBatch:
    rows = []
    for account in made:
        row = dict(account)
        for column, name in _INSTANTS.items():
            ms = row.pop(name)
            row[column] = None if ms is None else ms * 1000
        for name in ("reasons", "settings"):
            row[name] = sorted(row[name].items())
        row["findings"] = [fields_of(finding) for finding in row["findings"]]
        rows.append(row)
    return pa.RecordBatch.from_pylist(rows, schema=_SCHEMA)
