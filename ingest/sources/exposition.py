"""The text exposition of a metrics target, read by prometheus_client's parser."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cache

from prometheus_client.parser import text_string_to_metric_families

from acktrail.metrics.names import name_pattern, read_name

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")


@dataclass(frozen=True)
class Sample:
    """One line of an exposition."""

    metric: str
    labels: tuple[tuple[str, str], ...]
    value: float


@dataclass(frozen=True)
class Exposition:
    """What a target answered: the samples we want, and how many lines were not wanted or not
    readable."""

    samples: tuple[Sample, ...]
    not_configured: int
    unreadable: int


def read_text(text: str, wanted: Collection[str]) -> Exposition:
    """The samples of the *wanted* canonical metrics in *text*.

    Other lines are skipped before the parser sees them: a broker gives thousands. A line that the
    parser refuses is counted and costs no other line.
    """
    pattern = _pattern(frozenset(wanted))
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    likely = [line for line in lines if _likely(pattern, line)]
    samples, unreadable = _parsed(likely)
    kept = tuple(s for s in samples if _is_wanted(s, wanted))
    return Exposition(kept, len(lines) - len(kept) - unreadable, unreadable)


@cache
def _pattern(wanted: frozenset[str]) -> re.Pattern[str]:
    return re.compile(name_pattern(wanted))


def _likely(pattern: re.Pattern[str], line: str) -> bool:
    name = _NAME.match(line)
    return name is None or pattern.fullmatch(name.group()) is not None


def _is_wanted(sample: Sample, wanted: Collection[str]) -> bool:
    meaning = read_name(sample.metric, dict(sample.labels))
    return meaning is not None and meaning.name in wanted


def _parsed(lines: list[str]) -> tuple[list[Sample], int]:
    try:
        return list(_samples(lines)), 0
    except ValueError:
        pass
    samples: list[Sample] = []
    unreadable = 0
    for line in lines:
        try:
            samples.extend(_samples([line]))
        except ValueError:
            unreadable += 1
    return samples, unreadable


def _samples(lines: list[str]) -> Iterable[Sample]:
    for family in text_string_to_metric_families("\n".join(lines) + "\n"):
        for sample in family.samples:
            yield Sample(sample.name, tuple(sorted(sample.labels.items())), float(sample.value))
