"""Earlier days of history: the tables of one day, moved back by whole days (`history_data`)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from acktrail.audit.wire.run_lists import decode_runs, encode_runs
from acktrail.contracts import TABLES, Table
from acktrail.contracts.arrow import schema
from acktrail.contracts.lineage import MADE, inputs_of
from acktrail.contracts.runs import ALERTS
from acktrail.lake import Change, Lake, Position
from acktrail.lake.data_files import write_files
from bench.history_data import HOURS, OFFSETS, add_present, end_of

DAY = timedelta(days=1)
_OURS = re.compile(r"[0-9a-f]{12}7[0-9a-f]{3}8[0-9a-f]{15}")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TEXTS = ("hour", "opened_hour", "day", "bucket", "text", "later_bucket")
_OFFSETS = ("first_offset", "last_offset", "latest_offset", "committed_offset", "end_offset")
_TIMES = ("began_ms", "ended_ms", "reported_ms")
_NAMES = ("session", "fingerprint", "check_run", "reporter", "file_id")


@dataclass(frozen=True)
class Earlier:
    """Rows of the last day, *days* days earlier."""

    days: int

    def of(self, table: Table, rows: pa.Table) -> pa.Table:
        """*rows* of *table*, so many days earlier."""
        columns = {name: self._column(name, rows.column(name), table) for name in rows.column_names}
        return pa.table(columns, schema=schema(table))

    def _column(self, name: str, column: Any, table: Table) -> Any:
        kind = column.type
        change: Callable[[Any], Any] | None = None
        if pa.types.is_timestamp(kind):
            return pc.subtract(column, pa.scalar(self.days * DAY, pa.duration("us")))
        if pa.types.is_integer(kind):
            return self._numbers(name, column, table)
        if pa.types.is_list(kind) and pa.types.is_struct(kind.value_type):
            change = self._structs
        elif name in _TEXTS:
            change = self._text
        elif name in _NAMES:
            change = self._name
        elif name == "ids" and pa.types.is_binary(kind):
            change = self._ids
        return column if change is None else _each(column, change)

    def _numbers(self, name: str, column: Any, table: Table) -> Any:
        if name == "run" and table.name == "runs":
            return pc.subtract(column, self.days * HOURS)
        if name not in _OFFSETS and name not in _TIMES:
            return column
        moved = pc.add(column, self._distance(name))
        return pc.if_else(pc.greater_equal(column, 0), moved, column)

    def _structs(self, listed: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [self._fields(fields) for fields in listed]

    def _distance(self, name: str) -> int:
        return -self.days * (86_400_000 if name in _TIMES else HOURS * OFFSETS)

    def _fields(self, fields: dict[str, Any]) -> dict[str, Any]:
        """A struct of a list: a part or a finding."""
        moved = dict(fields)
        for name, value in fields.items():
            if isinstance(value, datetime):
                moved[name] = value - self.days * DAY
            elif value is not None and (name in _OFFSETS or name in _TIMES):
                moved[name] = value + self._distance(name)
            elif name == "ids" and value is not None:
                moved[name] = self._ids(value)
            elif name == "reporter":
                moved[name] = self._name(value)
        return moved

    def _text(self, text: str) -> str:
        return _DATE.sub(self._day, text)

    def _day(self, found: re.Match[str]) -> str:
        return (datetime.fromisoformat(found[0]) - self.days * DAY).date().isoformat()

    def _name(self, name: str) -> str:
        if not _OURS.fullmatch(name):
            return f"{name}-{self.days}" if name else name
        started = int(name[:12], 16) - self.days * 86_400_000
        return f"{started:012x}{name[12:]}"

    def _ids(self, ids: bytes) -> bytes:
        runs = decode_runs(ids)
        if runs.offsets is None:
            return ids
        return encode_runs(replace(runs, offsets=runs.offsets + self._distance("first_offset")))


def _each(column: Any, change: Callable[[Any], Any]) -> Any:
    encoded = column.combine_chunks()
    if pa.types.is_string(column.type):  # few distinct texts, many rows
        encoded = encoded.dictionary_encode()
        changed = [None if v is None else change(v) for v in encoded.dictionary.to_pylist()]
        return pa.array(changed, column.type).take(encoded.indices)
    return pa.array([None if v is None else change(v) for v in encoded.to_pylist()], column.type)


def make_days(last_day: Path, path: Path, days: int) -> None:
    """A lake at *path* with the day at *last_day*, *days* - 1 earlier ones, and a new slice."""
    source, lake = Lake(last_day), Lake(path)
    made = {table.name for table in MADE}
    ordered = [t for t in TABLES if t.name not in made] + list(MADE)
    for table in ordered:
        if not source.exists(table):
            continue
        rows = source.read(table)
        for number in range(days - 1, -1, -1):
            some = Earlier(number).of(table, rows) if number else rows
            if number and table.name == ALERTS.name:
                some = resolved(some)
            last = number == 0 and table.name in made
            lake.create(table)
            lake.put(
                table,
                write_files(table, some, lake.at(table)),
                _as_run(lake, table) if last else Change(),
            )
    add_present(path)


def resolved(alerts: pa.Table) -> pa.Table:
    """*alerts* of a day, and the ends of those that the last check of the day left open."""
    rows = alerts.to_pylist()
    ended = {row["fingerprint"] for row in rows if row["status"] == "resolved"}
    left = [row for row in rows if row["fingerprint"] not in ended]
    ends = [end_of(row) for row in left]
    return pa.concat_tables([alerts, pa.Table.from_pylist(ends, schema=alerts.schema)])


def _as_run(lake: Lake, table: Table) -> Change:
    """What the first run of the job of *table* leaves: its number, and what it has read."""
    consumed = {t.name: lake.version(t) for t in inputs_of(table) if lake.exists(t)}
    note = {"job": table.name, "run": 0, "consumed": consumed}
    said = {"userMetadata": json.dumps(note, sort_keys=True)}
    return Change((Position(table.name, None, 0),), said)
