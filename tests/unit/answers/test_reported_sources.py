"""What is left out of the history of sources changes nothing that is said of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from acktrail.answers.sources import newest_states, without_repeats
from acktrail.contracts.arrow import rows
from acktrail.contracts.runs import SOURCE_STATES
from acktrail.contracts.vocabulary import SourceState

START = datetime(2026, 1, 31, 7, 0, tzinfo=UTC)
REPORTS = st.lists(
    st.fixed_dictionaries(
        {
            "source": st.sampled_from(["a", "b"]),
            "agent": st.sampled_from(["one", "two"]),
            "state": st.sampled_from([state.value for state in SourceState]),
            "unread": st.sampled_from([[], ["x"], ["x", "y"]]),
            "again": st.integers(1, 5),
        }
    ),
    max_size=12,
)


@given(REPORTS)
@settings(deadline=None)
def test_reports_that_repeat_each_other_say_nothing_new(reports: list[dict]) -> None:
    same = {"cluster": "c", "host": "h", "kind": "log_files", "command": "agent", "notes": []}
    told = [one for one in reports for _ in range(one["again"])]
    listed = [
        {
            **same,
            **{name: value for name, value in one.items() if name != "again"},
            "at": START + timedelta(minutes=10 * number),
            "day": "2026-01-31",
        }
        for number, one in enumerate(told)
    ]
    table = rows(SOURCE_STATES, listed)
    assert newest_states(without_repeats(table).to_pylist()) == newest_states(table.to_pylist())
