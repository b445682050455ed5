"""The accounts of all blocks of one session on one topic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from acktrail.audit.block import FIELDS, Block, Part
from acktrail.audit.block_account import account_block
from acktrail.audit.reported_outcomes import acked_by_elimination, why_unknown
from acktrail.audit.topic_evidence import SessionEvidence, TopicEvidence
from acktrail.audit.wire.identity import BLOCK_IDS, BUCKET_BITS, topic_id_text
from acktrail.audit.wire.run_lists import union
from acktrail.contracts.vocabulary import PRODUCER_TIERS, Tier

NAMES = ("client_id", "host")
_SETTINGS = (
    *(*NAMES, "acks", "retries", "delivery.timeout.ms", "message.timeout.ms"),
    *("request.timeout.ms", "linger.ms", "enable.idempotence", "transactional.id"),
)
"""Of what a session reports of itself, the settings that an account keeps."""

Row = Mapping[str, Any]


def accounts_of(rows: Sequence[Row], topic: TopicEvidence) -> Iterator[dict[str, Any]]:
    """The accounts in *rows*, which the ledger's job gathers of one session on one topic.

    Bucket by bucket, as buckets are computed apart: ids below a known one exist, whether or not
    they were seen, and all ids of a bucket exist where a later one has any.
    """
    blocks = _blocks(rows)
    later = {int(r["later_bucket"].rpartition(".")[2]) for r in rows if r["kind"] == "later"}
    elsewhere = any(r["kind"] == "elsewhere" for r in rows)
    beats = [r for r in rows if r["kind"] == "heartbeat"]
    offsets = [r for r in rows if r["kind"] == Tier.ACKED_OFFSETS]
    proven = acked_by_elimination(beats, blocks, offsets) if offsets else None
    blocks = blocks if proven is None else proven
    ends = [r["received_ms"] for r in rows if r["kind"] == "successor"]
    for bucket in sorted({number >> BUCKET_BITS for number in blocks}):
        own = {n: block for n, block in blocks.items() if n >> BUCKET_BITS == bucket}
        session = _session(beats, own, ends)
        if proven is None:
            session = replace(session, outcomes_unknown=why_unknown(beats, own, bucket, offsets))
        named: dict[str, Any] = {name: session.settings.get(name) for name in NAMES}
        named["settings"] = {n: session.settings[n] for n in _SETTINGS if n in session.settings}
        wrote = any(tier in PRODUCER_TIERS for block in own.values() for tier, _ in block.tiers)
        if elsewhere and not wrote:
            for number, block in own.items():
                yield _forwarded(block) | named | {"block": number}
            continue
        last = max(own)
        for number in range(bucket << BUCKET_BITS, last + 1):
            found = own.get(number, Block(number, {}))
            implied = BLOCK_IDS if number < last or bucket + 1 in later else found.top()
            for account in account_block(replace(found, implied=implied), topic, session):
                yield account | named | {"block": number}


def _blocks(rows: Sequence[Row]) -> dict[int, Block]:
    tiers: dict[int, dict[tuple[Tier, str], tuple[Part, ...]]] = {}
    for row in rows:
        if row["kind"] == "block":
            parts = tuple(
                Part(
                    **{name: part[name] for name in FIELDS if name != "topic_id"},
                    topic_id=topic_id_text(part["topic_id"]),
                    partition=row["partition"],
                )
                for part in row["parts"]
            )
            block = tiers.setdefault(row["block"], {})
            key = (Tier(row["tier"]), row["group"])
            block[key] = (*block.get(key, ()), *parts)
    return {number: Block(number, dict(sorted(tiers[number].items()))) for number in sorted(tiers)}


def _forwarded(block: Block) -> dict[str, Any]:
    """Ids of a session that never wrote to this topic: somebody else copied them here."""
    seen = union(block.mask(tier, group) for tier, group in block.tiers)
    empty = account_block(Block(block.number, {}), TopicEvidence(), SessionEvidence())[0]
    return empty | {"forwarded": int(seen.sum())}


def _session(
    beats: Sequence[Row], blocks: Mapping[int, Block], successors: Sequence[int]
) -> SessionEvidence:
    """What the session's heartbeats and the blocks of one bucket say of it.

    *successors*: receipts of the first reports of other sessions of the same client and host.
    """
    settings: dict[str, str] = {}
    minutes: dict[int, int] = {}
    for beat in sorted(beats, key=lambda r: (r["number"], r["ended_ms"], r["reporter"])):
        settings |= dict(beat["settings"] or {})
        pairs = beat["minutes"] or []
        for minute, seq in zip(pairs[::2], pairs[1::2], strict=False):
            minutes[minute] = min(seq, minutes.get(minute, seq))
    began: list[int] = []
    ended: list[int] = [beat["ended_ms"] for beat in beats]
    received: list[int | None] = []
    heard = [beat["received_ms"] for beat in beats]
    for block in blocks.values():
        for (tier, _), parts in block.tiers.items():
            began += [p.began_ms for p in parts if p.began_ms is not None]
            received += [p.received_ms for p in parts]
            if tier in PRODUCER_TIERS:
                ended += [p.ended_ms for p in parts if p.ended_ms is not None]
                heard += [p.received_ms for p in parts]
    last = max((ms for ms in heard if ms is not None), default=None)
    over = [b["received_ms"] for b in beats if b["closed"] or b["exited"]]
    over += [ms for ms in successors if last is not None and ms > last]
    return SessionEvidence(
        settings=settings,
        closed=any(beat["closed"] for beat in beats),
        ended_ms=min((ms for ms in over if ms is not None), default=None),
        first_ms=min(began, default=None),
        last_ms=max(ended, default=None),
        first_received_ms=min((ms for ms in received if ms is not None), default=None),
        last_received_ms=last,
        minutes=tuple(sorted(minutes.items())),
        has_transactions=any(
            block.parts(tier)
            for block in blocks.values()
            for tier in (Tier.ABORTED, Tier.COMMITTED)
        ),
    )
