"""Per-message rows as audit reports.

Rows about messages become run lists of ids, a part for each block, place and ten seconds. Rows
about ranges become `consumed` reports. `ingest/messages/columns.py` lists the columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from acktrail.audit.wire import BLOCK_BITS, Report, Sighting, encode_sightings
from acktrail.audit.wire.encoder import PART_MS, encode_part
from acktrail.contracts.vocabulary import Tier
from ingest.messages.columns import PRODUCER, Columns, Longs, read_columns
from ingest.recorded import name_hash


def message_reports(
    piece: pa.Table, reporter: str, first_row: int, reported_ms: int, origin: str = "the rows"
) -> list[Report]:
    """The reports that rows *first_row* and on make; the row number keeps parts apart."""
    columns = read_columns(piece, origin)
    reports = list(_range_reports(columns, reporter, first_row, reported_ms))
    codes = _part_codes(columns)
    codes[columns.has_text("tier", Tier.CONSUMED)] = -1
    order = np.argsort(codes, kind="stable")
    order = order[np.searchsorted(codes[order], 0) :]
    bounds = np.flatnonzero(np.diff(codes[order], prepend=-1, append=-1))
    part = first_row
    for start, end in pairwise(bounds.tolist()):
        reports += _part_reports(columns, order[start:end], reporter, part, reported_ms)
        part += end - start
    reports += _heartbeats(columns, reporter, first_row, reported_ms)
    return reports


def _part_codes(columns: Columns) -> Longs:
    """A number per row: equal where rows go into one part."""
    keys = [which for _, which in columns.texts.values()]
    slices = columns.time_ms // PART_MS
    slices = slices - slices.min(initial=1 << 50)
    keys += [columns.numbers["partition"], columns.numbers["seq"] >> BLOCK_BITS, slices]
    keys.append((columns.numbers["offset"] >= 0).astype(np.int64))
    codes, spread = np.zeros(columns.numbers["seq"].size, np.int64), 1
    for key in keys:
        lowest = int(key.min(initial=0))
        width = int(key.max(initial=0)) - lowest + 1
        if spread * width >= 1 << 62:
            _, codes = np.unique(codes, return_inverse=True)
            spread = int(codes.max(initial=0)) + 1
        codes, spread = codes * width + (key - lowest), spread * width
    return codes


def _part_reports(
    columns: Columns, which: Longs, reporter: str, part: int, reported_ms: int
) -> list[Report]:
    """The report of the rows *which*; several where an id is seen more than once.

    Then each row is a sighting of its own, so that every record keeps its offset.
    """
    seqs = columns.numbers["seq"][which]
    if np.unique(seqs).size != seqs.size:
        sightings = [_sighting(columns, row) for row in which.tolist()]
        return encode_sightings(sightings, reporter, part, reported_ms, first_part=part)
    epoch = int(columns.numbers["leader_epoch"][which].max())
    place = replace(_sighting(columns, int(which[0])), leader_epoch=epoch if epoch >= 0 else None)
    offsets = None if place.offset is None else columns.numbers["offset"][which]
    times = columns.time_ms[which]
    return [encode_part(place, seqs, offsets, times, reporter, part, reported_ms, part)]


def _sighting(columns: Columns, row: int) -> Sighting:
    offset, epoch = (int(columns.numbers[name][row]) for name in ("offset", "leader_epoch"))
    return Sighting(
        session=columns.text("session", row),
        topic=columns.text("topic", row),
        seq=int(columns.numbers["seq"][row]),
        tier=Tier(columns.text("tier", row)),
        at_ms=int(columns.time_ms[row]),
        partition=max(-1, int(columns.numbers["partition"][row])),
        offset=offset if offset >= 0 else None,
        group=columns.text("group", row),
        leader_epoch=epoch if epoch >= 0 else None,
        error=columns.text("error", row) or None,
        topic_id=columns.text("topic_id", row) or None,
    )


def _heartbeats(
    columns: Columns, reporter: str, first_row: int, reported_ms: int
) -> Iterator[Report]:
    """For every session and topic with rows of tier `sent`: the first id of each minute."""
    tiers, which = columns.texts["tier"]
    if Tier.SENT.value not in tiers:
        return
    sent = np.flatnonzero(which == tiers.index(Tier.SENT.value))
    sessions, topics = columns.texts["session"][1][sent], columns.texts["topic"][1][sent]
    minutes, seqs = columns.time_ms[sent] // 60_000, columns.numbers["seq"][sent]
    order = np.lexsort((seqs, minutes, topics, sessions))
    place = np.stack((sessions, topics, minutes))[:, order]
    first = np.flatnonzero(np.any(np.diff(place, axis=1, prepend=-1), axis=0))
    found: dict[tuple[int, int], list[int]] = {}
    named: dict[tuple[int, int], dict[str, str]] = {}
    for i in first.tolist():
        key = (int(place[0, i]), int(place[1, i]))
        found.setdefault(key, []).extend((int(place[2, i]), int(seqs[order[i]])))
        row = int(sent[order[i]])
        told = {name: columns.text(name, row) for name in PRODUCER}
        named.setdefault(key, {}).update({name: text for name, text in told.items() if text})
    for (session, topic), pairs in found.items():
        yield Report(
            reporter=reporter,
            tier=Tier.HEARTBEAT,
            topic=str(columns.texts["topic"][0][topic]),
            session=str(columns.texts["session"][0][session]),
            number=first_row,
            part=first_row,
            reported_ms=reported_ms,
            minutes=tuple(pairs),
            settings=named[session, topic],
            ended_ms=int(columns.time_ms[sent].max()),
        )


def _range_reports(
    columns: Columns, reporter: str, first_row: int, reported_ms: int
) -> Iterator[Report]:
    """The `consumed` reports of a piece whose first row has the number *first_row* in its file.

    A row of tier `consumed` is one. Of messages delivered to a group, the lowest and the highest
    offset are: they prove where the group was, and nothing of what lies between.
    """
    numbers = columns.numbers
    given = np.flatnonzero(columns.has_text("tier", Tier.CONSUMED)).tolist()
    for row in [*given, *_outermost(columns)]:
        is_range = columns.text("tier", row) == Tier.CONSUMED
        member = columns.text("member", row) if is_range else ""
        first, last = (
            int(numbers[name][row])
            for name in (("first_offset", "last_offset") if is_range else ("offset", "offset"))
        )
        yield Report(
            reporter=name_hash(reporter, member) if member else reporter,
            tier=Tier.CONSUMED,
            topic=columns.text("topic", row),
            topic_id=columns.text("topic_id", row) or None,
            number=first_row + row,
            reported_ms=reported_ms,
            partition=int(numbers["partition"][row]),
            leader_epoch=columns.number("leader_epoch", row),
            group=columns.text("group", row),
            part=first_row + row,
            first_offset=first,
            last_offset=last,
            records=last - first + 1,
            # Without a number a range is on its own: what is between two may not be jumped over.
            assignment=columns.number("assignment", row) if is_range else None,
            began_ms=int(columns.time_ms[row]),
            ended_ms=int(columns.time_ms[row]),
        )


def _outermost(columns: Columns) -> list[int]:
    """Of each group and partition, the delivered rows with the lowest and the highest offset."""
    numbers = columns.numbers
    placed = columns.has_text("tier", Tier.DELIVERED) & ~columns.has_text("group", "")
    rows = np.flatnonzero(placed & (numbers["partition"] >= 0) & (numbers["offset"] >= 0))
    if not rows.size:
        return []
    place = np.stack(
        [
            *(columns.texts[name][1][rows] for name in ("topic", "topic_id", "group")),
            numbers["partition"][rows],
        ]
    )
    order = np.lexsort((numbers["offset"][rows], *place))
    changes = np.any(np.diff(place[:, order], axis=1), axis=0)
    firsts = np.concatenate(([0], np.flatnonzero(changes) + 1))
    lasts = np.concatenate((np.flatnonzero(changes), [rows.size - 1]))
    return sorted({*rows[order[firsts]].tolist(), *rows[order[lasts]].tolist()})
