"""How reliable each client was, hour by hour; and each producer with its guarantee."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from acktrail.answers.inquiry import Inquiry, both
from acktrail.answers.many import Row, grouped
from acktrail.contracts.gold import PRODUCER_RELIABILITY
from acktrail.contracts.silver import CLIENT_CONFIGS, CLIENTS
from acktrail.lake import Lake
from acktrail.window import hour_of

LEVELS = ("clean", "retries", "failures", "lost")
"""How bad an hour was, the best first."""
_SUMS = ("lost", "sent", "acked", "retry_lines", "expired_lines", "failure_lines")
_WORST = ("error_rate_per_s", "retry_rate_per_s", "errors_total", "retries_total")


@dataclass(frozen=True)
class ClientHours:
    """One client: its level in each hour of which there is evidence, and its sums."""

    cluster: str
    client_id: str
    levels: dict[str, str]
    lost: int = 0
    sent: int | None = None
    acked: int | None = None
    retry_lines: int = 0
    failures: int = 0
    error_rate: float | None = None
    retry_rate: float | None = None


def client_hours(lake: Lake, asked: Inquiry) -> list[ClientHours]:
    """Every client of the window, the worst first."""
    named = both(asked.hours(PRODUCER_RELIABILITY), pc.field("client_id") != "")
    measures = [(name, "sum") for name in _SUMS] + [(name, "max") for name in _WORST]
    keys = ("cluster", "client_id", "hour")
    rows = grouped(lake, PRODUCER_RELIABILITY, named, keys, measures).to_pylist()
    clients: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        clients.setdefault((row["cluster"], row["client_id"]), []).append(row)
    found = [_client(*place, hours) for place, hours in clients.items()]
    return sorted(found, key=badness)


def badness(client: ClientHours) -> tuple[Any, ...]:
    """Sort key: the worst first."""
    rates = (-(client.error_rate or 0.0), -(client.retry_rate or 0.0))
    worst = (-client.lost, -client.failures, *rates, -client.retry_lines)
    return (*worst, client.cluster, client.client_id)


def level_of(hour: Row) -> str:
    """How bad an hour of a client was."""
    if hour["lost"]:
        return "lost"
    if any(hour[n] for n in ("errors_total", "error_rate_per_s", "expired_lines", "failure_lines")):
        return "failures"
    if any(hour[n] for n in ("retries_total", "retry_rate_per_s", "retry_lines")):
        return "retries"
    return "clean"


def _client(cluster: str, client_id: str, hours: Sequence[Row]) -> ClientHours:
    return ClientHours(
        cluster=cluster,
        client_id=client_id,
        levels={row["hour"]: level_of(row) for row in hours},
        lost=_sum(hours, "lost") or 0,
        sent=_sum(hours, "sent"),
        acked=_sum(hours, "acked"),
        retry_lines=_sum(hours, "retry_lines") or 0,
        failures=(_sum(hours, "expired_lines") or 0) + (_sum(hours, "failure_lines") or 0),
        error_rate=_highest(hours, "error_rate_per_s"),
        retry_rate=_highest(hours, "retry_rate_per_s"),
    )


def _sum(rows: Iterable[Row], name: str) -> int | None:
    known = [row[name] for row in rows if row[name] is not None]
    return sum(known) if known else None


def _highest(rows: Iterable[Row], name: str) -> float | None:
    known = [row[name] for row in rows if row[name] is not None]
    return max(known) if known else None


@dataclass(frozen=True)
class HourColumns:
    """The columns of a history: each a number of hours that is the same for all."""

    starts: list[datetime]
    hours: int

    @classmethod
    def over(cls, since: datetime, until: datetime, most: int) -> HourColumns:
        """At most *most* columns that cover the window."""
        first = since.replace(minute=0, second=0, microsecond=0)
        total = int((until - first) / timedelta(hours=1)) + 1
        each = max(1, -(-total // most))
        return cls([first + timedelta(hours=n) for n in range(0, total, each)], each)

    @cached_property
    def names(self) -> list[list[str]]:
        """The hours of each column, as tables spell them."""
        return [
            [hour_of(start + timedelta(hours=n)) for n in range(self.hours)]
            for start in self.starts
        ]


def worst_level(levels: dict[str, str], hours: Iterable[str]) -> str | None:
    """The worst level of a client in *hours*; None where there is no evidence."""
    known = [levels[hour] for hour in hours if hour in levels]
    return max(known, key=LEVELS.index) if known else None


@dataclass(frozen=True)
class KnownProducer:
    """One producer, as a person looks for it."""

    cluster: str
    client_id: str
    hosts: tuple[str, ...] = ()
    guarantee: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    hours: ClientHours | None = None
    evidence: tuple[str, ...] = ()
    """Of logs, metrics and audits those it was seen in."""


def producers(lake: Lake, asked: Inquiry, hours: Sequence[ClientHours]) -> list[KnownProducer]:
    """The producers that were seen in the window, or have rates in *hours*; the worst first."""
    by_place = {(client.cluster, client.client_id): client for client in hours}
    configs = _configs(lake, asked)
    where = asked.overlapping(CLIENTS, "first_seen_at", "last_seen_at")
    columns = ["cluster", "client_id", "host", "in_logs", "in_metrics", "in_audits"]
    seen: dict[tuple[str, str], tuple[set[str], set[str]]] = {
        place: (set(), set()) for place in by_place
    }
    for batch in lake.batches(CLIENTS, where, columns):
        for row in batch.to_pylist():
            hosts, kinds = seen.setdefault((row["cluster"], row["client_id"]), (set(), set()))
            hosts |= {row["host"]} - {"", None}
            kinds |= {kind for kind in ("logs", "metrics", "audits") if row[f"in_{kind}"]}
    found = [
        KnownProducer(
            cluster=cluster,
            client_id=client_id,
            hosts=tuple(sorted(hosts)),
            guarantee=configs.get((cluster, client_id), {}).get("guarantee"),
            settings=configs.get((cluster, client_id), {}),
            hours=by_place.get((cluster, client_id)),
            evidence=tuple(sorted(kinds)),
        )
        for (cluster, client_id), (hosts, kinds) in seen.items()
    ]
    return sorted(found, key=_order)


def _order(one: KnownProducer) -> tuple[Any, ...]:
    if one.hours is None:
        return (0, 0, 0.0, 0.0, 0, one.cluster, one.client_id)
    return badness(one.hours)


def _configs(lake: Lake, asked: Inquiry) -> dict[tuple[str, str], Row]:
    """The newest settings that each producer had printed before the window's end."""
    where = (pc.field("role") == "producer") & (pc.field("started_at") <= asked.until)
    columns = [
        *("cluster", "client_id", "started_at", "guarantee", "acks", "retries"),
        *("delivery_timeout_ms", "idempotent", "ordered", "client_version"),
    ]
    parts = [
        _last_of_each(batch)
        for batch in lake.batches(CLIENT_CONFIGS, both(asked.named(CLIENT_CONFIGS), where), columns)
    ]
    if not parts:
        return {}
    rows = _last_of_each(pa.concat_tables(parts)).to_pylist()
    return {(row["cluster"], row["client_id"] or ""): row for row in rows}


def _last_of_each(rows: pa.Table) -> pa.Table:
    """The newest settings of each client."""
    keys = ["cluster", "client_id"]
    ordered = rows.sort_by([("started_at", "ascending")])
    with_nulls = pc.ScalarAggregateOptions(skip_nulls=False)
    how: list[Any] = [(name, "last", with_nulls) for name in rows.column_names if name not in keys]
    found = ordered.group_by(keys, use_threads=False).aggregate(how)
    return found.rename_columns([name.removesuffix("_last") for name in found.column_names])
