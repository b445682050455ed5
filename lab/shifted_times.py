"""What a client with a wrong clock would have printed: its lines with all their times shifted.

No line gets longer or shorter, so that receipts, which count bytes, stay right.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from acktrail.recorded_receipts import TIMED

_JAVA = re.compile(rb"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3})\]", re.MULTILINE)
_LIBRDKAFKA = re.compile(rb"^(%\d\|)(\d{10})\.(\d{3})\|", re.MULTILINE)
_FORMAT = "%Y-%m-%d %H:%M:%S"


def shift_output(text: bytes, by_ms: int, from_ms: int = 0) -> bytes:
    """JSON lines that a client printed, with each line's time, from a moment on, shifted."""

    def shifted(found: re.Match[bytes]) -> bytes:
        at_ms = int(found[2])
        return found[1] + str(at_ms + by_ms if at_ms >= from_ms else at_ms).encode()

    return b"".join(TIMED.sub(shifted, line, count=1) for line in text.splitlines(keepends=True))


def shift_log(text: bytes, by_ms: int, from_ms: int = 0) -> bytes:
    """A log in Kafka's stock layout, or librdkafka's: its times, from a moment on, shifted."""

    def java(found: re.Match[bytes]) -> bytes:
        if _java_ms(found) < from_ms:
            return found[0]
        at = _java_time(found) + timedelta(milliseconds=by_ms)
        return f"[{at.strftime(_FORMAT)},{at.microsecond // 1000:03}]".encode()

    def librdkafka(found: re.Match[bytes]) -> bytes:
        at_ms = _librdkafka_ms(found)
        if at_ms >= from_ms:
            at_ms += by_ms
        return found[1] + f"{at_ms // 1000}.{at_ms % 1000:03}|".encode()

    return _LIBRDKAFKA.sub(librdkafka, _JAVA.sub(java, text))


def line_time(line: bytes) -> int | None:
    """When a line of a log was printed, in epoch milliseconds; None: it goes on a record."""
    if found := _JAVA.match(line):
        return _java_ms(found)
    if found := _LIBRDKAFKA.match(line):
        return _librdkafka_ms(found)
    return None


def _java_time(found: re.Match[bytes]) -> datetime:
    whole = datetime.strptime(found[1].decode(), _FORMAT).replace(tzinfo=UTC)
    return whole + timedelta(milliseconds=int(found[2]))


def _java_ms(found: re.Match[bytes]) -> int:
    return (_java_time(found) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def _librdkafka_ms(found: re.Match[bytes]) -> int:
    return int(found[2]) * 1000 + int(found[3])
