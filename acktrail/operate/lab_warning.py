"""When a run's warning came, by its own logs: the rules, asked at one moment after another.

The finished table says how each chain ended, not what was known while it burned. So the lines are
given to the rules again in the order they were printed, and the first moment at which they call
one of the producer's budgets critical is the warning. What it takes to read and to deliver is not
in it: `lab/warning.py` measures that, live.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

import pyarrow.dataset as ds

from acktrail.answers.budgets import ThresholdsAt, retry_thresholds
from acktrail.contracts.silver import CLIENT_CONFIGS, PRODUCER_EVENTS
from acktrail.lake import Lake
from acktrail.policy.model import Policy
from acktrail.retries.client_budgets import (
    CONFIG,
    EVENT,
    ClientHour,
    Leaders,
    budgets_of_hour,
    hours_concerned,
)
from acktrail.retries.signs import ENDING_KINDS, OPENING_KINDS
from acktrail.retries.state import critical_at

Row = Mapping[str, Any]
_SETTINGS = (
    "retries", "delivery_timeout_ms", "request_timeout_ms", "linger_ms", "retry_backoff_ms",
    "retry_backoff_max_ms", "client_version",
)  # fmt: skip


def first_warning(
    lake: Lake, cluster: str, client_id: str, until: datetime, policy: Policy | None = None
) -> datetime | None:
    """The first moment before *until* at which a budget of the client was critical by *policy*.

    Lines of one second are read together.
    """
    thresholds = retry_thresholds(policy or Policy())
    lines = _lines(lake, cluster, client_id, until)
    starts = _starts(lake, cluster, client_id)
    moments = [list(same) for _, same in groupby(lines, key=lambda r: _floor(r["at"]))]
    seen: list[Row] = []
    for number, lines_then in enumerate(moments):
        seen += lines_then
        last = number + 1 == len(moments)
        read_at: datetime = lines_then[-1]["at"]
        # Nothing else is known until the next line: time alone may make it critical.
        known_until = until if last else moments[number + 1][0]["at"]
        known = [start for start in starts if start["at"] <= read_at]
        warned = _first_critical(cluster, client_id, [*seen, *known], read_at, thresholds)
        if warned is not None and max(warned, read_at) < known_until:
            return max(warned, read_at)
    return None


def _first_critical(
    cluster: str, client_id: str, rows: Sequence[Row], read_at: datetime, thresholds: ThresholdsAt
) -> datetime | None:
    """When the first budget becomes critical, by what was printed until *read_at*."""
    instants = []
    for hour in hours_concerned(read_at):
        for _, budget in budgets_of_hour(ClientHour(cluster, client_id, hour), rows, {}, Leaders()):
            at = critical_at(budget, thresholds(cluster, budget.topic, client_id))
            if at is not None and read_at < budget.quiet_at:
                instants.append(at)
    return min(instants, default=None)


def _lines(lake: Lake, cluster: str, client_id: str, until: datetime) -> list[Row]:
    kinds = sorted(OPENING_KINDS | ENDING_KINDS)
    where = _of(cluster, client_id) & ds.field("kind").isin(kinds) & (ds.field("at") < until)
    rows = [
        {**row, "tag": EVENT, "key": row["event_key"], "origin": _file(row), "at": _utc(row["at"])}
        for row in lake.read(PRODUCER_EVENTS, where).to_pylist()
    ]
    return sorted(rows, key=lambda r: (r["at"], r["key"]))


def _starts(lake: Lake, cluster: str, client_id: str) -> list[Row]:
    where = _of(cluster, client_id) & (ds.field("role") == "producer")
    return [
        {
            "tag": CONFIG,
            "key": row["record_key"],
            "origin": _file(row),
            "host": row["host"],
            "at": _utc(row["started_at"]),
            "settings": {n: str(row[n]) for n in _SETTINGS if row[n] is not None},
        }
        for row in lake.read(CLIENT_CONFIGS, where & ds.field("started_at").is_valid()).to_pylist()
    ]


def _of(cluster: str, client_id: str) -> Any:
    return (ds.field("cluster") == cluster) & (ds.field("client_id") == client_id)


def _file(row: Row) -> str:
    return str(row["record_key"]).rpartition("/")[0]


def _utc(at: datetime) -> datetime:
    return at.astimezone(UTC)


def _floor(at: datetime) -> datetime:
    return at.replace(microsecond=0)
