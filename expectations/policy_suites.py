"""The policy, and the suites that are validated with it: ours and the user's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from acktrail.errors import ConfigError
from acktrail.policy import Policy, read_policy
from acktrail.policy.renamed import RENAMED, current_name
from expectations.own_suites import read_own_suites
from expectations.suite import Suite
from expectations.suites import SUITES
from expectations.validate import STRUCTURE


def policy_and_suites(policy_file: Path | None) -> tuple[Policy, tuple[Suite, ...]]:
    """The policy in *policy_file*, its names checked; our suites and the user's own."""
    policy = read_policy(policy_file)
    suites = SUITES
    if policy.suites is not None and policy_file is not None:
        suites = (*SUITES, *read_own_suites(policy_file.parent / policy.suites))
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
    policy.require_known(policy_file, names, thresholds(suites))
    return policy, suites


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
