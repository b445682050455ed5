"""The lines that most of any log's evidence is made of, read a whole column at a time.

Kafka's stock layout around the sentences of the patterns that have a `stock` form. RE2 finds in an
Arrow column the rows that have exactly that shape, without capturing anything; their words then
stand at known places, and a field is worked out once for each different word. What is read here is
what the reader reads, row by row (a test checks it); every other row is left to the reader.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from acktrail.logs.kafka_errors import category, retriable
from acktrail.logs.pattern import Pattern, Stock
from acktrail.logs.patterns import PATTERNS

Array = Any
"""An Arrow array; the compute functions take and give too many kinds to name."""
pc: Any = pyarrow.compute

_HEAD = (
    r"^\[(?P<moment>\d\d\d\d-\d\d-\d\d \d\d:\d\d:\d\d),(?P<millis>\d\d\d)\] (?P<level>[A-Z]+) "
    r"\[Producer clientId=(?P<client_id>[^\[\]<>,|#\s]+)\] "
)
_HEAD_WORDS = 5
"""Words before the sentence: `[date`, `time]`, `LEVEL`, `[Producer`, `clientId=name]`."""
_GROUP = re.compile(r"\(\?P<(\w+)>")
_NUMBERS = ("correlation_id", "attempts_left", "node", "elapsed_ms")


@dataclass(frozen=True, slots=True)
class Line:
    """A pattern's sentence in the stock layout: the expression for the whole record, and the place
    of each field among the sentence's words; the last word is all the rest."""

    words: str
    kind: str
    detail: str
    logger: str
    regex: str
    numbers: Mapping[str, int]
    place: int | None
    error: int | None
    rest: re.Pattern[str] | None
    """Read from the error's word on: `error` and `message`."""

    @property
    def shape(self) -> str:
        """The expression without captures, which RE2 answers several times as fast."""
        return _GROUP.sub("(?:", self.regex)


def _line(pattern: Pattern, stock: Stock) -> Line:
    """Where the fields of *pattern* stand: a field's word has as many blanks before it."""
    sentence = stock.regex
    at = {found.group(1): found.start() for found in _GROUP.finditer(sentence)}
    places = {name: sentence.count(" ", 0, start) for name, start in at.items()}
    rest = None
    if "error" in at:
        rest = re.compile(sentence[sentence.rfind(" ", 0, at["error"]) + 1 :] + r" \(")
    return Line(
        words=pattern.words[0],
        kind=pattern.kind,
        detail=pattern.detail,
        logger=stock.logger,
        regex=rf"{_HEAD}{sentence} \((?P<logger>{re.escape(stock.logger)})\)$",
        numbers={name: places[name] for name in _NUMBERS if name in places},
        place=places.get("topic"),
        error=places.get("error"),
        rest=rest,
    )


LINES = tuple(_line(pattern, pattern.stock) for pattern in PATTERNS if pattern.stock is not None)
_TOO_LONG = 15
"""Digits a number may have here; longer ones are left to the reader."""


def read_common(
    batch: pa.RecordBatch, out: pa.Schema
) -> tuple[list[pa.RecordBatch], pa.RecordBatch]:
    """Rows of `producer_events` for the common lines in *batch*, and the rows that are left."""
    read: list[pa.RecordBatch] = []
    left = batch
    for line in LINES:
        fits = pc.match_substring_regex(left.column("text"), line.shape)
        rows = _rows(line, left.filter(fits), out) if pc.any(fits).as_py() else None
        if rows is not None:
            read.append(rows)
            left = left.filter(pc.invert(fits))
    return read, left


def _rows(line: Line, records: pa.RecordBatch, out: pa.Schema) -> pa.RecordBatch | None:
    """One row for each record, all of which fit *line*; None where one had better be read alone."""
    texts = records.column("text")
    at = _instants(records)
    fields = _fields(line, _words(line, texts))
    if at is None or fields is None:
        return None
    count = records.num_rows
    position = pc.cast(records.column("position"), pa.string())
    key = pc.binary_join_element_wise(
        records.column("source"), records.column("file_id"), position, "/"
    )
    columns = {
        "cluster": records.column("cluster"),
        "source": records.column("source"),
        "host": records.column("host"),
        "record_key": key,
        "event_key": key,
        "kind": pa.repeat(line.kind, count),
        "detail": pa.repeat(line.detail, count),
        "logger": pa.repeat(line.logger, count),
        "at": at,
        "hour": _hours(at),
        **fields,
    }
    arrays = [columns.get(f.name, pa.nulls(count, f.type)).cast(f.type) for f in out]
    return pa.RecordBatch.from_arrays(arrays, schema=out)


def _words(line: Line, texts: Array) -> Callable[[int], Array]:
    """The word at each place of the whole line; the last one is all the rest."""
    places = [*line.numbers.values(), line.place or 0, (line.error or 0) - 1]
    last = _HEAD_WORDS + max(places) + 1
    flat = pc.split_pattern(texts, " ", max_splits=last).values
    starts = np.arange(0, len(flat), last + 1)
    return lambda place: flat.take(pa.array(starts + place))


def _fields(line: Line, word: Callable[[int], Array]) -> dict[str, Array] | None:
    """The columns that the line's words fill; None where a value is too long to be read here."""
    fields = {
        "level": _each(word(2), lambda text: text),
        "client_id": _each(word(4), lambda text: text[len("clientId=") : -1]),
    }
    for name, place in line.numbers.items():
        digits = pc.utf8_trim(word(_HEAD_WORDS + place), characters="(),.ms")
        if pc.max(pc.binary_length(digits)).as_py() > _TOO_LONG:
            return None
        fields[name] = pc.cast(digits, pa.int64())
    if line.place is not None:
        place = word(_HEAD_WORDS + line.place).dictionary_encode()
        split = [text.rstrip(",").rpartition("-") for text in place.dictionary.to_pylist()]
        if any(len(topic) > 249 or len(number) > 9 for topic, _, number in split):
            return None
        topics = pa.array([topic for topic, _, _ in split], pa.string())
        fields["topic"] = topics.take(place.indices)
        numbers = pa.array([int(number) for _, _, number in split], pa.int64())
        fields["partition"] = numbers.take(place.indices)
    if line.error is not None and line.rest is not None:
        fields |= _errors(word(_HEAD_WORDS + line.error), line.rest)
    return fields


def _errors(rest: Array, regex: re.Pattern[str]) -> dict[str, Array]:
    encoded = rest.dictionary_encode()
    found = [regex.match(text) for text in encoded.dictionary.to_pylist()]
    errors = [None if each is None else each["error"] for each in found]
    messages = [None if each is None else (each["message"] or "").strip() for each in found]
    columns: dict[str, Array] = {
        "error": pa.array(errors, pa.string()),
        "message": pa.array([text or None for text in messages], pa.string()),
        "retriable": pa.array([retriable(error) for error in errors], pa.bool_()),
        "category": pa.array([category(error) for error in errors], pa.string()),
    }
    return {name: values.take(encoded.indices) for name, values in columns.items()}


def _each(texts: Array, change: Callable[[str], str]) -> Array:
    encoded = texts.dictionary_encode()
    changed = pa.array([change(text) for text in encoded.dictionary.to_pylist()], pa.string())
    return changed.take(encoded.indices)


def _instants(records: pa.RecordBatch) -> Array | None:
    """The instants meant, if all rows are of one zone and it has no doubt about them."""
    zones = pc.unique(records.column("zone")).to_pylist()
    if len(zones) > 1:
        return None
    texts = pc.cast(records.column("text"), pa.binary())
    printed = pc.binary_join_element_wise(
        pc.binary_slice(texts, 1, 20), pc.binary_slice(texts, 21, 24), b"."
    )
    try:
        local = pc.cast(pc.cast(printed, pa.string()), pa.timestamp("us"))
        zone = zones[0] or "UTC"
        return pc.assume_timezone(local, zone).cast(pa.timestamp("us", tz="UTC"))
    except (pa.ArrowInvalid, pa.ArrowKeyError):
        return None


def _hours(at: Array) -> Array:
    hours = pc.floor_temporal(at, unit="hour").dictionary_encode()
    return pc.strftime(hours.dictionary, format="%Y-%m-%dT%H").take(hours.indices)
