"""Audit reports: each row lists the ids (or offsets) that one reporter saw at one tier."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from typing import Any

from acktrail.audit.wire.report_fields import field_readers
from acktrail.contracts.vocabulary import Tier
from acktrail.window import epoch_ms, from_epoch_ms

VERSION = 1


@dataclass(frozen=True)
class Report:
    """One row of a report. Times are milliseconds since the epoch; see docs/wire.md for each."""

    reporter: str
    tier: Tier
    topic: str
    number: int
    reported_ms: int
    session: str = ""
    topic_id: str | None = None
    partition: int = -1
    group: str = ""
    block: int = -1
    part: int = 0
    leader_epoch: int | None = None
    first_offset: int | None = None
    last_offset: int | None = None
    records: int = 0
    ids: bytes | None = None
    steps_back: int | None = None
    redelivered: int | None = None
    assignment: int | None = None
    errors: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    minutes: Sequence[int] = ()
    began_ms: int | None = None
    ended_ms: int | None = None
    latency_p50_ms: int | None = None
    latency_p99_ms: int | None = None
    latency_max_ms: int | None = None
    closed: bool = False
    exited: bool = False
    unnamed: bytes | None = None
    cluster_id: str | None = None
    outcomes: Mapping[str, int] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    after_ms: int | None = None
    """Receipts up to this one were in the lake when the scan began; set by the agent that scans."""
    received_ms: int | None = None
    """When an agent received it; set by the lake."""


_NAMES = tuple(f.name for f in fields(Report))
_READERS = field_readers({f.name: str(f.type) for f in fields(Report)})
_OF_THE_LAKE = ("after_ms", "received_ms")
"""What a client cannot know, and is not believed."""
_DEFAULTS = asdict(Report("", Tier.HEARTBEAT, "", 0, 0))
_ALWAYS = ("reporter", "tier", "topic", "number", "reported_ms")
"""Fields without a default: never left out of a message."""
_TIMES = {
    "reported_at": "reported_ms",
    "began_at": "began_ms",
    "ended_at": "ended_ms",
    "after_at": "after_ms",
}
_COUNTS = ("outcomes", "dropped")
"""Numbers by name; tables have them as text."""
_NOT_KEPT = ("received_ms", "cluster_id", "metrics")
"""No columns: `read_at` is the receipt, the id chose the cluster, metrics have their own table."""


def encode_reports(reports: Iterable[Report]) -> bytes:
    """One message of the audit topic: JSON, fields that have their default left out."""
    rows = []
    for report in reports:
        given = {k: v for k, v in asdict(report).items() if k not in _OF_THE_LAKE}
        row = {k: v for k, v in given.items() if v != _DEFAULTS[k] or k in _ALWAYS}
        for name in ("ids", "unnamed"):
            if row.get(name) is not None:
                row[name] = base64.b64encode(row[name]).decode()
        rows.append(row)
    return json.dumps({"v": VERSION, "reports": rows}, separators=(",", ":")).encode()


def decode_reports(message: bytes) -> list[Report]:
    """The reports in one message of the audit topic; ValueError where it is none.

    Fields of a later minor version that we do not know are left out.
    """
    try:
        loaded = json.loads(message)
        if loaded["v"] != VERSION:
            raise ValueError(f"an audit report of version {loaded['v']}; this reads {VERSION}")
        return [_report(row) for row in loaded["reports"]]
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"not an audit report: {error!r}") from error


def _report(row: Mapping[str, Any]) -> Report:
    known = {k: v for k, v in row.items() if k in _NAMES and k not in _OF_THE_LAKE}
    return Report(**{name: _READERS[name](value) for name, value in known.items()})


def row_of_report(report: Report, cluster: str, source: str, read_at: datetime) -> dict[str, Any]:
    """*report* as a row of `audit_reports`."""
    row: dict[str, Any] = asdict(report)
    for name in _NOT_KEPT:
        del row[name]
    for column, name in _TIMES.items():
        ms = row.pop(name)
        row[column] = None if ms is None else from_epoch_ms(ms)
    row["tier"] = report.tier.value
    row["minutes"] = list(report.minutes)
    row["errors"], row["settings"] = dict(report.errors), dict(report.settings)
    for name in _COUNTS:
        row[name] = {key: str(count) for key, count in getattr(report, name).items()}
    return row | {
        "cluster": cluster,
        "source": source,
        "read_at": read_at,
        "day": read_at.astimezone(UTC).strftime("%Y-%m-%d"),
    }


def report_of_row(row: Mapping[str, Any]) -> Report:
    """The report in a row of `audit_reports`, as pyarrow or Spark give it."""
    known = {k: v for k, v in row.items() if k in _NAMES and v is not None}
    known["tier"] = Tier(row["tier"])
    known["errors"] = dict(row.get("errors") or {})
    known["settings"] = dict(row.get("settings") or {})
    known["minutes"] = tuple(row.get("minutes") or ())
    for name in _COUNTS:
        known[name] = {key: int(count) for key, count in dict(row.get(name) or {}).items()}
    for column, name in {**_TIMES, "read_at": "received_ms"}.items():
        value = row.get(column)
        if value is not None:
            known[name] = epoch_ms(value)
    return Report(**known)
