"""`acktrail sql` reads the lake's tables and nothing else."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pyspark.sql import SparkSession

from acktrail.contracts.arrow import rows
from acktrail.contracts.runs import RUNS
from acktrail.errors import UsageError
from acktrail.lake import Lake
from pipelines import adhoc

NOW = datetime(2026, 1, 31, tzinfo=UTC)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    made = Lake(tmp_path_factory.mktemp("lake"))
    run = {
        "job": "j", "run": 0, "started_at": NOW, "ended_at": NOW, "as_of": NOW, "shape": "map",
        "rebuilt": False, "rows_in": 3, "rows_out": 2, "touched": 0, "version": 1,
    }  # fmt: skip
    made.append(RUNS, rows(RUNS, [run, {**run, "run": 1, "rows_in": 9}]))
    return made


READS = [
    ("a plain query", "SELECT run FROM runs WHERE rows_in > 3", [(1,)]),
    ("a name of its own", "WITH r AS (SELECT max(rows_in) m FROM runs) SELECT m FROM r;", [(9,)]),
    ("a subquery", "SELECT run FROM runs WHERE rows_in = (SELECT min(rows_in) FROM runs)", [(0,)]),
    (
        "a window",
        "SELECT run, rank() OVER (ORDER BY rows_in DESC) k FROM runs ORDER BY k",
        [(1, 1), (0, 2)],
    ),
    ("values", "VALUES (1), (2)", [(1,), (2,)]),
    ("union", "SELECT run FROM runs UNION ALL SELECT 7 ORDER BY 1", [(0,), (1,), (7,)]),
    ("exploding", "SELECT c FROM runs LATERAL VIEW explode(array(1, 2)) t AS c LIMIT 1", [(1,)]),
]


@pytest.mark.parametrize(("text", "found"), [c[1:] for c in READS], ids=[c[0] for c in READS])
def test_reading_is_answered(
    spark: SparkSession, lake: Lake, text: str, found: list[tuple[int, ...]]
) -> None:
    assert [tuple(row) for row in adhoc.query(spark, lake, text).collect()] == found


REFUSED = [
    ("dropping", "DROP TABLE runs"),
    ("writing", "INSERT INTO runs SELECT * FROM runs"),
    ("writing behind a WITH", "WITH r AS (SELECT 1) INSERT INTO runs SELECT * FROM r"),
    ("writing to a directory", "INSERT OVERWRITE DIRECTORY '/tmp/x' USING csv SELECT 1"),
    ("two statements", "SELECT 1; DROP TABLE runs"),
    ("closing the parenthesis", "SELECT 1) AS a; DROP TABLE runs; SELECT * FROM (SELECT 1"),
    ("a file by its path", "SELECT * FROM parquet.`/etc/passwd`"),
    (
        "a file in a subquery",
        "SELECT * FROM runs WHERE run IN (SELECT value FROM text.`/etc/passwd`)",
    ),
    ("a file in an expression", "SELECT (SELECT max(value) FROM text.`/etc/passwd`)"),
    ("a table of another name", "SELECT * FROM spark_catalog.default.x"),
    ("a name made at run time", "SELECT * FROM IDENTIFIER('text.`/etc/passwd`')"),
    ("Java by reflection", "SELECT reflect('java.lang.System', 'exit', 1)"),
    ("Java by another name", "SELECT java_method('java.lang.System', 'exit', 1)"),
    ("a script", "SELECT TRANSFORM(run) USING 'cat' FROM runs"),
    ("setting", "SET spark.sql.shuffle.partitions = 1"),
    ("showing files", "LIST FILE"),
    ("not SQL", "what was lost?"),
]


@pytest.mark.parametrize("text", [c[1] for c in REFUSED], ids=[c[0] for c in REFUSED])
def test_everything_else_is_refused(spark: SparkSession, lake: Lake, text: str) -> None:
    with pytest.raises(UsageError):
        adhoc.query(spark, lake, text).collect()
