"""Audit reports: one row says which ids (or offsets) one reporter saw at one tier."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime, timedelta
from typing import Any

from acktrail.contracts.vocabulary import Tier

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


_NAMES = tuple(f.name for f in fields(Report))
_DEFAULTS = asdict(Report("", Tier.HEARTBEAT, "", 0, 0))
_TIMES = {"reported_at": "reported_ms", "began_at": "began_ms", "ended_at": "ended_ms"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def encode_reports(reports: Iterable[Report]) -> bytes:
    """One message of the audit topic: JSON, fields that have their default left out."""
    rows = []
    for report in reports:
        row = {k: v for k, v in asdict(report).items() if v != _DEFAULTS[k] or k == "tier"}
        if report.ids is not None:
            row["ids"] = base64.b64encode(report.ids).decode()
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
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not an audit report: {error!r}") from error


def _report(row: Mapping[str, Any]) -> Report:
    known = {k: v for k, v in row.items() if k in _NAMES}
    known["tier"] = Tier(known["tier"])
    if known.get("ids") is not None:
        known["ids"] = base64.b64decode(known["ids"], validate=True)
    known["minutes"] = tuple(known.get("minutes", ()))
    return Report(**known)


def row_of_report(report: Report, cluster: str, source: str, read_at: datetime) -> dict[str, Any]:
    """*report* as a row of `audit_reports`."""
    row: dict[str, Any] = asdict(report)
    for column, name in _TIMES.items():
        row[column] = _instant(row.pop(name))
    row["tier"] = report.tier.value
    row["minutes"] = list(report.minutes)
    row["errors"], row["settings"] = dict(report.errors), dict(report.settings)
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
    for column, name in _TIMES.items():
        value = row.get(column)
        if value is not None:
            known[name] = (value - _EPOCH) // timedelta(milliseconds=1)
    return Report(**known)


def _instant(ms: int | None) -> datetime | None:
    return None if ms is None else _EPOCH + timedelta(milliseconds=ms)
