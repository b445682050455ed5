"""A pattern: the words that announce an event, and the expression that reads it from there.

An expression is only ever matched at its marker, and every repetition in it is bounded, so that
reading costs linear time on any text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pipelines.reading.partitions import split_partition, topic_name

Fields = dict[str, Any]
_INTEGERS = (
    "correlation_id", "attempts_left", "records", "elapsed_ms", "node", "broker", "offset",
    "high_watermark", "leader", "leader_epoch", "partition",
)  # fmt: skip
_COUNTED = ("correlation_id", "attempts_left", "records", "elapsed_ms")
_TEXTS = ("error", "message", "client_id", "group", "version", "transactional_id", "topic_id")
_ISRS = ("isr_before", "isr_after")
_PLACEHOLDER = re.compile(r"\{\w{0,20}\}|%[sd]|(?<!\w)\$\{?[A-Za-z_]|\{\{")
_NUMBER = re.compile(r"-?\d{1,19}\Z")
_LONG = 2**63
_DIGITS = re.compile(r"\d{1,9}")


@dataclass(frozen=True, slots=True)
class Pattern:
    """How one text is read. *finish* may change the fields, or return False: no event after all."""

    marker: str
    regex: re.Pattern[str]
    kind: str
    detail: str
    finish: Callable[[Fields, re.Match[str], str], bool] | None = None
    sure: bool = False
    """Whether nobody else says the marker's words: where they stand, there is an event to read."""

    def read(self, text: str) -> tuple[Fields, int] | None:
        """The fields found at the first place that fits, and that place."""
        position = text.find(self.marker)
        for _ in range(4):
            if position < 0:
                return None
            found = self.regex.match(text, position)
            if found is not None and not _is_format(found):
                fields = _fields(found)
                fields["kind"], fields["detail"] = self.kind, self.detail
                if self.finish is None or self.finish(fields, found, text):
                    return fields, position
            position = text.find(self.marker, position + len(self.marker))
        return None


def pattern(
    marker: str,
    regex: str,
    kind: str,
    detail: str,
    finish: Callable[[Fields, re.Match[str], str], bool] | None = None,
    *,
    sure: bool = False,
) -> Pattern:
    """A pattern from its words; *regex* begins where *marker* begins."""
    return Pattern(marker, re.compile(regex, re.DOTALL), kind, detail, finish, sure)


def integer(text: str | None) -> int | None:
    """The number, or None where it is masked."""
    if text is None or _NUMBER.match(text) is None:
        return None
    value = int(text)
    return value if -_LONG <= value < _LONG else None


def _is_format(found: re.Match[str]) -> bool:
    """Whether a source file's format string was matched instead of a printed line.

    A number that was printed says that a person masked the rest.
    """
    said = [(name, value) for name, value in found.groupdict().items() if value is not None]
    if any(name in _COUNTED and _NUMBER.match(value) is not None for name, value in said):
        return False
    return any(is_template(value) for _, value in said)


def is_template(text: str) -> bool:
    """Whether *text* holds a place that its program would have filled in."""
    return _PLACEHOLDER.search(text) is not None


def _fields(found: re.Match[str]) -> Fields:
    fields: Fields = {}
    for name, value in found.groupdict().items():
        if value is None:
            continue
        if name in _INTEGERS:
            fields[name] = integer(value)
        elif name in _ISRS:
            fields[name] = tuple(int(digits) for digits in _DIGITS.findall(value)[:64])
        elif name == "tp":
            topic, partition, topic_id = split_partition(value)
            fields["topic"], fields["partition"] = topic, partition
            if topic_id is not None:
                fields["topic_id"] = topic_id
        elif name == "topic":
            fields["topic"] = topic_name(value)
        elif name in _TEXTS:
            fields[name] = value.strip() or None
    return fields
