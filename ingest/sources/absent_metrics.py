"""Which metrics are missing in a way that a person can and should act on.

A healthy cluster lacks some of the metrics that we know: rule files export totals or rates, not
both; a meter appears with its first event; a source of brokers has no producers. So a single name
is not a reason to warn. A source that gives nothing is, and so is a metric that the settings name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from acktrail.metrics.names import BROKER_METRICS, PRODUCER_METRICS

_FORM = re.compile(r"-(rate|total|avg|max)\Z")
_SIDES = (
    ("producer", PRODUCER_METRICS, "the producers"),
    ("broker", BROKER_METRICS, "the brokers"),
)


def family_of(metric: str) -> str:
    """What *metric* measures: its rate and its total are one family."""
    return _FORM.sub("", metric)


def absent_families(named: Sequence[str], seen: Collection[str]) -> tuple[str, ...]:
    """Families of the metrics that the settings name, of which nothing was *seen*."""
    found = {family_of(name) for name in seen}
    return tuple(dict.fromkeys(f for f in map(family_of, named) if f not in found))


def named_but_absent(named: Sequence[str], seen: Collection[str]) -> tuple[str, ...]:
    """The note for *named* metrics (by the settings) of which nothing was *seen*."""
    absent = absent_families(named, seen)
    if not absent:
        return ()
    return (
        f"No series for {', '.join(absent)}, named under `metrics`: "
        "the exporter has no rule for it, or nothing was counted yet.",
    )


def absent_sides(wanted: Collection[str], seen: Collection[str]) -> tuple[str, ...]:
    """The notes for a server that should know producers and brokers and lacks all of one."""
    return tuple(
        f"No {side} metric was found. Let Prometheus scrape {who} (JMX exporter or Micrometer), "
        f"or name only other metrics under `metrics`."
        for side, metrics, who in _SIDES
        if any(m in wanted for m in metrics) and not any(m in seen for m in metrics)
    )
