"""From one row per message to reports: what any instrumentation saw, as run lists."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from acktrail.audit.wire.identity import BLOCK_BITS, BLOCK_IDS
from acktrail.audit.wire.report import Report
from acktrail.audit.wire.run_lists import encode_ids
from acktrail.contracts.vocabulary import Tier

Longs = npt.NDArray[np.int64]

PART_MS = 10_000
"""A part covers at most so long: the times of its ids are known that well."""


@dataclass(frozen=True)
class Sighting:
    """One message seen at one tier. *at_ms*: sent, acked, failed, read or delivered at."""

    session: str
    topic: str
    seq: int
    tier: Tier
    at_ms: int
    partition: int = -1
    offset: int | None = None
    group: str = ""
    leader_epoch: int | None = None
    error: str | None = None
    topic_id: str | None = None


def encode_sightings(
    sightings: Iterable[Sighting],
    reporter: str,
    number: int,
    reported_ms: int,
    first_part: int = 0,
) -> list[Report]:
    """Reports for *sightings*, which are in the order seen; parts are numbered from *first_part*.

    A part holds one block, place and error of at most ten seconds. An id seen at a second offset
    goes to a further part, so that every record keeps its offset; one read again at the same
    offset only counts as a record. The next call's *first_part* must be higher than every part
    made so far.
    """
    groups: dict[tuple[object, ...], list[Sighting]] = {}
    layers: dict[tuple[object, ...], dict[int | None, int]] = {}
    for s in sightings:
        key = (
            *(s.session, s.topic, s.topic_id, s.partition, s.tier, s.group),
            *(s.seq >> BLOCK_BITS, s.error, s.offset is None, s.at_ms // PART_MS),
        )
        seen_at = layers.setdefault((*key[:-1], s.seq), {})
        layer = seen_at.setdefault(s.offset, len(seen_at))
        groups.setdefault((*key, layer), []).append(s)
    return [
        _part(seen, reporter, number, reported_ms, first_part + index)
        for index, seen in enumerate(groups.values())
    ]


def _part(seen: list[Sighting], reporter: str, number: int, reported_ms: int, part: int) -> Report:
    epoch = max((s.leader_epoch for s in seen if s.leader_epoch is not None), default=None)
    seqs = np.array([s.seq for s in seen], np.int64)
    offsets = None if seen[0].offset is None else np.array([s.offset for s in seen], np.int64)
    times = np.array([s.at_ms for s in seen], np.int64)
    place = replace(seen[0], leader_epoch=epoch)
    report = encode_part(place, seqs, offsets, times, reporter, number, reported_ms, part)
    if place.tier is not Tier.DELIVERED:
        return report
    again = 0  # records at or below an offset already seen
    if offsets is not None:
        again = int((offsets[1:] <= np.maximum.accumulate(offsets)[:-1]).sum())
    return replace(report, redelivered=again)


def encode_part(
    place: Sighting,
    seqs: Longs,
    offsets: Longs | None,
    times: Longs,
    reporter: str,
    number: int,
    reported_ms: int,
    part: int,
) -> Report:
    """The report of one part: *seqs* of one block, all seen where and as *place* was."""
    return Report(
        reporter=reporter,
        tier=place.tier,
        topic=place.topic,
        number=number,
        reported_ms=reported_ms,
        session=place.session,
        topic_id=place.topic_id,
        partition=place.partition,
        group=place.group,
        block=place.seq >> BLOCK_BITS,
        part=part,
        leader_epoch=place.leader_epoch,
        first_offset=None if offsets is None else int(offsets.min()),
        last_offset=None if offsets is None else int(offsets.max()),
        records=int(seqs.size),
        ids=encode_ids(seqs & (BLOCK_IDS - 1), offsets),
        steps_back=None if offsets is None else _steps_back(seqs, offsets),
        errors={place.error: str(np.unique(seqs).size)} if place.error else {},
        began_ms=int(times.min()),
        ended_ms=int(times.max()),
    )


def _steps_back(seqs: Longs, offsets: Longs) -> int:
    """How often a seq is lower than the one before it, in offset order, each offset once."""
    _, first = np.unique(offsets, return_index=True)
    return int((np.diff(seqs[first]) < 0).sum())
