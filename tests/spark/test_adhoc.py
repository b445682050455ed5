"""What `acktrail sql` answers: statements, errors, types, limits, former names."""

from __future__ import annotations

import shutil
import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from acktrail.contracts.arrow import rows
from acktrail.contracts.runs import RUNS
from acktrail.errors import UsageError
from acktrail.lake import Lake
from acktrail.policy.renamed import RENAMED
from pipelines.adhoc import statements
from pipelines.adhoc.ask import Asker, TooSlow
from pipelines.adhoc.statements import Statement
from pipelines.adhoc.tokens import tokens_of

NOW = datetime(2026, 1, 31, tzinfo=UTC)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    made = Lake(tmp_path_factory.mktemp("lake"))
    run = {
        "job": "j", "run": 0, "started_at": NOW, "ended_at": NOW, "as_of": NOW, "shape": "map",
        "rebuilt": False, "rows_in": 3, "rows_out": 2, "touched": 0, "version": 1,
    }  # fmt: skip
    made.append(RUNS, rows(RUNS, [run]))
    made.append(RUNS, rows(RUNS, [{**run, "run": 1, "rows_in": 9}]))
    return made


@pytest.fixture(scope="module")
def asker(spark: SparkSession, lake: Lake) -> Asker:
    return Asker(spark, lake)


def test_the_tables_and_their_columns_are_described(asker: Asker) -> None:
    def column(text: str, name: str) -> list[object]:
        return asker.ask(text).rows[name].to_pylist()

    assert column("SHOW TABLES", "table") == ["runs"]
    assert column("show tables like 'x*';", "table") == []
    assert column("DESCRIBE runs", "column") == list(RUNS.names)
    assert column("DESC TABLE runs", "meaning")[0] == "Name of the job."
    assert column("SHOW COLUMNS IN runs", "column") == list(RUNS.names)
    told = asker.ask("DESCRIBE EXTENDED runs").rows.to_pylist()
    assert {"column": "location", "type": "", "meaning": "runs/runs"} in told
    assert {"column": "version", "type": "", "meaning": "2"} in told
    assert column("DESCRIBE SELECT run + 1 AS a, job FROM runs", "type") == ["bigint", "string"]
    assert column("DESCRIBE HISTORY runs", "version") == [2, 1, 0]
    assert column("SHOW FUNCTIONS LIKE 'date_a*'", "function") == ["date_add"]
    assert "Usage: abs(expr)" in column("DESCRIBE FUNCTION abs", "plan")[1]  # type: ignore[operator]


def test_a_table_is_read_as_it_was(asker: Asker) -> None:
    def count(of: str) -> object:
        return asker.ask(f"SELECT count(*) AS n FROM {of}").rows["n"][0].as_py()

    assert [count(f"runs VERSION AS OF {n}") for n in range(3)] == [0, 1, 2]
    at = asker.ask("DESCRIBE HISTORY runs").rows["committed_at"][1].as_py()
    assert count(f"runs TIMESTAMP AS OF '{at:%F %T.%f}'") == 1


@pytest.mark.parametrize("mode", ["", "EXTENDED", "FORMATTED", "COST"])
def test_a_plan_names_no_place_on_this_host(asker: Asker, lake: Lake, mode: str) -> None:
    answer = asker.ask(f"EXPLAIN {mode} SELECT job, sum(run) FROM runs GROUP BY job")
    told = "\n".join(answer.rows["plan"].to_pylist())
    assert answer.plain_text
    assert lake.uri not in told
    assert "file:/" not in told
    assert "spark_catalog" not in told
    assert "runs" in told


ONE = "This answers queries"
EXPLAINED = [
    ("a column", "SELECT row_in FROM runs",
     "There is no column row_in. Did you mean rows_in?\n"
     "  1 | SELECT row_in FROM runs\n    |        ^"),
    ("a table", "SELECT *\n  FROM rums", "There is no table rums. Did you mean runs?\n"
     "  2 |   FROM rums\n    |        ^"),
    ("a table not made yet", "SELECT * FROM loss_events", "Table loss_events does not exist yet. "
     "Run `acktrail run`.\n  1 | SELECT * FROM loss_events\n    |               ^"),
    ("a function", "SELECT cuont(*) FROM runs", "There is no function cuont here. Did you mean "
     "count, cot or concat?\n  1 | SELECT cuont(*) FROM runs\n    |        ^"),
    ("syntax", "SELECT run\nFROM runs\nWHERE run ==== 3",
     "Syntax error at '=='.\n  3 | WHERE run ==== 3\n    |             ^"),
    ("syntax, at the end", "SELECT (1",
     "Syntax error at end of input.\n  1 | SELECT (1\n    |          ^"),
    ("after an emoji", "SELECT '🙂', row_in FROM runs",
     "There is no column row_in. Did you mean rows_in?\n"
     "  1 | SELECT '🙂', row_in FROM runs\n    |             ^"),
    ("a division in a task", "SELECT 1 / (run - run) FROM runs", "Division by zero. Use "
     "`try_divide` to tolerate divisor being 0 and return NULL instead.\n"
     "  1 | SELECT 1 / (run - run) FROM runs\n    |        ^"),
    ("an error of one's own", "SELECT raise_error('no') FROM runs", "no."),
    ("no memory", "SELECT repeat('x', 2147483000) FROM runs", "OutOfMemoryError: Java heap space"),
    ("no such version", "SELECT * FROM runs VERSION AS OF 99",
     "Cannot time travel Delta table to version 99. Available versions: [0, 2]."),
    ("no such version of a view", "SELECT row_in FROM (SELECT job FROM runs)",
     "There is no column row_in. Did you mean job?\n"
     "  1 | SELECT row_in FROM (SELECT job FROM runs)\n    |        ^"),
    ("a plan", "EXPLAIN SELECT row_in FROM runs",
     "There is no column row_in. Did you mean rows_in?\n"
     "  1 |         SELECT row_in FROM runs\n    |                ^"),
    ("a parameter", "SELECT :x", "No value was given for :x. Add --param x=…"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"), [c[1:] for c in EXPLAINED], ids=[c[0] for c in EXPLAINED]
)
def test_what_is_wrong_is_said_in_a_line_with_a_caret(
    asker: Asker, text: str, said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError) as raised:
        asker.ask(text)
    assert str(raised.value) == said
    assert capfd.readouterr() == ("", "")


def test_types_survive(asker: Asker) -> None:
    found = asker.ask(
        "SELECT 1.50 AS d, timestamp '2026-01-01 00:00:00.123456' AS t, "
        "timestamp_ntz '2026-01-01 00:00:00' AS n, X'00ff' AS b, map('a', 1) AS m, "
        "array(named_struct('x', 1L)) AS s, interval '3' day AS i, interval '3' month AS o, "
        """parse_json('{"a":1}') AS v, cast(null AS int) AS z"""
    ).rows
    (row,) = found.to_pylist()
    assert row == {
        "d": Decimal("1.50"),
        "t": datetime(2026, 1, 1, 0, 0, 0, 123456, tzinfo=UTC),
        "n": datetime(2026, 1, 1),
        "b": b"\x00\xff",
        "m": [("a", 1)],
        "s": [{"x": 1}],
        "i": timedelta(days=3),
        "o": "INTERVAL '3' MONTH",
        "v": '{"a":1}',
        "z": None,
    }
    assert found.schema.field("d").type == pa.decimal128(3, 2)
    assert found.schema.field("t").type == pa.timestamp("us", "UTC")


def test_columns_of_one_name_keep_their_values(asker: Asker) -> None:
    found = asker.ask("SELECT run a, rows_in A, 7 a FROM runs ORDER BY run").rows
    assert found.to_pylist() == [{"a": 0, "A": 3, "a (2)": 7}, {"a": 1, "A": 9, "a (2)": 7}]


def test_more_rows_than_the_limit_are_said(asker: Asker) -> None:
    few, all_ = (asker.ask("SELECT * FROM range(5)", limit=n) for n in (3, 5))
    assert (few.rows.num_rows, few.more) == (3, True)
    assert (all_.rows.num_rows, all_.more) == (5, False)
    assert asker.ask("SELECT * FROM range(5)").rows.num_rows == 5


def test_a_question_is_stopped_and_the_next_is_answered(asker: Asker) -> None:
    began = time.monotonic()
    with pytest.raises(TooSlow, match="longer than 1 s") as raised:
        asker.ask("SELECT count(*) FROM range(1000000000000) WHERE rand() < 2", timeout_s=1)
    assert time.monotonic() - began < 30
    assert not raised.value.stuck
    assert asker.ask("SELECT 1 AS x").rows.to_pylist() == [{"x": 1}]


def test_a_parameter_is_a_value_and_never_text_of_the_query(asker: Asker) -> None:
    text = "SELECT count(*) AS n FROM runs WHERE job = :job"
    for job, count in (("j", 2), ("j' OR '1' = '1", 0), ("' UNION SELECT 1 --", 0)):
        found = asker.ask(text, parameters={"job": job}).rows
        assert found["n"].to_pylist() == [count]


def test_another_lake_is_another_table(spark: SparkSession, asker: Asker, tmp_path: Path) -> None:
    other = Lake(tmp_path)
    other.append(RUNS, asker.ask("SELECT * FROM runs LIMIT 1").rows)
    count = "SELECT count(*) AS n FROM runs"
    assert Asker(spark, other).ask(count).rows["n"].to_pylist() == [1]
    assert asker.ask(count).rows["n"].to_pylist() == [2]


def test_results_and_alerts_under_former_names_are_read_under_the_current_ones(
    spark: SparkSession, tmp_path: Path
) -> None:
    before = Path(__file__).parents[1] / "golden" / "before_rename" / "lake"
    shutil.copytree(before, tmp_path / "lake")
    asker = Asker(spark, Lake(tmp_path / "lake"))
    for table in ("check_results", "alerts"):
        found = asker.ask(f"SELECT DISTINCT check FROM {table}").rows["check"].to_pylist()
        assert set(RENAMED.values()) <= set(found)
        assert not set(RENAMED) & set(found)
        stored = asker.ask(f"SELECT DISTINCT check FROM {table}_as_stored").rows["check"]
        assert set(RENAMED) & set(stored.to_pylist())
        assert asker.ask(f"DESCRIBE {table}").rows["meaning"][0].as_py()


STATEMENTS = [
    ("SELECT 1", Statement("query", "SELECT 1")),
    ("-- x\nDESCRIBE `Runs`", Statement("describe", "runs")),
    ("explain formatted select 1", Statement("explain", " " * 18 + "select 1", "formatted")),
    ("DESC FORMATTED", Statement("describe", "formatted")),
    ("DESCRIBE QUERY SELECT 1", Statement("describe query", " " * 15 + "SELECT 1")),
    ("SHOW TABLES LIKE 'a*'", Statement("show tables", "a*")),
]


@pytest.mark.parametrize(("text", "wanted"), STATEMENTS, ids=[c[0] for c in STATEMENTS])
def test_statements_are_told_apart(spark: SparkSession, text: str, wanted: Statement) -> None:
    assert statements.statement_of(text, tokens_of(spark, text)) == wanted


def test_window_clauses_are_found_and_nothing_else(spark: SparkSession) -> None:
    text = (
        "SELECT 'WINDOW w AS (x)', window(at, '1 hour') FROM a WINDOW w AS (ORDER BY f(a)), `v` AS "
        "(w), u AS w -- WINDOW z AS (y)"
    )
    found = statements.windows(text, tokens_of(spark, text))
    assert found == ["(ORDER BY f(a))", "(w)", "w"]
