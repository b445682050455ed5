"""One row per message, from any instrumentation, as audit reports.

`ingest/messages/columns.py` lists the columns. A file is read when it is finished: it is known by
its whole content, so the same file is never counted twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa

from acktrail.audit.wire import (
    BLOCK_BITS,
    BLOCK_IDS,
    Report,
    Sighting,
    encode_ids,
    encode_sightings,
)
from acktrail.audit.wire.encoder import PART_MS, steps_back
from acktrail.contracts.vocabulary import Tier
from ingest.messages.columns import PRODUCER, Columns, Longs, read_columns
from ingest.messages.ranges import range_reports


def message_reports(
    piece: pa.Table, reporter: str, first_row: int, reported_ms: int, origin: str = "the rows"
) -> list[Report]:
    """The reports that rows *first_row* and on make; the row number keeps parts apart."""
    columns = read_columns(piece, origin)
    reports = list(range_reports(columns, reporter, first_row, reported_ms))
    codes = _group_codes(columns)
    codes[columns.has_text("tier", Tier.CONSUMED)] = -1
    order = np.argsort(codes, kind="stable")
    order = order[np.searchsorted(codes[order], 0) :]
    bounds = np.flatnonzero(np.diff(codes[order], prepend=-1, append=-1))
    part = first_row
    for start, end in pairwise(bounds.tolist()):
        made = _group(columns, order[start:end], reporter, part, reported_ms)
        reports.extend(made)
        part += end - start
    reports.extend(_minutes(columns, reporter, first_row, reported_ms))
    return reports


def _group_codes(columns: Columns) -> Longs:
    """A number per row: equal where rows go into one report."""
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


def _group(
    columns: Columns, which: Longs, reporter: str, part: int, reported_ms: int
) -> list[Report]:
    seqs = columns.numbers["seq"][which]
    if np.unique(seqs).size != seqs.size:
        return _with_doubles(columns, which, reporter, part, reported_ms)
    row = int(which[0])
    offsets = columns.numbers["offset"][which]
    placed = bool(offsets[0] >= 0)
    epoch = int(columns.numbers["leader_epoch"][which].max())
    error = columns.text("error", row)
    tier = Tier(columns.text("tier", row))
    times = columns.time_ms[which]
    return [
        Report(
            reporter=reporter,
            tier=tier,
            topic=columns.text("topic", row),
            number=part,
            reported_ms=reported_ms,
            session=columns.text("session", row),
            topic_id=columns.text("topic_id", row) or None,
            partition=max(-1, int(columns.numbers["partition"][row])),
            group=columns.text("group", row),
            block=int(seqs[0]) >> BLOCK_BITS,
            part=part,
            leader_epoch=epoch if epoch >= 0 else None,
            first_offset=int(offsets.min()) if placed else None,
            last_offset=int(offsets.max()) if placed else None,
            records=int(seqs.size),
            ids=encode_ids(seqs & (BLOCK_IDS - 1), offsets if placed else None),
            steps_back=steps_back(seqs, offsets) if placed else None,
            errors={error: str(seqs.size)} if error else {},
            began_ms=int(times.min()),
            ended_ms=int(times.max()),
        )
    ]


def _with_doubles(
    columns: Columns, which: Longs, reporter: str, part: int, reported_ms: int
) -> list[Report]:
    """Ids seen more than once: one sighting each, so that every record keeps its offset."""
    sightings = []
    for row in which.tolist():
        offset, epoch = (
            int(columns.numbers["offset"][row]),
            int(columns.numbers["leader_epoch"][row]),
        )
        sightings.append(
            Sighting(
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
        )
    return encode_sightings(sightings, reporter, part, reported_ms, first_part=part)


def _minutes(columns: Columns, reporter: str, first_row: int, reported_ms: int) -> Iterator[Report]:
    """For every session and topic that says what it sent: the first id of each minute."""
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
