"""A pattern: everything that is known of one wording, in one place.

Its words (every prefilter is made of them), its expression, its kind, and how its record goes on.
An expression is only ever matched at its marker, and every repetition in it is bounded, so that
reading costs linear time on any text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from acktrail.logs.event import KINDS, UnreadRecord
from acktrail.logs.layout import Layout, Text
from acktrail.logs.partitions import split_partition, topic_name

Fields = dict[str, Any]
Finish = Callable[[Fields, re.Match[str], str], bool]
"""May change the fields, or return False: not an event after all."""
_INTEGERS = (
    "correlation_id", "attempts_left", "records", "elapsed_ms", "node", "broker", "offset",
    "high_watermark", "leader", "leader_epoch", "partition",
)  # fmt: skip
_TEXTS = ("error", "message", "client_id", "group", "version", "transactional_id", "topic_id")
_ISRS = ("isr_before", "isr_after")
_NUMBER = re.compile(r"-?\d{1,19}\Z")
_LONG = 2**63
_DIGITS = re.compile(r"\d{1,9}")
OF_OTHER_CLIENTS = re.compile(r"onsumer|dminClient|KafkaAdmin")
"""What stands in lines of consumers and admin clients, which words may be shared with."""
_TRIES = 4
"""Places of a marker that are tried, from the front and from the back."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a pattern read, and where its text begins."""

    fields: Fields
    position: int
    layout: Layout | None = None
    """Given where the text has a layout of its own; then no speaker is looked for either."""


@dataclass(frozen=True, slots=True)
class Stock:
    """A sentence in Kafka's stock layout, which Spark reads a column at a time."""

    regex: str
    """The whole sentence for RE2, with the names of the fields and a blank between all words."""
    logger: str


@dataclass(frozen=True, slots=True)
class Pattern:
    """One wording."""

    kind: str
    """The kind of its events; a reader of several kinds of one side names the commonest."""
    detail: str
    words: tuple[str, ...]
    """A text that holds none of them is not read, nor kept by an agent."""
    read: Callable[[Text, str], Found | UnreadRecord | None]
    """Reads a record, given as it was printed and on one line."""
    sure: tuple[str, ...] = ()
    """Words that only this wording has: a record that holds one is an event, or is unread."""
    shared: bool = False
    """Whether other programs use its words too, and what stands around them decides."""
    may_refuse: bool = False
    """Whether its reader may call a record unread that holds none of its sure words."""
    example: str = ""
    """A text that it reads."""
    continues: tuple[str, ...] = ()
    """Expressions for the beginning of a line on which its sentence goes on."""
    opens: tuple[str, ...] = ()
    """Expressions for a line that opens a record, though it has neither time nor level."""
    alone: str = ""
    """Words after which an exception on the next line belongs to another record."""
    stock: Stock | None = None

    @property
    def side(self) -> str:
        """Who prints it: producer, consumer or broker."""
        return KINDS[self.kind][0]


def pattern(
    marker: str,
    regex: str,
    kind: str,
    detail: str,
    finish: Finish | None = None,
    *,
    words: tuple[str, ...] = (),
    sure: bool | tuple[str, ...] = False,
    shared: bool = False,
    example: str = "",
    continues: tuple[str, ...] = (),
    opens: tuple[str, ...] = (),
    alone: str = "",
    stock: Stock | None = None,
) -> Pattern:
    """A pattern of one sentence; *regex* begins where *marker* begins.

    Its words are *marker* unless others are given; *sure* may stand for *marker* too.
    """
    expression = re.compile(regex, re.DOTALL)

    def read(_: Text, flat: str) -> Found | None:
        for position in _places(flat, marker):
            found = expression.match(flat, position)
            if found is not None:
                fields = _fields(found)
                fields["kind"], fields["detail"] = kind, detail
                if finish is None or finish(fields, found, flat):
                    return Found(fields, position)
        return None

    known = (marker,) if sure is True else sure or ()
    return Pattern(
        kind, detail, words or (marker,), read, known, shared,
        example=example, continues=continues, opens=opens, alone=alone, stock=stock,
    )  # fmt: skip


def _places(text: str, marker: str) -> Iterator[int]:
    """Where *marker* stands: the first places, and the last."""
    position = -len(marker)
    for _ in range(_TRIES):
        position = text.find(marker, position + len(marker))
        if position < 0:
            return
        yield position
    last = len(text)
    for _ in range(_TRIES):
        last = text.rfind(marker, position + len(marker), last)
        if last < 0:
            return
        yield last


def integer(text: str | None) -> int | None:
    """The number, or None where it is masked."""
    if text is None or _NUMBER.match(text) is None:
        return None
    value = int(text)
    return value if -_LONG <= value < _LONG else None


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
