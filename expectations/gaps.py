"""Evidence that is missing, by the kind of evidence that a suite needs."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from acktrail.alerts.finding import Finding
from acktrail.answers.sources import sources_read
from acktrail.contracts.bronze import AUDIT_REPORTS, BRONZE, LOG_RECORDS, METRIC_SAMPLES
from acktrail.contracts.vocabulary import Outcome
from expectations.domain.evidence import MISSING, gap_sentence
from expectations.domain.expectation import hour_start, keys_of, missing, not_collected
from expectations.views import coverage

if TYPE_CHECKING:
    import pandas as pd

    from acktrail.lake import Lake
    from expectations.suite import Question

_NEEDS = {"audit": "audits", "logs": "logs", "metrics": "metrics", "cluster": "audits"}
"""What a gap in each kind of coverage makes blind: states of the cluster decide audits."""

_COVERED_AS = {"audit": "audits", "logs": "logs", "metrics": "metrics"}
_COLLECTED_IN = {"logs": LOG_RECORDS, "metrics": METRIC_SAMPLES, "audits": AUDIT_REPORTS}


def missing_evidence(
    lake: Lake, question: Question, waiting: Collection[str] = ()
) -> dict[str, list[Finding]]:
    """For each kind of evidence what is missing of it, as undecided findings.

    *waiting* are bronze tables with rows that `coverage` has not counted yet.
    """
    covered = coverage(lake, question)
    found = {} if covered is None else _gaps(covered, question)
    for finding in _uncollected(lake, question, covered, waiting):
        found.setdefault(finding.needs, []).append(finding)
    return found


def _uncollected(
    lake: Lake, question: Question, covered: pd.DataFrame | None, waiting: Collection[str]
) -> Iterator[Finding]:
    """The kinds of evidence of which nothing was collected in the window.

    A job writes its table whichever of its inputs are there. So a table without rows shows that
    nothing is wrong only if the evidence that would show it is collected.
    """
    made = {table.name for table in BRONZE if lake.is_made(table)}
    seen = set() if covered is None else {_COVERED_AS.get(str(k), "") for k in covered["kind"]}
    for kind, table in _COLLECTED_IN.items():
        absent = bool(made) and table.name not in made
        quiet = covered is not None and kind not in seen and table.name not in waiting
        if (absent or quiet) and not (kind == "logs" and _logs_are_read(lake, question)):
            yield _nothing(question, kind, not_collected(kind))
    if covered is not None and covered.empty and not waiting:
        yield _nothing(question, "evidence", "Nothing was collected in the window. Run the agents.")


def _nothing(question: Question, kind: str, because: str) -> Finding:
    return missing(
        cluster="", cause=f"no_{kind}", starts_at=question.as_of, because=because, needs=kind
    )


def _logs_are_read(lake: Lake, question: Question) -> bool:
    """Whether an agent has read logs in the window: of a healthy client they may hold nothing."""
    return any(
        source["kind"] in ("log_files", "log_topic") and source["at"] >= question.since
        for source in sources_read(lake, question.as_of)
    )


def _gaps(covered: pd.DataFrame, question: Question) -> dict[str, list[Finding]]:
    """Known gaps of the window.

    They name the same incident as the failed check on coverage does, so that one gap is one alert
    whatever the number of checks it makes blind.
    """
    found: dict[str, list[Finding]] = {}
    gaps = covered[covered["missing"].notna()]
    for (cluster, kind), rows in gaps.groupby(["cluster", "kind"]):
        needs = _NEEDS.get(str(kind), "")
        found.setdefault(needs, []).append(
            Finding(
                outcome=Outcome.UNDECIDED,
                cluster=str(cluster),
                topic="",
                group="",
                state=MISSING,
                cause=str(kind),
                starts_at=hour_start(rows["hour"].min(), question.as_of),
                ends_at=None,
                because=gap_sentence(str(kind), rows),
                count=len(rows),
                keys=keys_of(rows, ("source", "subject", "hour")),
            )
        )
    return found
