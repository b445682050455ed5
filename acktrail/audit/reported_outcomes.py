"""What a session's reporter says of its own evidence: what is missing, and acks without an id.

A client that reports `outcomes` says with every report of how many ids it has reported an outcome
so far. Where the lake has fewer, reports are missing, and an id without an outcome proves
nothing. The same holds where the reporter threw evidence away (`dropped`).

A client that is not told which id was acked reports the acked offsets (`acked_offsets`). Counts
that are equal prove nothing while sends are in flight. Once the producer is closed, its last
heartbeat has the number of all ids, and evidence only grows: where all acks and all other outcomes
add up to that number, every outcome is known, and the ids that were told nothing else were acked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from acktrail.audit.block import Block, Part
from acktrail.audit.reasons import Reason
from acktrail.audit.wire.identity import BLOCK_IDS
from acktrail.audit.wire.run_lists import Mask, encode_ids, no_ids, union
from acktrail.contracts.vocabulary import Tier

OUTCOME_TIERS = (
    Tier.ACKED,
    Tier.ACKED_NO_OFFSET,
    Tier.FAILED,
    Tier.INDETERMINATE,
    Tier.SENT_UNACKED,
)
"""Tiers that say what a client was told of an id."""
WITHOUT_IDS = "acked_offsets"
"""The value of the setting `audit_mode` of clients that are not told which id was acked."""
MOST_BLOCKS = 64
"""A longer session is in several buckets, which are computed apart: its acks decide nothing."""

Row = Mapping[str, Any]


def why_unknown(
    beats: Sequence[Row], blocks: Mapping[int, Block], bucket: int, offsets: Sequence[Row]
) -> Reason | None:
    """Why ids of the *bucket* without an outcome may have had one; None where they had none."""
    if acks_have_no_ids(beats, offsets):
        return Reason.ACKS_WITHOUT_IDS
    told = sum(int(np.count_nonzero(_told(block))) for block in blocks.values())
    stated = max((_counts(b, "outcomes").get(str(bucket), 0) for b in beats), default=0)
    gone = any(n for b in beats for tier, n in _counts(b, "dropped").items() if tier in _TOLD)
    return Reason.REPORTS_MISSING if gone or told < stated else None


def acks_have_no_ids(beats: Sequence[Row], offsets: Sequence[Row]) -> bool:
    """Whether the client is not told which id was acked."""
    modes = (dict(b["settings"] or {}).get("audit_mode") for b in beats)
    return bool(offsets) or WITHOUT_IDS in modes


def acked_by_elimination(
    beats: Sequence[Row], blocks: Mapping[int, Block], offsets: Sequence[Row]
) -> dict[int, Block] | None:
    """The *blocks* with every id that was told nothing else as acked; None where not proven."""
    last = max((b for b in beats if b["closed"]), key=lambda b: b["number"], default=None)
    if last is None or not blocks or max(blocks) >= MOST_BLOCKS:
        return None
    total = last.get("records") or 0
    if not 0 < total <= MOST_BLOCKS * BLOCK_IDS:
        return None
    if any(n for b in beats for n in _counts(b, "dropped").values()):
        return None
    parts = _newest(offsets, last["reporter"])
    told = {
        number: _told(blocks[number]) if number in blocks else no_ids() for number in _of(total)
    }
    count = sum(p["records"] for p in parts) + sum(int(m.sum()) for m in told.values())
    if count != total or any(
        block.top() + number * BLOCK_IDS > total for number, block in blocks.items()
    ):
        return None
    receipts = [last["received_ms"], *(p["received_ms"] for p in parts)]
    receipts += [p.received_ms for b in blocks.values() for t in OUTCOME_TIERS for p in b.parts(t)]
    if any(ms is None for ms in receipts):
        return None
    found = dict(blocks)
    for number, mask in told.items():
        ids = np.flatnonzero(~mask[: min(BLOCK_IDS, total - number * BLOCK_IDS)])
        if ids.size:
            acked = Part(
                last["reporter"],
                -1,
                last["number"],
                encode_ids(ids),
                int(ids.size),
                received_ms=max(receipts),
            )
            found[number] = _with_acked(found.get(number, Block(number, {})), acked)
    return found


def _with_acked(block: Block, part: Part) -> Block:
    key = (Tier.ACKED_NO_OFFSET, "")
    return Block(block.number, {**block.tiers, key: (*block.parts(*key), part)}, block.implied)


def _of(total: int) -> range:
    return range((total - 1) // BLOCK_IDS + 1)


def _newest(offsets: Sequence[Row], reporter: str) -> list[Row]:
    """The newest report of each part of the *reporter*."""
    kept: dict[int, Row] = {}
    for row in offsets:
        if row["reporter"] == reporter:
            known = kept.get(row["part"])
            if known is None or _age(row) > _age(known):
                kept[row["part"]] = row
    return list(kept.values())


def _age(row: Row) -> tuple[int, int]:
    return (row["number"], -(row["received_ms"] or 0))


def _told(block: Block) -> Mask:
    """The ids of the block with an outcome."""
    return union(block.mask(tier) for tier in OUTCOME_TIERS)


_TOLD = frozenset(tier.value for tier in (*OUTCOME_TIERS, Tier.ACKED_OFFSETS))


def _counts(beat: Row, name: str) -> dict[str, int]:
    return {key: int(count) for key, count in dict(beat.get(name) or {}).items()}
