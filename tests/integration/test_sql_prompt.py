"""The prompt of `acktrail sql`, driven as a person does it: through a pseudo-terminal."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.integration.sql_lake import environment, small_lake

WAIT_S = 120
SQL = [sys.executable, "-m", "acktrail", "sql", "--lake", "lake"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("prompt")
    small_lake(directory / "lake")
    return directory


class Person:
    """Types, and reads what the terminal shows."""

    def __init__(self, place: Path) -> None:
        command = ["-m", "acktrail", "sql", "--lake", "lake"]
        self.terminal = pexpect.spawn(
            sys.executable, command, cwd=place, env=environment(place), encoding="utf-8",
            dimensions=(40, 160), timeout=WAIT_S,
        )  # fmt: skip

    def types(self, text: str) -> None:
        self.terminal.send(text)

    def enters(self, text: str) -> None:
        self.terminal.send(text + "\r")

    def sees(self, text: str) -> None:
        self.terminal.expect(re.compile(text))


@pytest.fixture(scope="module")
def person(place: Path) -> Iterator[Person]:
    at_work = Person(place)
    at_work.sees("acktrail>")
    yield at_work
    at_work.terminal.close(force=True)


def test_a_statement_of_several_lines_is_answered(person: Person) -> None:
    person.enters("SELECT count(*) AS how_many")
    person.enters("FROM log_records;")
    person.sees(r"how_many\s+3\s+\(1 row\)")


def test_names_are_completed(person: Person) -> None:
    person.types("SELECT DISTINCT clus\t")
    person.sees("cluster")
    person.types(" AS found FROM log_re\t")
    person.sees("log_records")
    person.enters(";")
    person.sees(r"found\s+c\s+\(1 row\)")


def test_commands_are_answered_without_a_query(person: Person) -> None:
    person.enters("\\d")
    person.sees("log_records +bronze")
    person.enters("\\d runs")
    person.sees("Name of the job.")
    person.enters("\\l")
    person.sees("lost-by-cause")
    person.enters("\\nonsense")
    person.sees("is not a command here")
    person.enters("\\timing")
    person.enters("SELECT run FROM runs WHERE run = 1;")
    person.sees(r"\(1 row\)\s+\d+\.\d\d s")
    person.enters("\\timing")
    person.sees("Timing is off")


def test_an_error_is_a_line_and_a_caret(person: Person) -> None:
    person.enters("SELECT rum FROM runs;")
    person.sees(r"There is no column rum. Did you mean run\?\s+1 \| SELECT rum FROM runs")
    person.sees(r"\| +\^")


def test_ctrl_c_stops_a_question_and_the_next_is_answered(person: Person) -> None:
    person.enters("SELECT count(*) FROM range(1000000000000) WHERE rand() < 2;")
    time.sleep(3)
    person.terminal.sendintr()
    person.sees("Stopped|Interrupted")
    person.enters("SELECT 40 + 2 AS answer;")
    person.sees(r"answer\s+42\s")


def test_ctrl_c_at_the_prompt_only_empties_the_line(person: Person) -> None:
    person.types("SELECT nothing")
    person.terminal.sendintr()
    person.enters("SELECT 1 + 1 AS two;")
    person.sees(r"two\s+2\s")


def test_an_answer_goes_to_a_file_with_its_types(person: Person, place: Path) -> None:
    person.enters("\\o answer.parquet")
    person.enters("SELECT started_at, 1.50 AS price FROM runs;")
    person.sees("2 rows written to answer.parquet")
    found = pq.read_table(place / "answer.parquet")
    assert found.schema.field("started_at").type == pa.timestamp("us", "UTC")
    assert found.schema.field("price").type == pa.decimal128(3, 2)


def test_leaving_keeps_the_history_and_nothing_else(person: Person, place: Path) -> None:
    person.enters("\\q")
    person.terminal.expect(pexpect.EOF)
    person.terminal.close()
    assert person.terminal.exitstatus == 0
    assert "FROM log_records;" in (place / "history").read_text()
    assert {path.name for path in place.iterdir()} == {"lake", "history", "answer.parquet"}


def test_without_a_terminal_the_query_is_read_from_stdin(place: Path) -> None:
    text = (
        "SELECT job, timestamp '2026-01-01 00:00:00.123456' AS t, 1.50 AS d, "
        "map('a', array(1)) AS m "
        "FROM runs"
    )
    done = subprocess.run(
        [*SQL, "--format", "json", "--limit", "1"],
        cwd=place, env={**environment(place), "SPARK_REMOTE": "sc://localhost:1"}, input=text,
        capture_output=True, text=True,
        timeout=WAIT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    row = {"job": "j", "t": "2026-01-01T00:00:00.123456Z", "d": 1.5, "m": {"a": [1]}}
    assert [json.loads(line) for line in done.stdout.splitlines()] == [row]
    assert done.stderr == "Only the first 1 rows are shown; --limit 0 shows all.\n"
    assert not (place / "spark-warehouse").exists()
