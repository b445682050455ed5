"""A lake that is not there: a mistyped name must never look like good news."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from acktrail.cli import main
from acktrail.contracts.arrow import rows
from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.errors import SourceUnavailable, UsageError
from acktrail.lake import Lake

QUESTIONS = {
    "budgets": ["budgets"],
    "losses": ["losses"],
    "ledger": ["ledger"],
    "explain": ["explain", "3f9c"],
    "alerts list": ["alerts", "list"],
    "alerts send": ["alerts", "send"],
    "sql": ["sql", "SELECT 1"],
}
UPKEEP = {
    "check": ["check"],
    "run": ["run"],
    "lake tables": ["lake", "tables"],
    "lake optimize": ["lake", "optimize"],
    "lake expire": ["lake", "expire"],
    "lake vacuum": ["lake", "vacuum"],
}


@pytest.mark.parametrize("words", QUESTIONS.values(), ids=QUESTIONS)
def test_a_question_is_refused(words, tmp_path):
    done = CliRunner().invoke(main, [*words, "--lake", str(tmp_path / "laek")])
    assert isinstance(done.exception, UsageError) or done.exit_code == UsageError.exit_code
    assert not done.stdout
    assert "There is no table at" in done.stderr + str(done.exception)
    assert not (tmp_path / "laek").exists()


@pytest.mark.parametrize("words", UPKEEP.values(), ids=UPKEEP)
def test_what_a_scheduler_runs_goes_on_and_says_it(words, tmp_path):
    done = CliRunner().invoke(main, [*words, "--lake", str(tmp_path / "laek")])
    assert done.exit_code == 0
    assert "There is no table at" in done.stderr


def test_a_check_makes_no_lake_of_a_name_that_is_none(tmp_path):
    name = ["--lake", str(tmp_path / "laek")]
    assert CliRunner().invoke(main, ["check", *name]).exit_code == 0
    done = CliRunner().invoke(main, ["losses", *name])
    assert (done.exit_code, done.stdout) == (UsageError.exit_code, "")


def test_one_table_makes_a_lake(tmp_path):
    lake = Lake(tmp_path)
    assert lake.is_empty()
    lake.append(LOG_RECORDS, rows(LOG_RECORDS, []))
    assert lake.is_empty(), "nothing was written"
    lake.create(LOG_RECORDS)
    assert not lake.is_empty()
    done = CliRunner().invoke(main, ["alerts", "list", "--lake", lake.uri])
    assert (done.exit_code, done.stderr) == (0, "")


NOWHERE = (
    "aws_endpoint_url=http://127.0.0.1:9", "aws_allow_http=true", "aws_region=x", "max_retries=0",
    "aws_access_key_id=nobody", "aws_secret_access_key=nothing",
)  # fmt: skip


@pytest.mark.parametrize("words", [QUESTIONS["losses"], UPKEEP["lake optimize"]], ids=" ".join)
def test_a_lake_that_does_not_answer_is_worth_another_try(words):
    given = [word for option in NOWHERE for word in ("--set", f"lake.storage_options.{option}")]
    done = CliRunner().invoke(main, [*words, "--lake", "s3://nowhere/lake", *given])
    assert done.exit_code == SourceUnavailable.exit_code
    assert "did not answer" in done.stderr
