"""Ask all suites of a lake with a policy, and keep what they answered."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from pathlib import Path

from acktrail.contracts.arrow import rows
from acktrail.contracts.runs import CHECK_RESULTS
from acktrail.lake import Lake
from expectations.policy import Policy, read_policy
from expectations.result import CheckResult
from expectations.suite import Question, Suite
from expectations.suites import SUITES
from expectations.validate import STRUCTURE, Asked, validate


def ask(
    lake: Lake, as_of: datetime, policy_file: Path | None, runbooks: str, docs: Path | None = None
) -> list[CheckResult]:
    """The results of every check at *as_of*, also appended to `check_results`."""
    policy = known_policy(policy_file)
    asked = Asked(Question(as_of, policy.window), policy, runbooks)
    results = validate(SUITES, lake, asked, docs)
    keep(lake, results, as_of)
    return results


def known_policy(policy_file: Path | None) -> Policy:
    """The policy in *policy_file*, checked against the suites."""
    return read_policy(policy_file, check_names(SUITES), thresholds(SUITES))


def check_names(suites: tuple[Suite, ...]) -> list[str]:
    """The name of every check."""
    return [STRUCTURE, *(check.name for suite in suites for check in suite.checks)]


def thresholds(suites: tuple[Suite, ...]) -> dict[str, float]:
    """Every threshold that a policy may set, with its default."""
    return {
        name: value
        for suite in suites
        for check in suite.checks
        for name, value in getattr(check.expectation, "thresholds", {}).items()
    }


def keep(lake: Lake, results: list[CheckResult], as_of: datetime) -> None:
    """Append *results* to `check_results`."""
    run, now = uuid.uuid4().hex, datetime.now(UTC)
    listed = [row for result in results for row in result.rows(run, now, as_of)]
    lake.append(CHECK_RESULTS, rows(CHECK_RESULTS, listed))
