"""The lines that most of any log's evidence is made of, read a whole column at a time.

Kafka's stock layout around the producer's own sentences: one expression each, run by RE2 over an
Arrow column. What it reads is what the reader reads, row by row (a test holds this); every other
row is left to the reader.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute

from pipelines.reading.errors import category, retriable

Array = Any
"""An Arrow array; the compute functions take and give too many kinds to name."""
pc: Any = pyarrow.compute

_HEAD = (
    r"^\[(?P<moment>\d\d\d\d-\d\d-\d\d \d\d:\d\d:\d\d),(?P<millis>\d\d\d)\] (?P<level>[A-Z]+) "
    r"\[Producer clientId=(?P<client_id>[^\[\]<>,|#]+)\] "
)
_TAIL = r" \((?P<logger>org\.apache\.kafka\.clients\.[A-Za-z.]+)\)$"
_PLACE = r"(?P<topic>[A-Za-z0-9._-]*[A-Za-wyzA-WYZ1-9][A-Za-z0-9._-]*)-(?P<partition>[0-9]+)"
_MESSAGE = r"(?:\. Error Message: (?P<message>[^\n()]+))?"
_NODE = r"(?P<node>-?[0-9]+)"


@dataclass(frozen=True, slots=True)
class Line:
    """One sentence: its words, what it says, and the expression for the whole record."""

    words: str
    kind: str
    detail: str
    regex: str


LINES = (
    Line(
        "retrying (",
        "retry",
        "produce_retry",
        _HEAD
        + r"Got error produce response with correlation id (?P<correlation_id>[0-9]+) on "
        + rf"topic-partition {_PLACE}, retrying \((?P<attempts_left>[0-9]+) attempts left\)\. "
        + rf"Error: (?P<error>[A-Z_]+){_MESSAGE}{_TAIL}",
    ),
    Line(
        "Received invalid metadata error in produce request",
        "invalid_metadata",
        "invalid_metadata",
        _HEAD
        + rf"Received invalid metadata error in produce request on partition {_PLACE} due to "
        + r"org\.apache\.kafka\.common\.errors\.(?P<error>[A-Za-z]+): "
        + rf"(?P<message>[^\n()]*?[^\n().])\.? Going to request metadata update now{_TAIL}",
    ),
    Line(
        "Cancelled in-flight ",
        "connection_failure",
        "request_cancelled",
        _HEAD
        + r"Cancelled in-flight [A-Z_]+ request with correlation id (?P<correlation_id>[0-9]+) due "
        + rf"to node {_NODE} being disconnected \(elapsed time since creation: "
        + rf"(?P<elapsed_ms>[0-9]+)ms[^()\n]*\){_TAIL}",
    ),
    Line(
        " disconnected.",
        "connection_failure",
        "node_disconnected",
        _HEAD + rf"Node {_NODE} disconnected\.{_TAIL}",
    ),
    Line(
        "could not be established",
        "connection_failure",
        "node_unavailable",
        _HEAD
        + rf"Connection to node {_NODE}(?: \([^()\n]*\))? could not be established\. "
        + rf"(?:Broker|Node) may not be available\.{_TAIL}",
    ),
)
_LONGS = ("partition", "correlation_id", "attempts_left", "elapsed_ms", "node")
_TOO_LONG = 15
"""Digits a number may have here; longer ones are left to the reader."""


def read_common(
    batch: pa.RecordBatch, out: pa.Schema
) -> tuple[list[pa.RecordBatch], pa.RecordBatch]:
    """Rows of `producer_events` for the common lines in *batch*, and the rows that are left."""
    read: list[pa.RecordBatch] = []
    left = batch
    for line in LINES:
        found = pc.match_substring(left.column("text"), line.words)
        candidates = left.filter(found)
        if candidates.num_rows == 0:
            continue
        said = pc.extract_regex(candidates.column("text"), line.regex)
        fits = _fits(said)
        moments = _instants(candidates.filter(fits), said.filter(fits))
        if moments is None or not pc.any(fits).as_py():
            continue
        rows = _rows(line, candidates.filter(fits), said.filter(fits), moments, out)
        read.append(rows)
        others = pa.Table.from_batches(
            [left.filter(pc.invert(found)), candidates.filter(pc.invert(fits))]
        )
        left = _one_batch(others)
    return read, left


def _fits(said: Array) -> Array:
    fits = said.is_valid()
    names = [field.name for field in said.type]
    for name in (n for n in names if n in _LONGS):
        short = pc.less_equal(pc.utf8_length(pc.struct_field(said, name)), _TOO_LONG)
        fits = pc.and_(fits, pc.fill_null(short, False))
    if "topic" in names:
        short = pc.less_equal(pc.utf8_length(pc.struct_field(said, "topic")), 249)
        fits = pc.and_(fits, pc.fill_null(short, False))
    return fits


def _instants(records: pa.RecordBatch, said: Array) -> Array | None:
    """The instants meant, if all rows are of one zone and it has no doubt about them."""
    zones = pc.unique(records.column("zone")).to_pylist()
    if len(zones) > 1:
        return None
    try:
        local = pc.strptime(pc.struct_field(said, "moment"), format="%Y-%m-%d %H:%M:%S", unit="us")
        millis = pc.cast(pc.struct_field(said, "millis"), pa.int64())
        local = pc.add(local, pc.multiply(millis, pa.scalar(1000)).cast(pa.duration("us")))
        zone = (zones[0] if zones else None) or "UTC"
        return pc.assume_timezone(local, zone).cast(pa.timestamp("us", tz="UTC"))
    except (pa.ArrowInvalid, pa.ArrowKeyError):
        return None


def _rows(
    line: Line,
    records: pa.RecordBatch,
    said: Array,
    at: Array,
    out: pa.Schema,
) -> pa.RecordBatch:
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
        "at": at,
        "hour": pc.strftime(at, format="%Y-%m-%dT%H"),
    }
    for field in said.type:
        if field.name in out.names:
            columns[field.name] = _value(pc.struct_field(said, field.name), field.name in _LONGS)
    if "error" in columns:
        columns |= _known(columns["error"])
    arrays = [columns.get(f.name, pa.nulls(count, f.type)).cast(f.type) for f in out]
    return pa.RecordBatch.from_arrays(arrays, schema=out)


def _value(texts: Array, is_number: bool) -> Array:
    if is_number:
        return pc.cast(texts, pa.int64())
    trimmed = pc.utf8_trim_whitespace(texts)
    return pc.if_else(pc.equal(trimmed, ""), pa.scalar(None, pa.string()), trimmed)


def _known(errors: Array) -> dict[str, Array]:
    encoded = errors.dictionary_encode()
    names = encoded.dictionary.to_pylist()
    again = pa.array([retriable(name) for name in names], pa.bool_())
    kinds = pa.array([category(name) for name in names], pa.string())
    return {"retriable": again.take(encoded.indices), "category": kinds.take(encoded.indices)}


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)
