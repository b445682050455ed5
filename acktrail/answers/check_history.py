"""What checks found, run by run; and verdicts that later evidence corrected."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow.compute as pc

from acktrail.answers.inquiry import Inquiry, both
from acktrail.answers.many import Row, Top, grouped, top
from acktrail.contracts.gold import VERDICT_CHANGES
from acktrail.contracts.runs import CHECK_RESULTS
from acktrail.contracts.vocabulary import Grade, Outcome
from acktrail.lake import Lake

RESULTS = ("pass", "warn", "undecided", "fail")
"""What a check came to, the best first: a failed check of the grade `warn` is a warning."""
_RUNS = 30
_WIDE = 2_000
_CORRECTED = 30


@dataclass(frozen=True)
class Checks:
    """The checks of a window."""

    runs: list[Row] = field(default_factory=list)
    """The newest runs, the oldest first: `check_run`, `as_of`."""
    runs_left_out: int = 0
    results: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    """Table and check to its result in each run."""
    newest: list[Row] = field(default_factory=list)
    """Rows of the newest run that did not pass, the worst first, with `result`."""
    corrected: Top = field(default_factory=Top)
    """Verdicts that were replaced."""

    def count(self) -> dict[str, int]:
        """Results of the newest run, with their number."""
        if not self.runs:
            return {}
        last = self.runs[-1]["check_run"]
        found = [by_run[last] for by_run in self.results.values() if last in by_run]
        return {result: found.count(result) for result in RESULTS if result in found}


def result_of(row: Row) -> str:
    """pass, warn, undecided or fail."""
    if row["outcome"] == Outcome.FAIL and row["grade"] == Grade.WARN:
        return "warn"
    return str(row["outcome"]) if row["outcome"] in RESULTS else "undecided"


def checks(lake: Lake, asked: Inquiry) -> Checks:
    """The checks asked about in the window, and the verdicts that changed in it."""
    before = Inquiry(asked.since, asked.until, asked.as_of)
    where = before.at(CHECK_RESULTS, "as_of")
    runs = grouped(
        lake, CHECK_RESULTS, where, ("check_run",), [("as_of", "max"), ("checked_at", "max")]
    )
    ordered = sorted(runs.to_pylist(), key=lambda r: (r["as_of"], r["checked_at"], r["check_run"]))
    shown = ordered[-_RUNS:]
    corrected = _corrected(lake, asked)
    if not shown:
        return Checks(corrected=corrected)
    names = [row["check_run"] for row in shown]
    listed = both(where, pc.field("check_run").isin(names))
    keys = ("table", "check", "check_run", "outcome", "grade")
    results: dict[tuple[str, str], dict[str, str]] = {}
    for row in grouped(lake, CHECK_RESULTS, listed, keys, [("rows_failed", "sum")]).to_pylist():
        by_run = results.setdefault((row["table"], row["check"]), {})
        known = by_run.get(row["check_run"], RESULTS[0])
        by_run[row["check_run"]] = max(known, result_of(row), key=RESULTS.index)
    return Checks(
        runs=shown,
        runs_left_out=len(ordered) - len(shown),
        results=dict(sorted(results.items(), key=lambda item: (_worst(item[1]), item[0]))),
        newest=_newest(lake, names[-1], where),
        corrected=corrected,
    )


def _worst(by_run: dict[str, str]) -> int:
    return -max(RESULTS.index(result) for result in by_run.values())


def _newest(lake: Lake, run: str, where: object) -> list[Row]:
    not_passed = (pc.field("check_run") == run) & (pc.field("outcome") != Outcome.PASS.value)
    columns = (
        *("table", "check", "subject", "grade", "outcome", "rows_failed", "because", "runbook"),
    )
    order = [("table", "ascending"), ("check", "ascending"), ("subject", "ascending")]
    rows = top(lake, CHECK_RESULTS, both(where, not_passed), columns, order, _WIDE).rows
    for row in rows:
        row["result"] = result_of(row)
    return sorted(rows, key=lambda r: (-RESULTS.index(r["result"]), r["table"], r["check"]))


def _corrected(lake: Lake, asked: Inquiry) -> Top:
    where = both(asked.at(VERDICT_CHANGES, "changed_at"), pc.field("before_state").is_valid())
    columns = (
        *("changed_at", "cluster", "session", "topic", "group", "first_seq", "last_seq"),
        *("before_state", "before_cause", "after_state", "after_cause", "because"),
    )
    order = [("changed_at", "descending"), ("session", "ascending"), ("first_seq", "ascending")]
    return top(lake, VERDICT_CHANGES, where, columns, order, _CORRECTED)
