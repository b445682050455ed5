"""What is wrong with per-message rows, by row: a file with one wrong row is refused whole.

A time is milliseconds since 1970, a text with a zone, or a timestamp with a zone. Nothing is
converted by guess: seconds read as milliseconds would put every loss into January 1970.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acktrail.contracts.vocabulary import Tier
from acktrail.errors import UsageError
from acktrail.window import from_epoch_ms
from ingest.messages.columns import (
    ALWAYS,
    NONE,
    OF_A_MESSAGE,
    OF_A_RANGE,
    TIERS,
    Mask,
    numbers_of,
    require_columns,
)

SHOWN = 5
"""Wrong rows that are named; the rest is counted."""
EARLIEST_MS = 1_262_304_000_000
"""2010-01-01T00:00Z: no message of Kafka is older."""
AHEAD_MS = 86_400_000
"""The clock of a client may be ahead of ours by this much."""
_TEXT = r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d(:?\d\d)?)?$"
_ZONE = r"(Z|[+-]\d\d(:?\d\d)?)$"
_UNITS = (("seconds", 1000.0), ("microseconds", 1e-3), ("nanoseconds", 1e-6))
_WRITE = "write milliseconds since 1970 or a text with a zone, e.g. 2026-01-31T07:00:00.123Z"

Explain = Callable[[int], str]
"""What is wrong with one row, by its number in the piece."""
Check = tuple[Mask, str | Explain]
"""Rows of a piece that are wrong, and what is wrong with them."""


def refuse_wrong_rows(pieces: Iterable[pa.Table], origin: str, now_ms: int) -> None:
    """UsageError that names the first wrong rows of a file, before any of it is written."""
    named: list[str] = []
    wrong = rows = 0
    for piece in pieces:
        require_columns(piece, origin)
        found: dict[int, str | Explain] = {}  # the first reason of each wrong row
        try:
            for mask, why in _checks(piece, now_ms):
                for row in np.flatnonzero(mask).tolist():
                    found.setdefault(row, why)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise UsageError(f"{origin}: a value cannot be read: {error}") from None
        for row in sorted(found)[: SHOWN - len(named)]:
            why = found[row]
            named.append(f"  row {rows + row + 1}: {why if isinstance(why, str) else why(row)}")
        wrong, rows = wrong + len(found), rows + piece.num_rows
    if not wrong:
        return
    if wrong > len(named):
        named.append(f"  and {wrong - len(named):,} more")
    are = "is" if wrong == 1 else "are"
    raise UsageError(
        f"{origin}: {wrong:,} of {rows:,} rows {are} wrong; nothing of the file was written.\n"
        + "\n".join(named)
    )


def _checks(piece: pa.Table, now_ms: int) -> Iterator[Check]:
    for name in ALWAYS:
        yield _missing(piece, name), f"{name} is missing"
    tiers: Any = piece.column("tier").cast(pa.string())
    known = _mask(pc.is_in(tiers, pa.array(TIERS)))
    yield (
        ~known,
        lambda row: f"unknown tier {tiers[row].as_py()!r}; expected one of {', '.join(TIERS)}",
    )
    ranges = _mask(pc.equal(tiers, pa.scalar(Tier.CONSUMED.value)))
    for name in OF_A_MESSAGE:
        yield _missing(piece, name) & ~ranges, f"{name} is missing"
    for name in OF_A_RANGE:
        yield _missing(piece, name) & ranges, f"{name} is missing, for tier consumed"
    seq, first, last, partition, assignment = (
        numbers_of(piece, name)
        for name in ("seq", "first_offset", "last_offset", "partition", "assignment")
    )
    yield (seq < 0) & ~ranges, lambda row: f"seq {seq[row]} is below 0"
    yield (
        ranges & (last < first),
        lambda row: f"last_offset {last[row]} is below first_offset {first[row]}",
    )
    yield ranges & (partition < 0), lambda row: f"partition {partition[row]} is below 0"
    yield ranges & (first < 0), lambda row: f"first_offset {first[row]} is below 0"
    yield (
        ranges & (assignment < 0) & (assignment != NONE),
        lambda row: f"assignment {assignment[row]} is below 0",
    )
    yield from _wrong_times(piece.column("time"), now_ms)


def _missing(piece: pa.Table, name: str) -> Mask:
    """Rows without a value, or with an empty text."""
    if name not in piece.column_names:
        return np.ones(piece.num_rows, bool)
    column: Any = piece.column(name)
    empty = _mask(pc.is_null(column))
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        empty |= _mask(pc.equal(column, pa.scalar("", column.type)))
    return empty


def _mask(found: Any) -> Mask:
    mask: Mask = np.asarray(pc.fill_null(found, False), bool)
    return mask


def _wrong_times(column: Any, now_ms: int) -> Iterator[Check]:
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        values = np.asarray(pc.fill_null(column.cast(pa.float64(), safe=False), 0.0))
        yield _outside(values, now_ms), lambda row: _explain(column[row].as_py(), now_ms)
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        yield from _wrong_texts(column, now_ms)
    elif pa.types.is_timestamp(kind) and kind.tz is None:
        yield np.ones(len(column), bool), lambda row: _without_zone(str(column[row].as_py()))
    elif pa.types.is_timestamp(kind):
        stamps = np.asarray(
            pc.fill_null(column.cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64()), 0)
        )
        yield _outside(stamps, now_ms), lambda row: _outside_text(int(stamps[row]))
    else:
        yield np.ones(len(column), bool), f"time has the type {kind}; {_WRITE}"


def _wrong_texts(column: Any, now_ms: int) -> Iterator[Check]:
    readable = _mask(pc.match_substring_regex(column, _TEXT))
    zoned = readable & _mask(pc.match_substring_regex(column, _ZONE))
    yield ~readable, lambda row: f"time {column[row].as_py()!r} is not a time; {_WRITE}"
    yield readable & ~zoned, lambda row: _without_zone(column[row].as_py())
    good = pc.if_else(pa.array(zoned), column.combine_chunks(), pa.scalar(None, column.type))
    stamps = good.cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    values = np.asarray(pc.fill_null(stamps, 0)) // 1000
    yield zoned & _outside(values, now_ms), lambda row: _outside_text(int(values[row]))


def _outside(ms: npt.NDArray[Any], now_ms: int) -> Mask:
    inside: Mask = (ms >= EARLIEST_MS) & (ms <= now_ms + AHEAD_MS)
    return ~inside


def _explain(value: float, now_ms: int) -> str:
    """A number that is not a time in milliseconds: in which unit it would be one."""
    for unit, factor in _UNITS:
        ms = round(value * factor) if value == value else 0  # noqa: PLR0124 (not NaN)
        if EARLIEST_MS <= ms <= now_ms + AHEAD_MS:
            return f"time {value} looks like {unit}; write milliseconds ({ms}) or text ({_iso(ms)})"
    return _outside_text(value)


def _outside_text(ms: float) -> str:
    try:
        shown = _iso(round(ms))
    except (OverflowError, ValueError):
        return f"time {ms} is not a time in milliseconds; {_WRITE}"
    where = "before 2010" if ms < EARLIEST_MS else "in the future"
    return f"time {shown} is {where}; {_WRITE}"


def _without_zone(text: str) -> str:
    return f"time {text} has no zone; write it with one, e.g. {text.replace(' ', 'T')}Z for UTC"


def _iso(ms: int) -> str:
    at = from_epoch_ms(ms)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
