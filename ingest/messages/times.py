"""The times of per-message rows: which are wrong, and what to write instead.

A time is milliseconds since 1970, a text with a zone, or a timestamp with a zone. Nothing is
converted by guess: seconds read as milliseconds would put every loss into January 1970.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

EARLIEST_MS = 1_262_304_000_000
"""2010-01-01T00:00Z: no message of Kafka is older."""
AHEAD_MS = 86_400_000
"""The clock of a client may be ahead of ours by this much."""
_TEXT = r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d(:?\d\d)?)?$"
_ZONE = r"(Z|[+-]\d\d(:?\d\d)?)$"
_UNITS = (("seconds", 1000.0), ("microseconds", 1e-3), ("nanoseconds", 1e-6))
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WRITE = "write milliseconds since 1970 or a text with a zone, e.g. 2026-01-31T07:00:00.123Z"

Mask = npt.NDArray[np.bool_]
Check = tuple[Mask, Callable[[int], str]]


def wrong_times(column: Any, now_ms: int) -> Iterator[Check]:
    """Rows of the column *time* that are wrong, and what is wrong with one of them."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        values = np.asarray(pc.fill_null(column.cast(pa.float64(), safe=False), 0.0))
        yield _outside(values, now_ms), lambda row: _explain(column[row].as_py(), now_ms)
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        yield from _wrong_texts(column, now_ms)
    elif pa.types.is_timestamp(kind):
        if kind.tz is None:
            yield _all(column), lambda row: _without_zone(str(column[row].as_py()))
            return
        stamps = np.asarray(
            pc.fill_null(column.cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64()), 0)
        )
        yield _outside(stamps, now_ms), lambda row: _outside_text(int(stamps[row]))
    else:
        yield _all(column), lambda _row: f"time has the type {kind}; {_WRITE}"


def _wrong_texts(column: Any, now_ms: int) -> Iterator[Check]:
    readable = _matches(column, _TEXT)
    zoned = readable & _matches(column, _ZONE)
    yield ~readable, lambda row: f"time {column[row].as_py()!r} is not a time; {_WRITE}"
    yield readable & ~zoned, lambda row: _without_zone(column[row].as_py())
    good = pc.if_else(pa.array(zoned), column.combine_chunks(), pa.scalar(None, column.type))
    stamps = good.cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    values = np.asarray(pc.fill_null(stamps, 0)) // 1000
    yield zoned & _outside(values, now_ms), lambda row: _outside_text(int(values[row]))


def _matches(column: Any, pattern: str) -> Mask:
    found: Mask = np.asarray(pc.fill_null(pc.match_substring_regex(column, pattern), False), bool)
    return found


def _all(column: Any) -> Mask:
    return np.ones(len(column), bool)


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
    at = _EPOCH + timedelta(milliseconds=ms)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
