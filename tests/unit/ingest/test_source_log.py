"""The log of a source: one line for each change of state, however often it fails."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acktrail.errors import SourceUnavailable
from ingest.agent.source_log import OTHER_REASON_S, REMIND_S, SourceLog

LOGGER = logging.getLogger("ingest.agent.source_log")


class Lines(logging.Handler):
    """Keeps the sentences, for as long as the block lasts."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []
        self.tracebacks = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())
        self.tracebacks += record.exc_info is not None

    def __enter__(self) -> Lines:
        LOGGER.addHandler(self)
        self._level, self._passes = LOGGER.level, LOGGER.propagate
        LOGGER.setLevel(logging.INFO)
        LOGGER.propagate = False
        return self

    def __exit__(self, *_: object) -> None:
        LOGGER.removeHandler(self)
        LOGGER.setLevel(self._level)
        LOGGER.propagate = self._passes


_STEPS = st.lists(
    st.tuples(st.sampled_from(["refused", "timed out", "works"]), st.floats(0, 400)), max_size=60
)


@given(_STEPS)
def test_lines_follow_changes_and_time_never_the_number_of_failures(steps):
    now = 0.0
    about = SourceLog("s", lambda: now)
    failing, changes = False, 0
    with Lines() as lines:
        for what, pause in steps:
            now += pause
            fails = what != "works"
            changes += fails != failing
            failing = fails
            about.failed(SourceUnavailable(what)) if fails else about.worked()
    assert changes <= len(lines.said) <= changes + now / OTHER_REASON_S
    assert sum("Works again" in said for said in lines.said) == changes // 2
    assert not lines.tracebacks


def test_a_lasting_failure_is_counted():
    now = 0.0
    about = SourceLog("s", lambda: now)
    with Lines() as lines:
        for _ in range(601):
            about.failed(SourceUnavailable("Nobody is there."))
            now += 1.0
        about.worked()
    assert lines.said == [
        "Nobody is there. Will try again.",
        f"Still failing, {REMIND_S + 1:.0f} failures in 5 min: Nobody is there. Will try again.",
        "Still failing, 601 failures in 10 min: Nobody is there. Will try again.",
        "Works again after 601 failures in 10 min.",
    ]


ERRORS = [
    # error, what is said, whether with a traceback
    (SourceUnavailable("Two\n lines"), "Two lines. Will try again.", False),
    (PermissionError(13, "Permission denied", "/x"), "/x: Permission denied. Will", False),
    (OSError("odd"), "OSError: odd. Will try again.", False),
    (KeyError("topic"), "KeyError: 'topic'. Will try again.", True),
]


@pytest.mark.parametrize(("error", "said", "traceback"), ERRORS)
def test_only_what_nobody_expected_has_a_traceback(error, said, traceback):
    with Lines() as lines:
        SourceLog("s").failed(error)
    assert lines.said[0].startswith(said)
    assert lines.tracebacks == traceback


def test_a_note_that_comes_and_goes_is_said_once_in_a_while():
    now = 0.0
    about = SourceLog("s", lambda: now)
    with Lines() as lines:
        for n in range(400):
            now = float(n)
            about.notes(["broker 1 is odd"] if n % 2 else [])
    assert lines.said == ["broker 1 is odd.", "No longer so: broker 1 is odd."] * 2
