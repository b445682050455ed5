"""Read `retry_budgets` and what the fleet view joins with it, without a JVM."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow.dataset as ds

from acktrail.answers.retry_thresholds import ThresholdsAt, retry_thresholds
from acktrail.contracts import Table
from acktrail.contracts.gold import RETRY_BUDGETS
from acktrail.contracts.silver import BROKER_METRICS, CLIENT_METRICS
from acktrail.lake import Lake
from acktrail.policy.model import Policy
from acktrail.retries.budget import Budget
from acktrail.retries.burn import LONG, Growth
from acktrail.retries.fleet import Burning, Front, Level, Measured, fronts_of
from acktrail.window import hour_of

_BUDGET = tuple(f.name for f in fields(Budget))
_CLIENT = ("record-retry-total", "record-error-total")
_BROKER = ("failed-produce-requests-total", "request-errors-total")
_GAUGE = "under-min-isr-partitions"


def read_budgets(
    lake: Lake, since: datetime, as_of: datetime, policy: Policy | None = None
) -> list[Burning]:
    """The budgets opened between *since* and *as_of*, with the thresholds of *policy*."""
    hours = (ds.field("opened_hour") >= hour_of(since)) & (
        ds.field("opened_hour") <= hour_of(as_of)
    )
    opened = (ds.field("opened_at") >= since) & (ds.field("opened_at") <= as_of)
    rows = lake.read(RETRY_BUDGETS, hours & opened).to_pylist()
    at = retry_thresholds(policy or Policy())
    return [_burning(row, at) for row in rows]


def _burning(row: dict[str, Any], at: ThresholdsAt) -> Burning:
    values = {name: _utc(row[name]) for name in _BUDGET}
    values["evidence"] = tuple(row["evidence"] or ())
    client = (row["cluster"], row["host"], row["client_id"])
    thresholds = at(row["cluster"], row["topic"], row["client_id"])
    return Burning(*client, Budget(**values), thresholds)


def _utc(value: Any) -> Any:
    return value.astimezone(UTC) if isinstance(value, datetime) else value


def read_fronts(lake: Lake, burning: list[Burning], as_of: datetime) -> list[Front]:
    """The fleet view of *burning* at *as_of*, with an hour of metrics."""
    if not burning:
        return []
    clients = _samples(lake, CLIENT_METRICS, _CLIENT, as_of)
    rows = _samples(lake, BROKER_METRICS, (*_BROKER, _GAUGE), as_of)
    produce = [r for r in rows if r["request"] in (None, "Produce") and r["metric"] in _BROKER]
    measured = Measured(
        clients=[_growth(r, r["client_id"] or "", r["host"] or "") for r in clients if _grew(r)],
        brokers=[_growth(r, _broker(r)) for r in produce if _grew(r)],
        levels=[
            Level(r["cluster"], _broker(r), r["metric"], _utc(r["at"]), r["value"])
            for r in rows
            if r["metric"] == _GAUGE and r["value"] is not None
        ],
    )
    return fronts_of(burning, measured, as_of)


def _broker(row: dict[str, Any]) -> str:
    """The broker's id; its target where no id is known."""
    return str(row["instance"] or "") if row["broker"] is None else str(row["broker"])


def _grew(row: dict[str, Any]) -> bool:
    """Whether the growth is known, and its time: what is not is no zero."""
    return row["increase"] is not None and bool(row["elapsed_ms"])


def _growth(row: dict[str, Any], who: str, host: str = "") -> Growth:
    return Growth(
        cluster=row["cluster"],
        who=who,
        metric=row["metric"],
        at=_utc(row["at"]),
        increase=row["increase"],
        elapsed=timedelta(milliseconds=row["elapsed_ms"]),
        host=host,
        error=row.get("error") or "",
    )


def _samples(
    lake: Lake, table: Table, metrics: tuple[str, ...], as_of: datetime
) -> list[dict[str, Any]]:
    """Samples of a client or broker as a whole, of the last hour."""
    hours = [hour_of(as_of - LONG), hour_of(as_of)]
    where = ds.field("hour").isin(hours) & ds.field("metric").isin(list(metrics))
    where &= (ds.field("at") > as_of - LONG) & (ds.field("at") <= as_of)
    where &= ds.field("topic").is_null()
    return list(lake.read(table, where).to_pylist())


def look_back(as_of: datetime, hours: float) -> datetime:
    """From when on budgets are read; from the beginning of time where that would be before it."""
    try:
        return as_of - timedelta(hours=hours)
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)
