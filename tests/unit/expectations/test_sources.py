"""`every_source_up` and `configured_inputs_found`: a table of named cases, and through the lake."""

from __future__ import annotations

from datetime import timedelta

import pytest
from gold_rows import NOW, ago, ask, row, write

from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.contracts.runs import SOURCE_STATES
from acktrail.lake import Lake
from expectations.domain.sources import ExpectConfiguredInputsFound, ExpectEverySourceUp
from expectations.suite import Question
from expectations.views import source_states

HOUR, DAY = 3600, 86_400

UP = [
    # case, rows (state, seconds ago, command), findings
    ("read now", [("up", 60, "agent")], []),
    ("no agent ever", [], []),
    ("failing for a moment", [("up", 200, "agent"), ("failing", 60, "agent")], []),
    ("failing for long", [("failing", 400, "agent"), ("failing", 60, "agent")], ["failing"]),
    ("failing since its start", [("failing", 400, "watch")], ["failing"]),
    ("failed in a run once", [("failing", 5, "agent --once")], ["failing"]),
    (
        "mended by the next run",
        [("failing", 900, "agent --once"), ("ended", 5, "agent --once")],
        [],
    ),
    ("needs a person", [("up", 60, "agent"), ("stopped", 5, "agent")], ["stopped"]),
    ("waits for one that does not report", [("held", 400, "agent")], ["held"]),
    ("waits for one that reads", [("up", 400, "watch"), ("held", 390, "agent")], []),
    ("killed", [("up", HOUR, "agent")], ["silent"]),
    ("ended, and not started again", [("ended", HOUR, "agent")], ["silent"]),
    ("run every hour", [("ended", HOUR, "agent --once")], []),
    ("no longer run every hour", [("ended", 3 * HOUR, "agent --once")], ["silent"]),
    ("taken out of service", [("stopped", 8 * DAY, "agent")], []),
]


@pytest.fixture(scope="module")
def lake(tmp_path_factory) -> Lake:
    """Every case as a source of its own, in one table."""
    made = Lake(tmp_path_factory.mktemp("lake"))
    records = [
        row(
            SOURCE_STATES,
            source=case.replace(" ", "-"),
            kind="log_files",
            host="h",
            agent="h:1",
            command=command,
            at=ago(seconds),
            day=f"{ago(seconds):%Y-%m-%d}",
            state=state,
            error=None if state in ("up", "ended") else "no answer.",
        )
        for case, states, _ in UP
        for state, seconds, command in states
    ]
    write(made, SOURCE_STATES, *records)
    return made


def test_each_source_that_is_down_or_left_alone_is_found_and_no_other(lake):
    frame = source_states(lake, Question(NOW, timedelta(hours=24)))
    found = ExpectEverySourceUp(as_of=NOW.isoformat()).findings(frame)
    got = {f.cause.removesuffix("@h"): f.state for f in found}
    expected = {case.replace(" ", "-"): f"source_{states[0]}" for case, _, states in UP if states}
    assert got == expected
    for finding in found:
        assert finding.starts_at.tzinfo
        assert ".." not in finding.because
        assert finding.cause.split("@")[0] in finding.because


def test_the_check_fails_through_great_expectations_and_is_empty_where_no_agent_ran(lake, tmp_path):
    asked = ask(lake, tables=[SOURCE_STATES.name])
    assert {r.check: r.outcome.value for r in asked} == {
        "fits_its_contract": "pass",
        "every_source_up": "fail",
        "configured_inputs_found": "pass",
    }
    ingested = Lake(tmp_path)
    write(ingested, LOG_RECORDS, row(LOG_RECORDS))
    nobody = ask(ingested, tables=[SOURCE_STATES.name])
    assert {r.outcome.value for r in nobody} == {"pass"}


UNREAD = [
    # case, rows (unread, seconds ago), findings
    ("all read", [([], 700), ([], 10)], 0),
    ("a moment", [([], 700), (["/x: matches no file"], 30)], 0),
    ("at its start and since", [(["/x: matches no file"], 700)], 1),
    ("again at each run", [(["/x: matches no file"], 700), (["/x: matches no file"], 30)], 1),
    ("mended", [(["/x: matches no file"], 700), ([], 30)], 0),
]


@pytest.mark.parametrize(("states", "count"), [c[1:] for c in UNREAD], ids=[c[0] for c in UNREAD])
def test_paths_that_stay_unread_are_found(states, count, tmp_path):
    made = Lake(tmp_path)
    records = [
        row(SOURCE_STATES, source="s", command="agent", state="up", unread=unread, at=ago(seconds))
        for unread, seconds in states
    ]
    write(made, SOURCE_STATES, *records)
    frame = source_states(made, Question(NOW, timedelta(hours=24)))
    found = ExpectConfiguredInputsFound(as_of=NOW.isoformat()).findings(frame)
    assert len(found) == count
    assert all("/x: matches no file" in f.because for f in found)
