"""Ask all suites of a lake with a policy, and keep what they answered."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.compute as pc

from acktrail.alerts.finding import CheckResult
from acktrail.answers.pending import pending_evidence
from acktrail.contracts.arrow import rows
from acktrail.contracts.runs import CHECK_RESULTS
from acktrail.errors import ConfigError
from acktrail.lake import Lake
from acktrail.policy import Policy, read_policy
from acktrail.policy.renamed import RENAMED, current_name
from expectations.own_suites import read_own_suites
from expectations.stale import NOTHING_WAITS, PENDING, Waiting
from expectations.suite import Question, Suite
from expectations.suites import SUITES
from expectations.validate import STRUCTURE, Asked, validate

OVERTAKEN = timedelta(minutes=15)
"""Two checks that run side by side are not history to each other."""


def ask(
    lake: Lake,
    as_of: datetime,
    policy_file: Path | None,
    runbooks: str,
    docs: Path | None = None,
    waiting: Waiting = NOTHING_WAITS,
) -> list[CheckResult]:
    """The results of every check at *as_of*, also appended to `check_results`."""
    results = answers(lake, as_of, policy_file, runbooks, docs, waiting=waiting)
    keep(lake, results, as_of)
    return results


def answers(
    lake: Lake,
    as_of: datetime,
    policy_file: Path | None,
    runbooks: str,
    docs: Path | None = None,
    tables: Collection[str] | None = None,
    waiting: Waiting = NOTHING_WAITS,
) -> list[CheckResult]:
    """The results of every check (on *tables* alone, where given), kept nowhere.

    *waiting* is evidence that is not in the answers yet (`look_for_waiting`).
    """
    policy, suites = policy_and_suites(policy_file)
    asked = Asked(Question(as_of, policy.window), policy, runbooks, waiting)
    chosen = [s for s in suites if tables is None or s.table.name in tables]
    return validate(chosen, lake, asked, docs)


def look_for_waiting(lake: Lake, policy_file: Path | None, now: datetime) -> Waiting:
    """The evidence that no run has read yet, and how long the policy lets it wait."""
    policy, suites = policy_and_suites(policy_file)
    allowed = policy.limit_everywhere(PENDING, thresholds(suites)[PENDING])
    return Waiting(pending_evidence(lake), timedelta(seconds=allowed), now)


def policy_and_suites(policy_file: Path | None) -> tuple[Policy, tuple[Suite, ...]]:
    """The policy in *policy_file*, its names checked; our suites and the user's own."""
    raw = read_policy(policy_file)
    suites = SUITES
    if raw.suites is not None and policy_file is not None:
        suites = (*SUITES, *read_own_suites(policy_file.parent / raw.suites))
    names = check_names(suites)
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ConfigError(f"Two checks are called {twice[0]}. Give yours another name.")
    former = [name for name in names if name in RENAMED]
    if former:
        raise ConfigError(
            f"{former[0]} is the former name of the check {current_name(former[0])}. "
            "Give yours another name."
        )
    raw.require_known(policy_file, names, thresholds(suites))
    return raw, suites


def check_names(suites: Sequence[Suite]) -> list[str]:
    """The name of every check."""
    return [STRUCTURE, *(check.name for suite in suites for check in suite.checks)]


def thresholds(suites: Sequence[Suite]) -> dict[str, float]:
    """Every threshold that a policy may set, with its default."""
    return {
        name: value
        for suite in suites
        for check in suite.checks
        for name, value in getattr(check.expectation, "thresholds", {}).items()
    }


def is_history(lake: Lake, as_of: datetime) -> bool:
    """Whether a check has already asked about a moment well after *as_of*.

    Alerts are about the newest moment asked; an old question must not open or resolve any.
    """
    asked = lake.read(CHECK_RESULTS, columns=["as_of"]).column("as_of")
    newest: datetime | None = pc.max(asked).as_py()
    return newest is not None and newest - as_of > OVERTAKEN


def keep(lake: Lake, results: Sequence[CheckResult], as_of: datetime) -> None:
    """Append *results* to `check_results`."""
    run, now = uuid.uuid4().hex, datetime.now(UTC)
    listed = [row for result in results for row in result.rows(run, now, as_of)]
    lake.append(CHECK_RESULTS, rows(CHECK_RESULTS, listed))
