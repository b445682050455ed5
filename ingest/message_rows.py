"""One row per message, from any instrumentation, as audit reports.

Columns: session, topic, seq, tier and time, always; group, partition, offset, leader_epoch and
error where they apply; client_id and host of the producer with what it sent. Time is a timestamp,
an ISO 8601 text or milliseconds. A file is read when it is finished: it is known by its whole
content, so the same file is never counted twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acktrail.contracts.vocabulary import Tier
from acktrail.errors import UsageError
from acktrail.wire import BLOCK_BITS, BLOCK_IDS, Report, Sighting, encode_ids, encode_sightings
from acktrail.wire.encoder import PART_MS, steps_back

ROWS_AT_A_TIME = 1_000_000
_NEEDED = ("session", "topic", "seq", "tier", "time")
_NAMES = ("client_id", "host")
"""Of the producer: with them its audit, log lines and metrics meet."""
_TEXTS = ("session", "topic", "tier", "group", "error", "topic_id", *_NAMES)
_NUMBERS = ("seq", "partition", "offset", "leader_epoch")
_WITH_IDS = tuple(t.value for t in Tier if t not in (Tier.SCANNED, Tier.CONSUMED, Tier.HEARTBEAT))
Longs = npt.NDArray[np.int64]


@dataclass(frozen=True)
class MessageFile:
    """A finished file of per-message rows."""

    path: Path
    identity: str

    @classmethod
    def of(cls, path: Path) -> MessageFile:
        """The file, known by a hash of all its bytes."""
        digest = hashlib.sha256()
        try:
            with path.open("rb") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error.strerror}.") from None
        return cls(path, digest.hexdigest()[:32])

    def pieces(self) -> Iterator[pa.Table]:
        """The rows, a bounded number at a time."""
        try:
            if self.path.suffix == ".parquet":
                import pyarrow.parquet as pq

                for batch in pq.ParquetFile(self.path).iter_batches(ROWS_AT_A_TIME):
                    yield pa.Table.from_batches([batch])
                return
            from pyarrow import json as arrow_json

            options = arrow_json.ReadOptions(block_size=64 << 20)
            whole = arrow_json.read_json(str(self.path), options)
        except (pa.ArrowInvalid, OSError) as error:
            raise UsageError(
                f"{self.path} is neither Parquet nor JSON lines, one object per line: {error}"
            ) from None
        for start in range(0, whole.num_rows, ROWS_AT_A_TIME):
            yield whole.slice(start, ROWS_AT_A_TIME)


def message_reports(
    piece: pa.Table, reporter: str, first_row: int, reported_ms: int, origin: str = "the rows"
) -> list[Report]:
    """The reports that rows *first_row* and on make; the row number keeps parts apart."""
    columns = _columns(piece, origin)
    codes = _group_codes(columns)
    order = np.argsort(codes, kind="stable")
    bounds = np.flatnonzero(np.diff(codes[order], prepend=-1, append=-1))
    reports: list[Report] = []
    part = first_row
    for start, end in pairwise(bounds.tolist()):
        made = _group(columns, order[start:end], reporter, part, reported_ms)
        reports.extend(made)
        part += end - start
    reports.extend(_minutes(columns, reporter, first_row, reported_ms))
    return reports


@dataclass(frozen=True)
class _Columns:
    texts: dict[str, tuple[list[Any], Longs]]
    """Distinct values and, for each row, which."""
    seq: Longs
    partition: Longs
    offset: Longs
    """-1 where there is none."""
    leader_epoch: Longs
    time_ms: Longs

    def text(self, name: str, row: int) -> str:
        values, which = self.texts[name]
        return str(values[int(which[row])] or "")


def _columns(piece: pa.Table, origin: str) -> _Columns:
    missing = [name for name in _NEEDED if name not in piece.column_names]
    if missing:
        raise UsageError(
            f"{origin}: no column {', '.join(missing)}. A row needs {', '.join(_NEEDED)}; it may "
            "have group, partition, offset, leader_epoch, error, topic_id, client_id and host."
        )
    for name in _NEEDED:
        if piece.column(name).null_count:
            raise UsageError(f"{origin}: {name} is null in {piece.column(name).null_count} rows.")
    try:
        texts = {name: _text_codes(piece, name) for name in _TEXTS}
        numbers = {name: _numbers(piece, name) for name in _NUMBERS}
        times = _times(piece.column("time"))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UsageError(f"{origin}: a value cannot be read: {error}") from None
    strange = sorted({str(t) for t in texts["tier"][0]} - set(_WITH_IDS))
    if strange:
        raise UsageError(
            f"{origin}: {strange[0]!r} is no tier of a message. Known: {', '.join(_WITH_IDS)}."
        )
    if numbers["seq"].size and numbers["seq"].min() < 0:
        raise UsageError(f"{origin}: a seq is below 0.")
    return _Columns(texts, time_ms=times, **numbers)


def _text_codes(piece: pa.Table, name: str) -> tuple[list[Any], Longs]:
    if name not in piece.column_names:
        return [""], np.zeros(piece.num_rows, np.int64)
    column: Any = piece.column(name).cast(pa.string())
    encoded: Any = pc.fill_null(column, "").combine_chunks().dictionary_encode()
    return encoded.dictionary.to_pylist(), np.asarray(encoded.indices).astype(np.int64)


def _numbers(piece: pa.Table, name: str) -> Longs:
    if name not in piece.column_names:
        return np.full(piece.num_rows, -1, np.int64)
    column: Any = piece.column(name).cast(pa.int64())
    return np.asarray(pc.fill_null(column, -1), np.int64)


def _times(column: Any) -> Longs:
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return np.asarray(column.cast(pa.int64(), safe=False), np.int64)
    stamps = column.cast(pa.timestamp("us", tz="UTC"))
    return np.asarray(stamps.cast(pa.int64()), np.int64) // 1000


def _group_codes(columns: _Columns) -> Longs:
    """A number per row: equal where rows go into one report."""
    keys = [which for _, which in columns.texts.values()]
    slices = columns.time_ms // PART_MS
    slices = slices - slices.min(initial=1 << 50)
    keys += [columns.partition, columns.seq >> BLOCK_BITS, slices]
    keys.append((columns.offset >= 0).astype(np.int64))
    codes, spread = np.zeros(columns.seq.size, np.int64), 1
    for key in keys:
        lowest = int(key.min(initial=0))
        width = int(key.max(initial=0)) - lowest + 1
        if spread * width >= 1 << 62:
            _, codes = np.unique(codes, return_inverse=True)
            spread = int(codes.max(initial=0)) + 1
        codes, spread = codes * width + (key - lowest), spread * width
    return codes


def _group(
    columns: _Columns, which: Longs, reporter: str, part: int, reported_ms: int
) -> list[Report]:
    seqs = columns.seq[which]
    if np.unique(seqs).size != seqs.size:
        return _with_doubles(columns, which, reporter, part, reported_ms)
    row = int(which[0])
    offsets = columns.offset[which]
    placed = bool(offsets[0] >= 0)
    epoch = int(columns.leader_epoch[which].max())
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
            partition=max(-1, int(columns.partition[row])),
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
    columns: _Columns, which: Longs, reporter: str, part: int, reported_ms: int
) -> list[Report]:
    """Ids seen more than once: one sighting each, so that every record keeps its offset."""
    sightings = []
    for row in which.tolist():
        offset, epoch = int(columns.offset[row]), int(columns.leader_epoch[row])
        sightings.append(
            Sighting(
                session=columns.text("session", row),
                topic=columns.text("topic", row),
                seq=int(columns.seq[row]),
                tier=Tier(columns.text("tier", row)),
                at_ms=int(columns.time_ms[row]),
                partition=max(-1, int(columns.partition[row])),
                offset=offset if offset >= 0 else None,
                group=columns.text("group", row),
                leader_epoch=epoch if epoch >= 0 else None,
                error=columns.text("error", row) or None,
                topic_id=columns.text("topic_id", row) or None,
            )
        )
    return encode_sightings(sightings, reporter, part, reported_ms, first_part=part)


def _minutes(
    columns: _Columns, reporter: str, first_row: int, reported_ms: int
) -> Iterator[Report]:
    """For every session and topic that says what it sent: the first id of each minute."""
    tiers, which = columns.texts["tier"]
    if Tier.SENT.value not in tiers:
        return
    sent = np.flatnonzero(which == tiers.index(Tier.SENT.value))
    sessions, topics = columns.texts["session"][1][sent], columns.texts["topic"][1][sent]
    minutes, seqs = columns.time_ms[sent] // 60_000, columns.seq[sent]
    order = np.lexsort((seqs, minutes, topics, sessions))
    place = np.stack((sessions, topics, minutes))[:, order]
    first = np.flatnonzero(np.any(np.diff(place, axis=1, prepend=-1), axis=0))
    found: dict[tuple[int, int], list[int]] = {}
    named: dict[tuple[int, int], dict[str, str]] = {}
    for i in first.tolist():
        key = (int(place[0, i]), int(place[1, i]))
        found.setdefault(key, []).extend((int(place[2, i]), int(seqs[order[i]])))
        row = int(sent[order[i]])
        told = {name: columns.text(name, row) for name in _NAMES}
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
