"""A command that does not exist: exit code 2, and the nearest name."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from acktrail.cli import main

MISTYPED = {
    "lossess": "There is no command lossess. Did you mean losses?",
    "budget": "There is no command budget. Did you mean budgets?",
    "xyzzy": "There is no command xyzzy.\n",
}


@pytest.mark.parametrize("word", MISTYPED)
def test_the_nearest_command_is_named(word: str) -> None:
    done = CliRunner().invoke(main, [word, "--lake", "x"])
    assert done.exit_code == 2
    assert MISTYPED[word] in done.stderr
