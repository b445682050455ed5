"""The columns of per-message rows as arrays.

Every row has tier, topic and time. A row about one message has session and seq; group, partition,
offset, leader_epoch and error where they apply; client_id and host of the producer with what it
sent. A row of tier `consumed` is about a range that a member of a group has read: group,
partition, first_offset and last_offset; member and assignment where known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acktrail.contracts.vocabulary import Tier
from acktrail.errors import UsageError

ALWAYS = ("topic", "tier", "time")
OF_A_MESSAGE = ("session", "seq")
OF_A_RANGE = ("group", "partition", "first_offset", "last_offset")
PRODUCER = ("client_id", "host")
"""Of the producer: with them its audit, log lines and metrics meet."""
TEXTS = ("session", "topic", "tier", "group", "error", "topic_id", "member", *PRODUCER)
NUMBERS = (
    *("seq", "partition", "offset", "leader_epoch", "first_offset", "last_offset"),
    "assignment",
)
TIERS = tuple(t.value for t in Tier if t not in (Tier.SCANNED, Tier.HEARTBEAT, Tier.ACKED_OFFSETS))
NONE = -1
"""In place of a number that a row does not have."""
Longs = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Columns:
    """The rows of one piece."""

    texts: dict[str, tuple[list[Any], Longs]]
    """Distinct values and, for each row, which."""
    numbers: dict[str, Longs]
    time_ms: Longs

    def text(self, name: str, row: int) -> str:
        """The text of one row; empty where it has none."""
        values, which = self.texts[name]
        return str(values[int(which[row])] or "")

    def number(self, name: str, row: int) -> int | None:
        """The number of one row; None where it has none."""
        value = int(self.numbers[name][row])
        return None if value == NONE else value

    def has_text(self, name: str, *wanted: str) -> Mask:
        """The rows that have one of the *wanted* texts."""
        values, which = self.texts[name]
        codes = [code for code, value in enumerate(values) if value in wanted]
        found: Mask = np.isin(which, codes)
        return found


def require_columns(piece: pa.Table, origin: str) -> None:
    """UsageError where a column that every row needs is missing."""
    missing = [name for name in ALWAYS if name not in piece.column_names]
    if missing:
        raise UsageError(
            f"{origin}: no column {', '.join(missing)}. A row needs {', '.join(ALWAYS)}, and of a "
            f"message {' and '.join(OF_A_MESSAGE)}; docs/wire.md lists all columns."
        )


def read_columns(piece: pa.Table, origin: str) -> Columns:
    """The columns of *piece*; UsageError where one is missing or has the wrong type."""
    require_columns(piece, origin)
    try:
        texts = {name: _text_codes(piece, name) for name in TEXTS}
        numbers = {name: numbers_of(piece, name) for name in NUMBERS}
        return Columns(texts, numbers, _times(piece.column("time")))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UsageError(f"{origin}: a value cannot be read: {error}") from None


def _text_codes(piece: pa.Table, name: str) -> tuple[list[Any], Longs]:
    if name not in piece.column_names:
        return [""], np.zeros(piece.num_rows, np.int64)
    column: Any = piece.column(name).cast(pa.string())
    encoded: Any = pc.fill_null(column, "").combine_chunks().dictionary_encode()
    return encoded.dictionary.to_pylist(), np.asarray(encoded.indices).astype(np.int64)


def numbers_of(piece: pa.Table, name: str) -> Longs:
    """A column of numbers; NONE where a row has none."""
    if name not in piece.column_names:
        return np.full(piece.num_rows, NONE, np.int64)
    column: Any = piece.column(name).cast(pa.int64())
    return np.asarray(pc.fill_null(column, NONE), np.int64)


def _times(column: Any) -> Longs:
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return np.asarray(column.cast(pa.int64(), safe=False), np.int64)
    stamps = column.cast(pa.timestamp("us", tz="UTC"))
    return np.asarray(stamps.cast(pa.int64()), np.int64) // 1000
