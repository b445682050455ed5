"""The sentence for a topic that the cluster does not have."""

from __future__ import annotations

from collections.abc import Iterable

from acktrail.nearest import did_you_mean


def no_such_topic(topic: str, existing: Iterable[str]) -> str:
    """That *topic* does not exist, and which of the *existing* ones may be meant."""
    others = [name for name in existing if name != topic]  # it may appear just now
    hint = did_you_mean(topic, others)
    return f"Topic {topic} does not exist on this cluster, or this user may not Describe it.{hint}"
