"""A lake with days of history, made of the recorded incident of the demo.

The last day is the recording once an hour, read and run by the real jobs. A copy is the whole
recording (logs, metrics, audits, cluster states and settings, group offsets) moved back by whole
hours: times, also those within log lines, move with it. Offsets and leader epochs of a topic go on
from copy to copy, and each copy has audit sessions of its own, named as acktrail's clients name
them. Offsets that log lines print are left as they are, so causes may differ from the recording's.
The audit of the topic that lost messages is in one copy of a day, so a day has one loss.
Settings of brokers and topics are in the first copy of a day: agents write them when they change.

Earlier days are the tables of that day, bronze to gold, moved back by whole days in the same way,
one commit a day and table, with the note that a job's run leaves: no job has anything to do there.
Bronze has one file a day and table, silver and gold one or two for a partition: as compacted.
`runs`, `check_results` and `alerts` have an hourly run and check: copies of one real run and check.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from acktrail.audit.wire.run_lists import decode_runs, encode_runs
from acktrail.cli.demo import CLUSTER, incident, recorded_until
from acktrail.contracts import Table
from acktrail.contracts.arrow import schema
from acktrail.contracts.bronze import BRONZE
from acktrail.contracts.runs import ALERTS, CHECK_RESULTS, RUNS
from acktrail.lake import Lake
from acktrail.window import day_of
from bench.cost import cost_of

HOURS = 24
LOSING = "payments"
"""The topic of the recording that loses messages."""
OFFSETS = 1_000_000
"""How far the offsets of a partition go on from one copy to the next."""
EPOCHS = 100
_OFFSETS = ("first_offset", "last_offset", "latest_offset", "committed_offset")
_DATE = re.compile(r"(\d{4}-\d\d-\d\d[ T]\d\d)(?=:\d\d)")
_EPOCH = re.compile(r"\b(1[78]\d{8})(?=\.\d|\d{3}\b)")


def recording() -> dict[str, pa.Table]:
    """The rows of every bronze table, as the agents' sources read the recording."""
    from ingest.replay import replay

    with tempfile.TemporaryDirectory() as scratch:
        lake = Lake(scratch)
        replay(incident(), lake, CLUSTER)
        return {table.name: lake.read(table) for table in BRONZE}


def present() -> datetime:
    """When the newest copy of the recording ends."""
    return recorded_until(incident())


@dataclass(frozen=True)
class Copy:
    """One copy of the recording: *back* hours before the present."""

    back: int

    @property
    def number(self) -> int:
        """Grows from copy to copy; positive for a year of them."""
        return 10_000 - self.back

    def of(self, table: Table, rows: pa.Table) -> pa.Table:
        """*rows* of the recording, as this copy has them."""
        if table.name == "audit_reports" and self.back % HOURS:
            rows = rows.filter(pc.not_equal(rows.column("topic"), LOSING))
        if table.name == "cluster_configs" and self.back != HOURS:
            rows = rows.slice(0, 0)
        columns = {name: rows.column(name) for name in rows.column_names}
        for name, column in columns.items():
            if pa.types.is_timestamp(column.type):
                columns[name] = self.earlier(column)
            elif name in _OFFSETS:
                moved = pc.add(column, self.number * OFFSETS)
                columns[name] = pc.if_else(pc.greater_equal(column, 0), moved, column)
            elif name == "leader_epoch":
                columns[name] = pc.add(column, self.number * EPOCHS)
        if table.name == "log_records":
            columns["text"] = _each(columns["text"], self._text)
            columns["file_id"] = _each(columns["file_id"], self._named)
        if table.name == "audit_reports":
            columns["session"] = _each(columns["session"], self._session)
            columns["reporter"] = _each(columns["reporter"], self._named)
            columns["ids"] = _each(columns["ids"], self._ids)
        columns["day"] = pc.strftime(columns["read_at"], format="%Y-%m-%d")
        return pa.table({n: columns[n] for n in rows.column_names}, schema=schema(table))

    def earlier(self, column: Any) -> Any:
        """Instants of the recording, at the time of this copy."""
        return pc.subtract(column, pa.scalar(timedelta(hours=self.back), pa.duration("us")))

    def _named(self, name: str) -> str:
        return hashlib.blake2b(f"{name}-{self.number}".encode(), digest_size=16).hexdigest()

    def _session(self, name: str) -> str:
        """As `new_session` names one: its start, then bits that are the copy's own."""
        if not name:
            return name
        started = int((present() - timedelta(hours=self.back, minutes=4)).timestamp() * 1000)
        own = self._named(name)
        return f"{started:012x}7{own[:3]}8{own[3:18]}"

    def _ids(self, ids: bytes) -> bytes:
        runs = decode_runs(ids)
        if runs.offsets is None:
            return ids
        return encode_runs(replace(runs, offsets=runs.offsets + self.number * OFFSETS))

    def _text(self, text: str) -> str:
        text = _DATE.sub(self._hour, text)
        return _EPOCH.sub(lambda found: str(int(found[1]) - self.back * 3600), text)

    def _hour(self, found: re.Match[str]) -> str:
        layout = f"%Y-%m-%d{found[1][10]}%H"
        at = datetime.strptime(found[1], layout).replace(tzinfo=UTC)
        return (at - timedelta(hours=self.back)).strftime(layout)


def _each(column: Any, change: Callable[[Any], Any]) -> Any:
    told = [None if v is None else change(v) for v in column.to_pylist()]
    return pa.chunked_array([pa.array(told, column.type)])


def append_copies(lake: Lake, rows: Mapping[str, pa.Table], copies: list[Copy]) -> None:
    """One commit to every bronze table, with the evidence of *copies*."""
    for table in BRONZE:
        made = [copy.of(table, rows[table.name]) for copy in copies]
        lake.append(table, pa.concat_tables(made))


def make_day(path: Path) -> None:
    """A lake with one day of history, all of it run."""
    from pipelines import runner, session
    from pipelines.registry import JOBS
    from pipelines.schedule import run_all

    rows, lake = recording(), Lake(path)
    by_day: dict[str, list[Copy]] = {}
    for back in range(HOURS, 0, -1):
        day = day_of(present() - timedelta(hours=back))
        by_day.setdefault(day, []).append(Copy(back))
    for some in by_day.values():
        append_copies(lake, rows, some)
    spark = session.build()
    try:
        run_all(JOBS, lambda job: runner.run(job, lake, lambda: spark, present()))
    finally:
        session.stop(spark)
    _past_runs(lake, list(by_day.values()))


def add_present(path: Path) -> None:
    """The newest copy, which no job has read."""
    append_copies(Lake(path), recording(), [Copy(0)])


def _past_runs(lake: Lake, days: list[list[Copy]]) -> None:
    """What hourly runs and checks would have left: rows of one, copied to every hour."""
    ran = lake.read(RUNS)
    asked = (present() - timedelta(hours=1)).isoformat()
    cost_of(["-m", "acktrail", "check", "--lake", lake.uri, "--as-of", asked], allowed=(0, 1))
    checked, told = lake.read(CHECK_RESULTS), lake.read(ALERTS).to_pylist()
    for copies in days:
        lake.append(RUNS, pa.concat_tables(_run_of(copy, ran) for copy in copies))
        hours = [_check_of(copy, checked) for copy in copies if copy.back > 1]
        if hours:
            lake.append(CHECK_RESULTS, pa.concat_tables(hours))
        alerts = [row for copy in copies for alert in told for row in _alert_of(copy, alert)]
        lake.append(ALERTS, pa.Table.from_pylist(alerts, schema=schema(ALERTS)))


def _run_of(copy: Copy, ran: pa.Table) -> pa.Table:
    at = pa.scalar(present() - timedelta(hours=copy.back), pa.timestamp("us", tz="UTC"))
    whole = pa.chunked_array([pa.repeat(at, ran.num_rows)])
    columns = {n: ran.column(n) for n in ran.column_names}
    columns |= dict.fromkeys(("started_at", "ended_at", "as_of"), whole)
    columns["run"] = pc.add(ran.column("run"), -1 - copy.number)  # before the first real one
    return pa.table(columns, schema=schema(RUNS))


def _check_of(copy: Copy, checked: pa.Table) -> pa.Table:
    columns = {n: checked.column(n) for n in checked.column_names}
    back = replace(copy, back=copy.back - 1)
    columns |= {n: back.earlier(columns[n]) for n in ("checked_at", "as_of")}
    columns["check_run"] = _each(columns["check_run"], lambda run: f"{run}-{copy.number}")
    columns["day"] = pc.strftime(columns["as_of"], format="%Y-%m-%d")
    return pa.table(columns, schema=schema(CHECK_RESULTS))


def _alert_of(copy: Copy, alert: dict[str, Any]) -> list[dict[str, Any]]:
    """The alert of one hour: opened, and resolved an hour later."""
    opened = present() - timedelta(hours=copy.back)
    named = hashlib.sha256(f"{alert['fingerprint']}-{copy.number}".encode()).hexdigest()[:16]
    told = {**alert, "fingerprint": named, "starts_at": opened, "changed_at": opened}
    return [told, end_of(told)]


def end_of(alert: Mapping[str, Any]) -> dict[str, Any]:
    """The change that resolves *alert*, an hour after it opened."""
    cured = alert["changed_at"] + timedelta(hours=1)
    return {**alert, "number": 2, "status": "resolved", "changed_at": cured, "ends_at": cured}
