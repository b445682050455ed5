"""The thresholds of retry budgets by cluster, topic and client, as a policy sets them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import cache

from acktrail.policy.limits import limit_at
from acktrail.policy.model import Policy
from acktrail.retries.state import DEFAULTS, Thresholds

ThresholdsAt = Callable[[str, str, str], Thresholds]
"""From cluster, topic and client id."""


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
