"""Parts: what one reporter said of one block at one place, kept until a newer report of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from acktrail.audit.bitmaps import Longs, Mask, listed
from acktrail.audit.wire.runs import Runs, decode_runs, mask_of
from acktrail.contracts.silver import AUDIT_BLOCKS

FIELDS = tuple(field.name for field in AUDIT_BLOCKS.column("parts").fields)


@dataclass(frozen=True)
class Part:
    """One part. Times are milliseconds since the epoch; None where the reporter did not say."""

    reporter: str
    part: int
    number: int
    ids: bytes
    records: int = 0
    leader_epoch: int | None = None
    first_offset: int | None = None
    last_offset: int | None = None
    began_ms: int | None = None
    ended_ms: int | None = None
    steps_back: int | None = None
    latency_p50_ms: int | None = None
    latency_p99_ms: int | None = None
    latency_max_ms: int | None = None
    error: str = ""
    topic_id: str = ""

    @cached_property
    def runs(self) -> Runs:
        """The ids as runs."""
        return decode_runs(self.ids)

    @cached_property
    def mask(self) -> Mask:
        """The ids as a set."""
        return mask_of(self.runs)

    def places(self) -> tuple[Longs, Longs, Longs]:
        """Every id with the lowest and highest offset it may have; the same where known."""
        ids, offsets = listed(self.runs)
        return (ids, *self._between(ids.size)) if offsets is None else (ids, offsets, offsets)

    def find(self, ids: Longs) -> tuple[Longs, Longs, Longs]:
        """Which of *ids* (by index) are in the part, with the offsets they may have, as above."""
        runs = self.runs
        at = np.flatnonzero(self.mask[ids])
        if runs.offsets is None:
            return (at, *self._between(at.size))
        run = np.searchsorted(runs.starts, ids[at], "right") - 1
        offsets = runs.offsets[run] + ids[at] - runs.starts[run]
        return at, offsets, offsets

    def _between(self, count: int) -> tuple[Longs, Longs]:
        low = -1 if self.first_offset is None else self.first_offset
        high = -1 if self.last_offset is None else self.last_offset
        return np.full(count, low, np.int64), np.full(count, high, np.int64)


def newest(parts: Iterable[Part]) -> list[Part]:
    """The newest report of each part, whatever order and however often they came."""
    kept: dict[tuple[str, int], Part] = {}
    for part in parts:
        key = (part.reporter, part.part)
        if key not in kept or _age(part) > _age(kept[key]):
            kept[key] = part
    return [kept[key] for key in sorted(kept)]


def _age(part: Part) -> tuple[int, int, int, bytes]:
    """The report number decides; the rest only makes equal numbers come out the same."""
    return part.number, part.ended_ms or 0, part.records, part.ids


def fields_of(part: Part) -> dict[str, Any]:
    """*part* as a struct of `audit_blocks.parts`."""
    found = {name: getattr(part, name) for name in FIELDS}
    found["topic_id"] = part.topic_id or None
    return found


def part_of(row: Mapping[str, Any]) -> Part:
    """The part in a struct of `audit_blocks.parts`, or in a row of `audit_parts`."""
    found = {name: row[name] for name in FIELDS}
    found["topic_id"] = row["topic_id"] or ""
    return Part(**found)
