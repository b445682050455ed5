"""View 10: checks, run by run, and verdicts that were corrected."""

from __future__ import annotations

from acktrail.answers.check_history import Checks
from acktrail.pages.html import Html, join, tag
from acktrail.pages.parts import badge, chart, details, empty, left_out, legend, row, section, table
from acktrail.pages.svg import AxisTick, Cell, Scale, axis, few, matrix
from acktrail.pages.words import count, moment

_BADGES = {"fail": "bad", "warn": "warn", "undecided": "unknown", "pass": "ok"}


def checks(found: Checks, most: int) -> Html:
    """What did not pass last, the history, and the corrected verdicts."""
    title = "Checks"
    corrected = _corrected(found)
    if not found.runs:
        return section(
            "checks",
            title,
            "No check was run in this window.",
            empty("`acktrail check` asks every expectation."),
            corrected,
        )
    counted = found.count()
    words = {"fail": "failed", "warn": "warned", "undecided": "undecided", "pass": "passed"}
    said = ", ".join(
        f"{counted[r]:,} {words[r]}"
        for r in ("fail", "warn", "undecided", "pass")
        if counted.get(r)
    )
    last = found.runs[-1]["as_of"]
    return section(
        "checks",
        title,
        f"{count(len(found.runs) + found.runs_left_out, 'run')}; at {moment(last)}: {said}.",
        _newest(found, most),
        _history(found, most),
        corrected,
    )


def _newest(found: Checks, most: int) -> Html | None:
    if not found.newest:
        return None
    rows = [
        (
            badge(_BADGES[r["result"]], r["result"]),
            join(
                tag("span", r["check"], class_="code"),
                tag("span", r["runbook"], class_="muted under"),
            ),
            r["because"],
            r["subject"],
        )
        for r in found.newest[:most]
    ]
    more = len(found.newest) - len(rows)
    return join(
        table(
            "What did not pass in the newest run",
            ("Result", "Check and runbook", "What was found", "Owner"),
            rows,
        ),
        left_out(f"{more:,} more not listed.") if more else None,
    )


def _history(found: Checks, most: int) -> Html:
    runs = [r["check_run"] for r in found.runs]
    rows: list[Html] = []
    quiet = 0
    for (name, check), by_run in found.results.items():
        if set(by_run.values()) == {"pass"} and len(by_run) == len(runs):
            quiet += 1
            continue
        if len(rows) >= most:
            continue
        cells = [
            Cell(by_run.get(run, "notrun"), _title(by_run, run, r["as_of"]))
            for run, r in zip(runs, found.runs, strict=True)
        ]
        label = join(check, " ", tag("span", name, class_="muted"))
        rows.append(
            row(label, matrix(f"{check} of {name}", cells), by_run.get(runs[-1], "not run"))
        )
    scale = Scale(0, len(runs))
    ticks = [AxisTick(0, f"{found.runs[0]['as_of']:%m-%d %H:%M}Z")]
    if len(runs) > 1:
        ticks.append(AxisTick(len(runs), f"{found.runs[-1]['as_of']:%m-%d %H:%M}Z"))
    more = len(found.results) - quiet - len(rows)
    notes = [
        f"{count(quiet, 'check')} passed in every run shown." if quiet else "",
        f"{count(more, 'check')} not drawn." if more else "",
        f"{count(found.runs_left_out, 'earlier run')} not drawn." if found.runs_left_out else "",
    ]
    return join(
        tag("h3", "History"),
        chart(
            "Checks, run by run",
            *rows,
            row("runs", axis(scale, ticks, "Runs", few(len(runs)))),
            kind="map",
        )
        if rows
        else None,
        legend(
            ("pass", "pass"),
            ("warn", "warning"),
            ("undecided", "undecided"),
            ("fail", "fail"),
            ("gap", "not run"),
        )
        if rows
        else None,
        left_out(" ".join(n for n in notes if n)) if any(notes) else None,
    )


def _title(by_run: dict[str, str], run: str, as_of: object) -> str:
    result = by_run.get(run, "not run")
    return "" if result == "pass" else f"{as_of:%m-%d %H:%M}Z {result}"


def _verdict(state: str, cause: str | None) -> str:
    return state if cause is None else f"{state} ({cause})"


def _corrected(found: Checks) -> Html:
    top = found.corrected
    if not top.rows:
        text = "No verdict was corrected by later evidence in this window."
        return join(tag("h3", "Corrected verdicts"), tag("p", text, class_="left-out"))
    rows = [
        (
            moment(r["changed_at"]),
            r["topic"],
            r["session"],
            f"{r['first_seq']:,} to {r['last_seq']:,}",
            _verdict(r["before_state"], r["before_cause"]),
            "withdrawn"
            if r["after_state"] is None
            else _verdict(r["after_state"], r["after_cause"]),
            r["because"] or "",
        )
        for r in top.rows
    ]
    columns = ("Changed", "Topic", "Session", "Messages", "Before", "After", "Why")
    return join(
        tag("h3", "Corrected verdicts"),
        details(
            f"{count(top.of, 'verdict')} corrected by later evidence",
            table("Corrected verdicts", columns, rows),
            left_out(f"{top.left_out:,} more not listed.") if top.left_out else None,
        ),
    )
