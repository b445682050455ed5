"""Was it as expected? And the table that answers "what happens if the ack never comes?"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lab.scenario import NONE, Expect, Owed, Scenario
from lab.truth import Sums, Truth

_COUNTED = (
    "lost_after_ack",
    "lost_told",
    "lost_silent",
    "duplicated",
    "out_of_order",
    "ghosts",
)
_ALSO = ("aborted", "cut")
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
            if group not in scenario.owed and missed not in allowed:
                found.append(f"{group} never received {missed} messages of {name} in the log")
    for group, total in truth.groups.items():
        found += _of_group(group, scenario.owed.get(group), total.states)
    return found


def _of_group(group: str, owed: Owed | None, states: Mapping[str, int]) -> list[str]:
    found = []
    if not states.get("received"):
        found.append(f"{group} received nothing")
    if states.get("unplaced"):
        found.append(f"{group}: of {states['unplaced']} messages no place is known")
    for state in ("skipped", "expired", "not_read") if owed is not None else ():
        actual, allowed = states.get(state, 0), getattr(owed, state, NONE)
        if actual not in allowed:
            found.append(f"{group}: {state} is {actual}, expected {_said(allowed)}")
    return found


def _said(allowed: range) -> str:
    return "none" if allowed == NONE else f"at least {allowed.start}"


def _of_producer(name: str, expect: Expect, sums: Sums) -> list[str]:
    if not sums.handed_over:
        return [f"{name} sent nothing"]
    found = []
    counted = {count: getattr(sums, count) for count in (*_COUNTED, *_ALSO)}
    counted["taken"] = sum(sums.taken.values())
    for count, actual in counted.items():
        allowed = getattr(expect, count)
        if actual not in allowed:
            found.append(f"{name}: {count} is {actual}, expected {_said(allowed)}")
    for blame in expect.blame:
        if not sums.causes.get(blame.cause):
            found.append(f"{name}: nothing was lost by {blame.cause}")
    return found


def is_idempotent(scenario: Scenario, producer: str) -> bool:
    """Whether the producer's settings give idempotence, by the rules of its client."""
    (wanted,) = (each for each in scenario.producers if each.name == producer)
    if "transactional.id" in wanted.settings:
        return True
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
    groups = dict.fromkeys(c.group for c in scenario.consumers if c.topic == producer.topic)
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
