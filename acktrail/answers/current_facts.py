"""What is true now, for metrics: one function per question, each of a few tables.

Facts hold instants and counts; whoever shows them applies the time. A function returns None where
the lake has no evidence for its question: what is not known is never 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from acktrail.answers.budgets import read_budgets
from acktrail.answers.losses import INCIDENT_STATES, STATES, Row
from acktrail.answers.pending import last_failures, pending_evidence
from acktrail.answers.sources import read_at, source_states
from acktrail.contracts.gold import DELIVERY_LEDGER, LOSS_INCIDENTS, RETRY_BUDGETS
from acktrail.contracts.lineage import MADE
from acktrail.contracts.runs import CHECK_RESULTS, COVERAGE, RUNS, SOURCE_STATES
from acktrail.errors import NoEvidence
from acktrail.lake import Lake
from acktrail.policy.model import Policy
from acktrail.policy.renamed import current_name
from acktrail.retries.fleet import Burning
from acktrail.window import hour_of

LOOK_BACK = timedelta(days=7)
"""A source that gave nothing for so long is taken for one that was retired, as checks do."""
CHECK_JOB = "check"
"""`acktrail check` beside the jobs of `acktrail run`."""
_BUDGETS = timedelta(hours=24)
"""How far back chains are read, as `acktrail budgets` does."""
_SAME_ROUND = timedelta(days=1)
"""A check that was not evaluated for so long before the newest one no longer exists."""


@dataclass(frozen=True)
class Accounts:
    """The ledger of one cluster, for the log itself."""

    states: Mapping[str, int]
    """State (and `sent`) to messages."""
    residual: int
    """Sum of what does not balance, groups included; 0 where every account balances."""
    last_at: datetime | None


@dataclass(frozen=True)
class EvidenceOf:
    """The newest evidence of one source in the answers."""

    cluster: str
    source: str
    kind: str
    last_at: datetime | None


@dataclass(frozen=True)
class JobFacts:
    """How the jobs stand."""

    last_success: Mapping[str, datetime]
    failed: Mapping[str, bool]
    pending_since: Mapping[str, datetime | None]
    """Jobs that have evidence to read, and since when it waits; None: not known since when."""


def ledger_accounts(lake: Lake) -> dict[str, Accounts] | None:
    """By cluster: messages by state, and what does not balance."""
    if not lake.exists(DELIVERY_LEDGER):
        return None
    summed = ("sent", *STATES)
    wanted = ["cluster", "group", "residual", "last_at", *summed]
    rows = lake.read(DELIVERY_LEDGER, columns=wanted)
    magnitude: Any = pc.abs(rows.column("residual"))
    rows = rows.set_column(wanted.index("residual"), "residual", magnitude)
    every = _by_cluster(rows, {"residual": "sum", "last_at": "max"})
    log = _by_cluster(rows.filter(pc.field("group") == ""), dict.fromkeys(summed, "sum"))
    return {
        cluster: Accounts(
            states={n: log[cluster][f"{n}_sum"] or 0 if cluster in log else 0 for n in summed},
            residual=row["residual_sum"],
            last_at=row["last_at_max"],
        )
        for cluster, row in every.items()
    }


def _by_cluster(rows: pa.Table, totals: Mapping[str, Any]) -> dict[str, Row]:
    found = rows.group_by("cluster").aggregate(list(totals.items())).to_pylist()
    return {row["cluster"]: row for row in found}


def recent_incidents(lake: Lake, since: datetime) -> list[Row] | None:
    """Incidents that ended at or after *since*, or at an unknown time.

    NoEvidence where the ledger has losses that `loss_incidents` does not list.
    """
    if not lake.exists(LOSS_INCIDENTS):
        if _has_losses(lake):
            raise NoEvidence(
                f"The ledger has lost messages that {LOSS_INCIDENTS.name} does not list: the last "
                "run did not finish. Run `acktrail run`."
            )
        return None
    recent = (pc.field("ended_at") >= since) | pc.field("ended_at").is_null()
    columns = ["cluster", "topic", "group", "state", "cause", "ids", "ended_at"]
    found: list[Row] = lake.read(LOSS_INCIDENTS, recent, columns).to_pylist()
    return found


def _has_losses(lake: Lake) -> bool:
    rows = lake.read(DELIVERY_LEDGER, columns=list(INCIDENT_STATES))
    return any(pc.sum(rows.column(name)).as_py() for name in INCIDENT_STATES)


def open_budgets(lake: Lake, as_of: datetime, policy: Policy) -> list[Burning] | None:
    """The chains of the last day that nothing shows to have ended."""
    if not lake.exists(RETRY_BUDGETS):
        return None
    return read_budgets(lake, as_of - _BUDGETS, as_of, policy, open_only=True)


def newest_check_results(lake: Lake, as_of: datetime) -> list[Row] | None:
    """Of every check on every table the rows of its newest evaluation."""
    days = {v["day"] for v in lake.files(CHECK_RESULTS).values() if v.get("day")}
    past = sorted(day for day in days if day and day <= f"{as_of:%Y-%m-%d}")
    if not past:
        return None
    columns = [
        *("table", "check", "grade", "outcome", "not_collected", "as_of", "checked_at"),
        *("check_run", "subject"),
    ]
    where = pc.field("day").isin(past[-2:]) & (pc.field("as_of") <= as_of)
    newest_of_each = _newest_rows(lake.read(CHECK_RESULTS, where, columns))
    newest: dict[tuple[str, str], list[Row]] = {}
    for row in newest_of_each:
        row["check"] = current_name(row["check"])
        known = newest.setdefault((row["table"], row["check"]), [])
        if not known or _time_of(row) > _time_of(known[0]):
            known[:] = [row]
        elif row["check_run"] == known[0]["check_run"]:
            known.append(row)
    last = max((_time_of(found[0])[0] for found in newest.values()), default=as_of)
    recent = [found for found in newest.values() if _time_of(found[0])[0] > last - _SAME_ROUND]
    return [row for found in recent for row in found]


def _newest_rows(rows: pa.Table) -> list[Row]:
    """Of every check on every table the rows about the newest moment: a watch adds many a day."""
    place = ["table", "check"]
    newest = rows.group_by(place).aggregate([("as_of", "max")])
    joined = rows.join(newest, keys=place)
    found: list[Row] = joined.filter(pc.field("as_of") == pc.field("as_of_max")).to_pylist()
    return found


def _time_of(row: Row) -> tuple[datetime, datetime]:
    return row["as_of"], row["checked_at"]


def newest_evidence(lake: Lake, as_of: datetime) -> list[EvidenceOf] | None:
    """The newest evidence of every source that owes some: not of those that said good-bye.

    A log without lines is not a source without a reader: the agent's report counts for it.
    """
    if not lake.exists(COVERAGE):
        return None
    hours = (pc.field("hour") >= hour_of(as_of - LOOK_BACK)) & (pc.field("hour") <= hour_of(as_of))
    open_ended = pc.field("closed").is_null() | ~pc.field("closed")
    columns = ["cluster", "source", "kind", "last_at"]
    rows = lake.read(COVERAGE, hours & open_ended, columns)
    grouped = rows.group_by(["cluster", "source", "kind"]).aggregate([("last_at", "max")])
    heard = read_at(lake, as_of)
    found = []
    for row in grouped.to_pylist():
        times = [row["last_at_max"]]
        if row["kind"] == "logs":
            times.append(heard.get((row["cluster"], row["source"])))
        known = [at for at in times if at is not None]
        place = (row["cluster"], row["source"], row["kind"])
        found.append(EvidenceOf(*place, max(known, default=None)))
    return found


def reported_sources(lake: Lake, as_of: datetime) -> list[Row] | None:
    """How agents stand with their sources: the newest report of each source and host."""
    if not lake.exists(SOURCE_STATES):
        return None
    return [r for r in source_states(lake, as_of) if r["at"] > as_of - LOOK_BACK]


def job_facts(lake: Lake) -> JobFacts:
    """When every job succeeded last, which failed since, and what waits for them."""
    last: dict[str, datetime] = {}
    runs = lake.read(RUNS, columns=["job", "ended_at"])
    for row in runs.group_by("job").aggregate([("ended_at", "max")]).to_pylist():
        last[row["job"]] = row["ended_at_max"]
    checked = pc.max(lake.read(CHECK_RESULTS, columns=["checked_at"]).column("checked_at")).as_py()
    if checked is not None:
        last[CHECK_JOB] = checked
    waiting: dict[str, list[datetime | None]] = {}
    for one in pending_evidence(lake):
        waiting.setdefault(one.table, []).append(one.since)
    failures = last_failures(lake)
    return JobFacts(
        last_success=last,
        failed={
            table.name: table.name in failures
            and (table.name not in last or failures[table.name].at > last[table.name])
            for table in MADE
            if table.name in last or table.name in failures
        },
        pending_since={job: _earliest(times) for job, times in waiting.items()},
    )


def _earliest(times: Sequence[datetime | None]) -> datetime | None:
    known = [at for at in times if at is not None]
    return min(known) if len(known) == len(times) else None
