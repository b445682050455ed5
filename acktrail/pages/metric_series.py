"""The exporter's series at a moment, from facts that hold instants: pure, and bounded in number."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from acktrail.answers.current_facts import Accounts, EvidenceOf, JobFacts
from acktrail.answers.losses import Row
from acktrail.answers.sources import STILL_READING
from acktrail.contracts.vocabulary import Grade, Outcome, SourceState
from acktrail.retries.fleet import BURNING as BURNING_STATES
from acktrail.retries.fleet import Burning
from acktrail.retries.state import BudgetState

OTHER = "other"
"""Value of the label of everything beyond the top N."""
UNKNOWN = math.nan
SILENT = "silent"
"""State of a source whose agent no longer reports."""
PASSED, WARNED, FAILED, UNDECIDED = 0.0, 1.0, 2.0, 3.0
_JOB = "acktrail_job"
"""Not `job`, which Prometheus sets itself."""
_RETRIES = ("logs", "metrics")
"""Evidence that shows retries."""

Samples = dict[tuple[str, ...], float]


@dataclass(frozen=True)
class MetricSeries:
    """One metric: its samples by the values of its labels."""

    name: str
    doc: str
    labels: tuple[str, ...] = ()
    samples: Mapping[Any, float] = field(default_factory=dict)
    """By tuples of the labels' values."""


@dataclass(frozen=True)
class ScrapeMoment:
    """When, how far back, how many series, and how old evidence may be that still tells of now."""

    now: datetime
    window: timedelta
    top: int
    fresh: timedelta


def loss_series(
    incidents: Sequence[Row], accounts: Mapping[str, Accounts], asked: ScrapeMoment
) -> list[MetricSeries]:
    """Lost messages of the window; 0 for a cluster that was audited in it, else unknown."""
    since = asked.now - asked.window
    lost: Samples = {}
    for row in incidents:
        if row["ended_at"] is None or row["ended_at"] >= since:
            key = (row["cluster"], row["topic"], row["group"], row["state"], row["cause"])
            lost[key] = lost.get(key, 0) + row["ids"]
    kept = _top(lost, asked.top, _Fold(places=(1, 2), add=sum))
    for cluster, account in accounts.items():
        audited = account.last_at is not None and account.last_at >= since
        kept[(cluster, "", "", "", "")] = 0.0 if audited else UNKNOWN
    return [
        MetricSeries(
            "acktrail_lost_messages",
            "Messages of loss incidents that ended within the window. The sample without a topic "
            "is 0 where the cluster was audited in the window, else NaN.",
            ("cluster", "topic", "group", "state", "cause"),
            kept,
        )
    ]


def ledger_series(accounts: Mapping[str, Accounts]) -> list[MetricSeries]:
    """Messages by state, and whether the ledger balances."""
    states = {(c, s): float(n) for c, a in accounts.items() for s, n in a.states.items()}
    return [
        MetricSeries(
            "acktrail_ledger_messages",
            "Audited messages by what became of them in the log; `sent` is the sum of the others.",
            ("cluster", "state"),
            states,
        ),
        MetricSeries(
            "acktrail_ledger_residual",
            "Messages by which the accounts do not balance; 0 where each is accounted for once.",
            ("cluster",),
            {(cluster,): float(account.residual) for cluster, account in accounts.items()},
        ),
    ]


def budget_series(
    budgets: Sequence[Burning], evidence: Sequence[EvidenceOf], asked: ScrapeMoment
) -> list[MetricSeries]:
    """Retry budgets that burn: how many, of whom, and how long they last."""
    critical: Samples = {}
    left: dict[tuple[str, ...], list[float]] = {}
    for one in budgets:
        state = one.state(asked.now)
        if state not in BURNING_STATES:
            continue
        key = (one.cluster, one.client_id)
        critical[key] = critical.get(key, 0) + (state is BudgetState.CRITICAL)
        end = one.budget.exhausts_at_earliest
        seconds = UNKNOWN if end is None else max(0.0, (end - asked.now).total_seconds())
        left.setdefault(key, []).append(seconds)
    first = {key: _least(seconds) for key, seconds in left.items()}
    # The most urgent clients are shown, in both metrics the same.
    order = {k: (-critical[k], _or_infinite(first[k])) for k in first}
    shown = frozenset(sorted(order, key=lambda k: (order[k], k))[: asked.top])
    place = ("cluster", "client_id")
    return [
        MetricSeries(
            "acktrail_retry_budgets",
            "Batches that are being retried, by how near they are to being given up; NaN where no "
            "fresh log or metric tells.",
            ("cluster", "state"),
            _chains_by_state(budgets, evidence, asked),
        ),
        MetricSeries(
            "acktrail_retry_budgets_critical",
            "Batches of a client whose retries are about to run out, by the policy's thresholds.",
            place,
            _fold(critical, shown, _Fold(places=(1,), add=sum)),
        ),
        MetricSeries(
            "acktrail_retry_budget_seconds_left",
            "Seconds until the first batch of a client may be given up; NaN where its settings "
            "are not known.",
            place,
            _fold(first, shown, _Fold(places=(1,), add=_least)),
        ),
    ]


def _chains_by_state(
    budgets: Sequence[Burning], evidence: Sequence[EvidenceOf], asked: ScrapeMoment
) -> Samples:
    newest: dict[str, datetime] = {}
    for one in evidence:
        if one.kind in _RETRIES and one.last_at is not None:
            newest[one.cluster] = max(one.last_at, newest.get(one.cluster, one.last_at))
    found: Samples = {}
    for cluster in {*newest, *(one.cluster for one in budgets)}:
        fresh = cluster in newest and asked.now - newest[cluster] <= asked.fresh
        for state in BURNING_STATES:
            found[(cluster, state.value)] = 0.0 if fresh else UNKNOWN
    for chain in budgets:
        key = (chain.cluster, chain.state(asked.now).value)
        if key in found:
            found[key] = 1 + (0 if math.isnan(found[key]) else found[key])
    return found


def check_series(results: Sequence[Row]) -> list[MetricSeries]:
    """The newest outcome of every check; the worst where several owners are concerned."""
    states: dict[tuple[str, ...], list[float]] = {}
    for row in results:
        states.setdefault((row["check"], row["table"]), []).append(_state(row))
    worst = (FAILED, WARNED, UNDECIDED, PASSED)
    samples = {
        key: next((state for state in worst if state in found), UNKNOWN)
        for key, found in states.items()
    }
    return [
        MetricSeries(
            "acktrail_check_state",
            "Newest outcome of a check: 0 pass, 1 warn (failed, grade warn), 2 fail, 3 undecided; "
            "NaN where the policy lists its evidence as not collected.",
            ("check", "table"),
            samples,
        )
    ]


def _state(row: Row) -> float:
    if row["outcome"] == Outcome.FAIL:
        return FAILED if row["grade"] == Grade.FAIL else WARNED
    if row["outcome"] == Outcome.UNDECIDED:
        return UNKNOWN if row["not_collected"] else UNDECIDED
    return PASSED


def evidence_series(evidence: Sequence[EvidenceOf], asked: ScrapeMoment) -> list[MetricSeries]:
    """How old the newest evidence of every source is."""
    ages: Samples = {}
    for one in evidence:
        age = UNKNOWN if one.last_at is None else _age(asked.now, one.last_at)
        key = (one.cluster, one.source)
        known = ages.get(key, UNKNOWN)
        ages[key] = age if math.isnan(known) else _least((age, known))
    return [
        MetricSeries(
            "acktrail_evidence_age_seconds",
            "Age of the newest evidence of a source that the answers rest on; of logs without new "
            "lines, since an agent reported that it reads them.",
            ("cluster", "source"),
            _top(ages, asked.top, _Fold(places=(1,), add=_greatest)),
        )
    ]


def source_series(reports: Sequence[Row], asked: ScrapeMoment) -> list[MetricSeries]:
    """How many hosts read a source, and how it stands there."""
    states: Samples = {}
    for row in reports:
        gone = row["state"] == SourceState.UP and asked.now - row["at"] > STILL_READING
        key = (row["cluster"], row["source"], SILENT if gone else str(row["state"]))
        states[key] = states.get(key, 0) + 1
    return [
        MetricSeries(
            "acktrail_sources",
            "Hosts on which a source is up, failing, held, stopped or ended; silent: up, and no "
            "report for 30 minutes.",
            ("cluster", "source", "state"),
            _top(states, asked.top * len(SourceState), _Fold(places=(1,), add=sum)),
        )
    ]


def job_series(jobs: JobFacts, asked: ScrapeMoment) -> list[MetricSeries]:
    """Whether the jobs are alive, and how long evidence waits for them."""
    waiting: Samples = {
        (job,): UNKNOWN if since is None else _age(asked.now, since)
        for job, since in jobs.pending_since.items()
    }
    idle: Samples = {(job,): 0.0 for job in jobs.failed if job not in jobs.pending_since}
    return [
        MetricSeries(
            "acktrail_job_last_success_timestamp_seconds",
            "When a job last committed; of `check`, when checks were last evaluated. A job with "
            "nothing new to read does not commit.",
            (_JOB,),
            {(job,): at.timestamp() for job, at in jobs.last_success.items()},
        ),
        MetricSeries(
            "acktrail_job_pending_seconds",
            "How long the oldest evidence that a job has not read has waited; 0: it has read all; "
            "NaN: not known since when.",
            (_JOB,),
            {**idle, **waiting},
        ),
        MetricSeries(
            "acktrail_job_failed",
            "1 where the last run of a job failed, or was not begun after a failure.",
            (_JOB,),
            {(job,): float(failed) for job, failed in jobs.failed.items()},
        ),
    ]


@dataclass(frozen=True)
class _Fold:
    """How samples beyond the top N become one: which labels are `other`, and how values add."""

    places: tuple[int, ...]
    add: Callable[[Iterable[float]], float]

    def key(self, key: tuple[str, ...]) -> tuple[str, ...]:
        """*key* with `other` in its places."""
        return tuple(OTHER if i in self.places else value for i, value in enumerate(key))


def _top(samples: Samples, most: int, fold: _Fold) -> Samples:
    """The *most* samples with the highest values, and the rest as `other`; NaN ranks last."""

    def rank(key: tuple[str, ...]) -> tuple[float, tuple[str, ...]]:
        value = samples[key]
        return (math.inf if math.isnan(value) else -value, key)

    return _fold(samples, frozenset(sorted(samples, key=rank)[:most]), fold)


def _fold(samples: Samples, shown: frozenset[tuple[str, ...]], fold: _Fold) -> Samples:
    kept: dict[tuple[str, ...], list[float]] = {}
    for key, value in samples.items():
        kept.setdefault(key if key in shown else fold.key(key), []).append(value)
    return {key: float(fold.add(values)) for key, values in kept.items()}


def _least(values: Iterable[float]) -> float:
    return min((v for v in values if not math.isnan(v)), default=UNKNOWN)


def _greatest(values: Iterable[float]) -> float:
    return max((v for v in values if not math.isnan(v)), default=UNKNOWN)


def _or_infinite(value: float) -> float:
    return math.inf if math.isnan(value) else value


def _age(now: datetime, at: datetime) -> float:
    return max(0.0, (now - at).total_seconds())
