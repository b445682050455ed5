"""Which threshold holds at a place: the first rule that names it and matches wins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

PLACE = ("cluster", "topic", "client_id", "group")
"""What a rule may be limited to."""


def limit_at(
    rules: Iterable[Mapping[str, Any]], place: Mapping[str, Any], name: str, otherwise: float
) -> float:
    """The threshold *name* at *place* by *rules* (`Policy.limits`); *otherwise* without a rule."""
    for rule in rules:
        if name in rule and all(
            fnmatchcase(str(place.get(column) or ""), rule[column])
            for column in PLACE
            if column in rule
        ):
            return float(rule[name])
    return otherwise
