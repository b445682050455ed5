"""Log lines as shippers put them into Kafka: one JSON object each, in three shapes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

_FRACTION = re.compile(r"\.(\d{1,12})")


@dataclass(frozen=True, slots=True)
class ShippedLine:
    """What a shipper says of one line, or of an event it has joined itself."""

    text: str
    host: str | None
    path: str | None
    shipped_at: datetime | None


def read_shipped(value: bytes | None, shape: str) -> ShippedLine | None:
    """The line in a message of this *shape*; None where there is none."""
    if value is None:
        return None
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    line = SHAPES[shape](found)
    return line if isinstance(line.text, str) else None


def _filebeat(found: Mapping[str, Any]) -> ShippedLine:
    """{"@timestamp": …, "message": …, "host": {"name": …}, "log": {"file": {"path": …}}}."""
    container = _text(found, "kubernetes", "pod", "name") or _text(found, "container", "name")
    return ShippedLine(
        found.get("message"),  # type: ignore[arg-type]
        container or _text(found, "host", "name") or _text(found, "agent", "hostname"),
        _text(found, "log", "file", "path"),
        moment(found.get("@timestamp")),
    )


def _vector(found: Mapping[str, Any]) -> ShippedLine:
    """{"timestamp": …, "message": …, "host": …, "file": …}."""
    return ShippedLine(
        found.get("message"),  # type: ignore[arg-type]
        _text(found, "kubernetes", "pod_name")
        or _text(found, "container_name")
        or _text(found, "host"),
        _text(found, "file"),
        moment(found.get("timestamp")),
    )


def _fluent_bit(found: Mapping[str, Any]) -> ShippedLine:
    """{"@timestamp": 1706700000.5, "log": …}, with what its filters add."""
    text = found.get("log", found.get("message"))
    return ShippedLine(
        text.rstrip("\r\n") if isinstance(text, str) else text,
        _text(found, "kubernetes", "pod_name")
        or _text(found, "hostname")
        or _text(found, "host")
        or _text(found, "container_name"),
        _text(found, "path") or _text(found, "filename") or _text(found, "filepath"),
        moment(found.get("@timestamp", found.get("date", found.get("time")))),
    )


SHAPES: dict[str, Callable[[Mapping[str, Any]], ShippedLine]] = {
    "filebeat": _filebeat,
    "vector": _vector,
    "fluent_bit": _fluent_bit,
}


def moment(value: object) -> datetime | None:
    """An instant written as ISO 8601 or as seconds since 1970; None for anything else."""
    try:
        if isinstance(value, bool):
            return None
        if isinstance(value, int | float):
            return datetime.fromtimestamp(value, UTC)
        if isinstance(value, str):
            cut = _FRACTION.sub(lambda f: "." + f.group(1)[:6].ljust(6, "0"), value)
            found = datetime.fromisoformat(cut)
            return found if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None


def _text(found: Mapping[str, Any], *keys: str) -> str | None:
    """The text at *keys*; shippers also write a path of keys as one key with dots."""
    value: Any = found
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    if value is None and len(keys) > 1:
        value = found.get(".".join(keys))
    return value if isinstance(value, str) and value else None
