"""Known gaps in the evidence, by the kind of evidence that a suite needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acktrail.contracts.vocabulary import Outcome
from expectations.domain.evidence import MISSING, gap_start
from expectations.domain.expectation import keys_of
from expectations.result import Finding
from expectations.views import coverage

if TYPE_CHECKING:
    from acktrail.lake import Lake
    from expectations.suite import Question

_NEEDS = {"audit": "audits", "logs": "logs", "metrics": "metrics", "cluster": "audits"}
"""What a gap in each kind of coverage makes blind: states of the cluster decide audits."""


def known_gaps(lake: Lake, question: Question) -> dict[str, list[Finding]]:
    """For each kind of evidence the gaps of the window, as undecided findings.

    They name the same incident as the failed check on coverage does, so that one gap is one alert
    whatever the number of checks it makes blind.
    """
    covered = coverage(lake, question)
    found: dict[str, list[Finding]] = {}
    if covered is None:
        return found
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
                starts_at=gap_start(rows, question.as_of),
                ends_at=None,
                because=f"Checks that need {needs} are undecided while that is so.",
                count=len(rows),
                keys=keys_of(rows, ("source", "subject", "hour")),
            )
        )
    return found
