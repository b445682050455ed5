"""What the prompt of `acktrail sql` completes, and when Enter ends a statement."""

from __future__ import annotations

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from acktrail.contracts import TABLES
from acktrail.operate.sql_prompt import NameCompleter, is_whole
from pipelines.adhoc.saved import questions

COMPLETER = NameCompleter({table.name: list(table.names) for table in TABLES}, questions())


def complete(text: str) -> dict[str, str]:
    found = COMPLETER.get_completions(Document(text), CompleteEvent(completion_requested=True))
    return {each.text: each.display_meta_text for each in found}


CASES = [
    ("a table", "SELECT * FROM loss_i", {"loss_incidents": "table"}),
    ("a table of a command", "\\d loss_e", {"loss_events": "table"}),
    ("a column before FROM", "SELECT attempts_left_m",
     {"attempts_left_min": "producer_reliability"}),
    ("a column of a named table", "SELECT * FROM loss_events WHERE first_s",
     {"first_seq": "loss_events"}),
    ("a function", "SELECT approx_count_d", {"approx_count_distinct": "function"}),
    ("a function that is not allowed", "SELECT reflec", {}),
    ("a keyword, as it is typed", "select distin", {"distinct": "keyword"}),
    ("a keyword, in capitals", "SELECT DISTIN", {"DISTINCT": "keyword"}),
    ("a saved question", "\\r weak", {"weak-guarantees": "saved question"}),
    ("a command", "\\tim", {"\\timing": "command"}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "wanted"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_what_is_completed(text: str, wanted: dict[str, str]) -> None:
    assert complete(text) == wanted


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("", True),
        ("\\d runs", True),
        ("quit", True),
        ("SELECT 1", False),
        ("SELECT 1\nFROM runs", False),
        ("SELECT 1;  ", True),
    ],
)
def test_enter_ends_what_is_whole(text: str, ends: bool) -> None:
    assert is_whole(text) == ends
