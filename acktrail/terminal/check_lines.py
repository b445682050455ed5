"""What `acktrail check` prints for people: one line for what passed, then what did not.

Lines are at most WIDTH wide and go on under their column. A thing that makes several checks
undecided is printed once, with the names of those checks.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from acktrail.alerts.finding import NOT_COLLECTED
from acktrail.contracts.vocabulary import Outcome

if TYPE_CHECKING:
    from acktrail.alerts.finding import CheckResult, Finding

WIDTH = 118
_COLUMN = 11


def text_lines(results: Sequence[CheckResult], notes: Sequence[str] = ()) -> Iterator[str]:
    """The lines for *results*, the worst last; *notes* are said beside them."""
    yield from _summary(results)
    for note in notes:
        yield from _wrapped("note", note)
    yield from _undecided(results)
    failed = [r for r in results if r.outcome is Outcome.FAIL]
    for result in sorted(failed, key=lambda r: r.failed):
        yield from _failed(result)


def _summary(results: Sequence[CheckResult]) -> Iterator[str]:
    passed = [r for r in results if r.outcome is Outcome.PASS]
    muted = sum(len(r.findings) - len(r.open_findings) for r in passed)
    note = f" ({_number(muted, 'finding')} muted by a maintenance window)" if muted else ""
    yield f"{'pass':<{_COLUMN}}{len(passed)} of {len(results)} checks{note}"
    blind = [r for r in results if r.outcome is Outcome.UNDECIDED and not r.open_findings]
    kinds = sorted({f.needs for r in blind for f in r.findings if f.muted_by == NOT_COLLECTED})
    if blind:
        why = f"({', '.join(kinds)}: `not_collected` in the policy file)"
        yield f"{'left out':<{_COLUMN}}{_number(len(blind), 'check')} {why}"


def _undecided(results: Sequence[CheckResult]) -> Iterator[str]:
    """Each reason once, with the checks that are undecided for it."""
    reasons: dict[tuple[str, str, str], tuple[Finding, dict[str, None]]] = {}
    for result in results:
        for finding in result.open_findings:
            if finding.outcome is Outcome.UNDECIDED and result.outcome is Outcome.UNDECIDED:
                key = (finding.cluster, finding.state, finding.cause)
                reasons.setdefault(key, (finding, {}))[1][result.check] = None
    for finding, checks in reasons.values():
        yield from _wrapped("undecided", f"{_number(len(checks), 'check')}: {finding.because}")
        yield from _wrapped("", ", ".join(checks))


def _failed(result: CheckResult) -> Iterator[str]:
    title = f"{result.check} ({result.table}): {result.sentence}"
    yield from _wrapped(result.grade.value.upper(), title)
    said = [f.because for f in result.open_findings if f.outcome is Outcome.FAIL]
    for because in dict.fromkeys(said):
        yield from _wrapped("", f"- {because}", deeper=2)
    yield f"{'':<{_COLUMN}}Runbook: {result.runbook}"


def _wrapped(label: str, text: str, deeper: int = 0) -> list[str]:
    return textwrap.wrap(
        " ".join(text.split()),
        WIDTH,
        initial_indent=f"{label:<{_COLUMN}}",
        subsequent_indent=" " * (_COLUMN + deeper),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
