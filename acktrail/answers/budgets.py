"""Retry budgets: what the answer rests on, the rows with the thresholds of a policy, the fleet."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, fields
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import pyarrow.dataset as ds

from acktrail.answers.scope import utc
from acktrail.contracts import Table
from acktrail.contracts.bronze import LOG_RECORDS, METRIC_SAMPLES
from acktrail.contracts.gold import RETRY_BUDGETS
from acktrail.contracts.runs import COVERAGE
from acktrail.contracts.silver import BROKER_METRICS, CLIENT_METRICS, PRODUCER_EVENTS
from acktrail.errors import NoEvidence
from acktrail.lake import Lake
from acktrail.policy.model import Policy, limit_at
from acktrail.retries.budget import Budget
from acktrail.retries.burn import LONG, Growth
from acktrail.retries.fleet import Burning, Front, Level, Measured, fronts_of
from acktrail.retries.state import DEFAULTS, Thresholds
from acktrail.window import hour_of

_BUDGET = tuple(f.name for f in fields(Budget))
_CLIENT = ("record-retry-total", "record-error-total")
_BROKER = ("failed-produce-requests-total", "request-errors-total")
_GAUGE = "under-min-isr-partitions"
ThresholdsAt = Callable[[str, str, str], Thresholds]
"""From cluster, topic and client id."""


def require_retry_evidence(lake: Lake) -> None:
    """NoEvidence where nothing was collected that shows retries, or no run has read it."""
    if lake.exists(RETRY_BUDGETS):
        return
    if not (lake.exists(LOG_RECORDS) or lake.exists(METRIC_SAMPLES)):
        raise NoEvidence(
            "This lake has no client logs and no metrics; nothing is known about retries. "
            "docs/agents.md shows how to collect them."
        )
    if not (lake.exists(PRODUCER_EVENTS) or lake.exists(CLIENT_METRICS)):
        raise NoEvidence(f"Table {RETRY_BUDGETS.name} does not exist yet. Run `acktrail run`.")


def missing_evidence(lake: Lake, since: datetime, as_of: datetime) -> str | None:
    """A sentence where no client log and no metric is of the time from *since* to *as_of*."""
    covered = (ds.field("first_at") <= as_of) & (ds.field("last_at") >= since)
    covered &= ds.field("kind").isin(["logs", "metrics"])
    if lake.read(COVERAGE, covered, ["kind"]).num_rows:
        return None
    hours = (ds.field("hour") >= hour_of(since)) & (ds.field("hour") <= hour_of(as_of))
    if any(lake.read(t, hours, ["hour"]).num_rows for t in (PRODUCER_EVENTS, CLIENT_METRICS)):
        return None
    return (
        f"There is no client log and no metric from {utc(since)} to {utc(as_of)}; "
        "nothing is known about retries in that time."
    )


def retry_thresholds(policy: Policy) -> ThresholdsAt:
    """The thresholds that *policy* sets at each place; the defaults where it sets none."""
    usual = asdict(DEFAULTS)
    rules = policy.limits(tuple(usual))

    @cache
    def at(cluster: str, topic: str, client_id: str) -> Thresholds:
        place = {"cluster": cluster, "topic": topic, "client_id": client_id}
        found = {name: limit_at(rules, place, name, value) for name, value in usual.items()}
        return Thresholds(**found)

    return at


def read_budgets(
    lake: Lake,
    since: datetime,
    as_of: datetime,
    policy: Policy | None = None,
    open_only: bool = False,
) -> list[Burning]:
    """The budgets opened between *since* and *as_of*, with the thresholds of *policy*.

    With *open_only*, without those that are over, or whose next line was due before *as_of*.
    """
    hours = (ds.field("opened_hour") >= hour_of(since)) & (
        ds.field("opened_hour") <= hour_of(as_of)
    )
    opened = (ds.field("opened_at") >= since) & (ds.field("opened_at") <= as_of)
    for name in ("ended_at", "exhausts_at_latest", "quiet_at") if open_only else ():
        opened &= ds.field(name).is_null() | (ds.field(name) > as_of)
    return burning_of(lake.read(RETRY_BUDGETS, hours & opened).to_pylist(), policy or Policy())


def burning_of(rows: Iterable[dict[str, Any]], policy: Policy) -> list[Burning]:
    """*rows* of `retry_budgets` with the thresholds of *policy*."""
    at = retry_thresholds(policy)
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
    """Whether the growth is known, and its time: unknown growth is not zero."""
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
