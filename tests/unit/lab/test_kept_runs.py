"""`acktrail lab score --evidence`: a run that is not whole is refused before any work is done."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from acktrail.cli import main


def test_a_lake_that_is_there_is_not_written_over(tmp_path):
    ran = CliRunner().invoke(main, ["lab", "score", "lost-ack", "--lake", str(tmp_path)])
    assert ran.exit_code != 0
    assert "is there already" in ran.output + str(ran.exception)


@pytest.mark.parametrize(
    ("there", "named"),
    [((), "truth.json"), (("truth.json",), "truth.jsonl"), (("truth.json", "truth.jsonl.gz"), "")],
)
def test_a_kept_run_without_its_truth_is_refused(tmp_path, there, named):
    truth = tmp_path / "lost-ack" / "truth"
    truth.mkdir(parents=True)
    for name in there:
        (truth / name).write_text("{}")
    words = ["lab", "score", "lost-ack", "--evidence", str(tmp_path)]
    ran = CliRunner().invoke(main, words)
    said = ran.output + str(ran.exception)
    assert ran.exit_code != 0
    assert f"{truth.parent}: no whole run" in said
    assert f"truth/{named or 'truth.jsonl'} is missing" in said
