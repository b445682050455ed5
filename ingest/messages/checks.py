"""What is wrong with per-message rows, by row: a file with one wrong row is refused whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acktrail.contracts.vocabulary import Tier
from acktrail.errors import UsageError
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
from ingest.messages.file import MessageFile
from ingest.messages.times import wrong_times

SHOWN = 5
"""Wrong rows that are named; the rest is counted."""

Check = tuple[Mask, Callable[[int], str]]
"""Rows of a piece that are wrong, and what is wrong with one of them."""


def refuse_wrong_rows(file: MessageFile, now_ms: int) -> None:
    """UsageError that names the first wrong rows of *file*, before any of it is written."""
    named: list[str] = []
    wrong = rows = 0
    for piece in file.pieces():
        found = _wrong_rows(piece, str(file.path), now_ms)
        for row in sorted(found)[: SHOWN - len(named)]:
            named.append(f"  row {rows + row + 1}: {found[row](row)}")
        wrong, rows = wrong + len(found), rows + piece.num_rows
    if not wrong:
        return
    if wrong > len(named):
        named.append(f"  and {wrong - len(named):,} more")
    are = "is" if wrong == 1 else "are"
    raise UsageError(
        f"{file.path}: {wrong:,} of {rows:,} rows {are} wrong; nothing of the file was written.\n"
        + "\n".join(named)
    )


def _wrong_rows(piece: pa.Table, origin: str, now_ms: int) -> dict[int, Callable[[int], str]]:
    """The wrong rows, each with its first reason."""
    require_columns(piece, origin)
    found: dict[int, Callable[[int], str]] = {}
    try:
        for mask, explain in _checks(piece, now_ms):
            for row in np.flatnonzero(mask).tolist():
                found.setdefault(row, explain)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UsageError(f"{origin}: a value cannot be read: {error}") from None
    return found


def _checks(piece: pa.Table, now_ms: int) -> Iterator[Check]:
    for name in ALWAYS:
        yield _missing(piece, name), _says(f"{name} is missing")
    tiers: Any = piece.column("tier").cast(pa.string())
    known = _mask(pc.is_in(tiers, pa.array(TIERS)))
    yield (
        ~known,
        lambda row: f"unknown tier {tiers[row].as_py()!r}; expected one of {', '.join(TIERS)}",
    )
    ranges = _mask(pc.equal(tiers, pa.scalar(Tier.CONSUMED.value)))
    for name in OF_A_MESSAGE:
        yield _missing(piece, name) & ~ranges, _says(f"{name} is missing")
    for name in OF_A_RANGE:
        yield _missing(piece, name) & ranges, _says(f"{name} is missing, for tier consumed")
    yield from _number_checks(piece, ranges)
    yield from wrong_times(piece.column("time"), now_ms)


def _number_checks(piece: pa.Table, ranges: Mask) -> Iterator[Check]:
    seq, first, last = (numbers_of(piece, n) for n in ("seq", "first_offset", "last_offset"))
    yield (seq < 0) & ~ranges, lambda row: f"seq {seq[row]} is below 0"
    backwards = ranges & (last < first)
    yield backwards, lambda row: f"last_offset {last[row]} is below first_offset {first[row]}"
    for name in ("partition", "first_offset", "assignment"):
        values = numbers_of(piece, name)
        below = ranges & (values < 0) & ~((name == "assignment") & (values == NONE))
        yield below, _below(name, values)


def _below(name: str, values: Any) -> Callable[[int], str]:
    return lambda row: f"{name} {values[row]} is below 0"


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


def _says(text: str) -> Callable[[int], str]:
    return lambda _row: text
