"""Was it as expected? And the table that answers "what happens if the ack never comes?"."""

from __future__ import annotations

from collections.abc import Iterable

from lab.scenario import Expect, Scenario
from lab.truth import Sums, Truth

_COUNTED = (
    "lost_after_ack",
    "lost_told",
    "lost_silent",
    "duplicated",
    "out_of_order",
    "ghosts",
)
_HEADS = (
    *("scenario", "producer", "acks", "idempotent", "handed over", "acked", "told failed"),
    *("lost after ack", "lost, told", "lost, silent", "duplicated", "out of order", "ghosts"),
    *("missed by group", "producer silent (s)", "group silent (s)"),
)


def differences(scenario: Scenario, truth: Truth) -> list[str]:
    """What was not as expected, one sentence each; none: all was."""
    found = []
    for name, sums in truth.sums.items():
        found += _of_producer(name, scenario.expect.get(name, Expect()), sums)
        for group, missed in sums.missed.items():
            allowed = scenario.missed.get(group, range(1))
            if missed not in allowed:
                found.append(f"{group} never received {missed} messages of {name} in the log")
    return found


def _of_producer(name: str, expect: Expect, sums: Sums) -> list[str]:
    found = []
    for count in _COUNTED:
        actual, allowed = getattr(sums, count), getattr(expect, count)
        if actual not in allowed:
            wanted = "none" if allowed == range(1) else f"at least {allowed.start}"
            found.append(f"{name}: {count} is {actual}, expected {wanted}")
    return found


def is_idempotent(scenario: Scenario, producer: str) -> bool:
    """Whether the producer's settings give idempotence, by the rules of its client."""
    (wanted,) = (each for each in scenario.producers if each.name == producer)
    given = wanted.settings.get("enable.idempotence")
    if given is not None:
        return given == "true"
    return wanted.kind == "java" and wanted.acks == "all" and wanted.retries > 0


def table(runs: Iterable[tuple[Scenario, Truth]]) -> str:
    """All producers of all runs as a Markdown table."""
    lines = ["| " + " | ".join(_HEADS) + " |", "| " + " | ".join("---" for _ in _HEADS) + " |"]
    for scenario, truth in runs:
        for producer in scenario.producers:
            lines.append("| " + " | ".join(_cells(scenario, truth, producer.name)) + " |")
    return "\n".join(lines) + "\n"


def _cells(scenario: Scenario, truth: Truth, name: str) -> list[str]:
    (producer,) = (each for each in scenario.producers if each.name == name)
    sums = truth.sums[name]
    at_least = "" if sums.complete else "≥ "
    missed = ", ".join(f"{count}" for count in sums.missed.values()) or "-"
    groups = [each.group for each in scenario.consumers if each.topic == producer.topic]
    silences = [_seconds(truth.resumed_s.get(group)) for group in groups]
    return [
        scenario.name,
        name,
        producer.acks,
        "yes" if is_idempotent(scenario, name) else "no",
        f"{at_least}{sums.handed_over:,}",
        f"{sums.acked:,}",
        f"{sums.failed:,}",
        *(f"{getattr(sums, count):,}" for count in _COUNTED),
        missed,
        _seconds(sums.silence_s),
        ", ".join(silences) or "-",
    ]


def _seconds(silence: float | None) -> str:
    return "never resumed" if silence is None else f"{silence:.1f}"
