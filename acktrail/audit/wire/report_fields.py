"""The fields of a report as JSON gives them: each is read by its type, or refused by ValueError.

Anybody may write to the audit topic. What is read here fits the table, so that no message stops the
source that reads it.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping
from typing import Any

from acktrail.contracts.vocabulary import Tier

LATEST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999: no later instant fits a table."""
_LONGEST = 1 << 62

Read = Callable[[Any], Any]


def field_readers(kinds: Mapping[str, str]) -> dict[str, Read]:
    """How each field is read; *kinds*: its annotation by its name."""
    return {name: _reader(name, kind) for name, kind in kinds.items()}


def _reader(name: str, kind: str) -> Read:
    plain = kind.removesuffix(" | None")
    read = _instant if name.endswith("_ms") and not name.startswith("latency") else _READERS[plain]

    def checked(value: Any) -> Any:
        if value is None and plain != kind:
            return None
        try:
            return read(value)
        except (TypeError, ValueError, AttributeError, OverflowError) as error:
            raise ValueError(f"`{name}` of an audit report is {value!r:.60}: {error}") from None

    return checked


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("text is expected")
    value.encode()  # half of a surrogate pair fits no table
    return value


def _number(value: Any) -> int:
    if type(value) is not int or not -_LONGEST <= value <= _LONGEST:
        raise TypeError("a whole number is expected")
    return value


def _instant(value: Any) -> int:
    if not 0 <= _number(value) <= LATEST_MS:
        raise ValueError("milliseconds since 1970 are expected")
    return int(value)


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError("true or false is expected")
    return value


def _bytes(value: Any) -> bytes:
    return base64.b64decode(_text(value), validate=True)


def _float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError("a number is expected")
    return float(value)


def _count(value: Any) -> int:
    if _number(value) < 0:
        raise ValueError("a count is expected")
    return int(value)


def _map_of(read: Read) -> Read:
    return lambda value: {_text(key): read(one) for key, one in value.items()}


_READERS: dict[str, Read] = {
    "str": _text,
    "int": _number,
    "bool": _truth,
    "bytes": _bytes,
    "Tier": Tier,
    "Sequence[int]": lambda value: tuple(_number(one) for one in _listed(value)),
    "Mapping[str, str]": _map_of(_text),
    "Mapping[str, int]": _map_of(_count),
    "Mapping[str, float]": _map_of(_float),
}


def _listed(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError("a list is expected")
    return value
