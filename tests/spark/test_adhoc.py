"""`acktrail sql` reads the lake's tables and nothing else."""

from __future__ import annotations

import re
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from acktrail.contracts.arrow import rows
from acktrail.contracts.runs import RUNS
from acktrail.errors import UsageError
from acktrail.lake import Lake
from acktrail.policy.renamed import RENAMED
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
    ("names in capitals", "WITH R AS (SELECT min(rows_in) m FROM RUNS) SELECT m FROM R", [(3,)]),
    ("variables are text", "SELECT '${env:PATH}${system:user.home}${spark.master}'",
     [("${env:PATH}${system:user.home}${spark.master}",)]),
    ("an external entity is not read",
     """SELECT
     xpath_string('<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>', 'a'),
     from_xml('<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a><b>&x;</b></a>',
     'b string').b""", [("", None)]),
    ("exploding", "SELECT c FROM runs LATERAL VIEW explode(array(1, 2)) t AS c LIMIT 1", [(1,)]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "found"), [c[1:] for c in READS], ids=[c[0] for c in READS])
def test_reading_is_answered(
    spark: SparkSession, lake: Lake, text: str, found: list[tuple[object, ...]]
) -> None:
    spark.conf.set("spark.sql.variable.substitute", "true")  # as a user's settings may
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
    ("a path behind a name of its own",
     "WITH `text, /etc/passwd` AS (SELECT 1) SELECT * FROM text.`/etc/passwd`"),
    ("Java by its full name", "SELECT system.builtin.reflect('java.lang.System', 'exit', 1)"),
    ("Java, and no error", "SELECT try_reflect('java.lang.System', 'exit', 1)"),
    ("Java in a subquery", "SELECT 1 WHERE EXISTS (SELECT `REFLECT`('a', 'b') FROM runs)"),
    ("a file named by an argument", "SELECT from_protobuf(X'00', 'A', '/etc/passwd')"),
    ("files by a function", "SELECT * FROM read_files('/etc/passwd')"),
    ("the user of this process", "SELECT current_user()"),
    ("the user, without parentheses", "SELECT session_user"),
    ("a command that parses as a relation",
     "list file join (with list as (select 1) select * from list)"),
    ("a variable set", "SET VARIABLE x = 1"),
    ("settings shown", "SET -v"),
    ("a jar", "ADD JAR '/tmp/x.jar'"),
    ("a temporary function", "CREATE TEMPORARY FUNCTION f AS 'x.Y'"),
    ("a temporary view", "CREATE TEMPORARY VIEW v AS SELECT 1"),
    ("a description", "DESCRIBE runs"),
    ("a text that is run", "EXECUTE IMMEDIATE 'SELECT 1'"),
    ("a script of statements", "BEGIN SELECT 1; END"),
    ("a cache", "CACHE TABLE runs"),
    ("nothing", " ; "),
]  # fmt: skip


@pytest.mark.parametrize("text", [c[1] for c in REFUSED], ids=[c[0] for c in REFUSED])
def test_everything_else_is_refused(spark: SparkSession, lake: Lake, text: str) -> None:
    with pytest.raises(UsageError):
        adhoc.query(spark, lake, text).collect()


def test_no_function_of_this_spark_that_reaches_outside_is_forgotten(spark: SparkSession) -> None:
    """Whatever name a further one gets, its class says what it does."""
    reaching = re.compile(r"Reflect|Protobuf|CurrentUser|SessionUser")
    registry = spark._jsparkSession.sessionState().functionRegistry()
    names = registry.listFunction().mkString(" ").split()
    called = spark._jvm.org.apache.spark.sql.catalyst.FunctionIdentifier
    classes = {name: registry.lookupFunction(called(name)) for name in names}
    found = {
        name
        for name, info in classes.items()
        if info.isDefined() and reaching.search(info.get().getClassName())
    }
    assert {"reflect", "java_method", "try_reflect", "current_user", "user"} <= found
    assert found <= adhoc._FORBIDDEN_FUNCTIONS


EXPLAINED = [
    ("a column", "SELECT row_in FROM runs",
     "There is no column row_in (line 1, position 8). Did you mean rows_in?"),
    ("a table", "SELECT * FROM rums", "There is no table rums. Did you mean runs? "
     "`acktrail lake tables` lists the tables."),
    ("a table not made yet", "SELECT * FROM loss_events",
     "Table loss_events does not exist yet (line 1, position 15). Run `acktrail run`."),
    ("a function", "SELECT cuont(*) FROM runs",
     "There is no function cuont (line 1, position 8). Did you mean count, cot or concat?"),
    ("syntax", "SELECT run\nFROM runs\nWHERE run ==== 3", "Syntax error at '==' (line 3, "
     "position 13).\n`acktrail sql` takes one query: SELECT, WITH or VALUES."),
    ("syntax, at the end", "SELECT (1", "Syntax error at end of input (line 1, position 10).\n"
     "`acktrail sql` takes one query: SELECT, WITH or VALUES."),
    ("two statements", "SELECT 1; SELECT 2", "Syntax error at 'SELECT' "
     "(line 1, position 11).\n`acktrail sql` takes one query: SELECT, WITH or VALUES."),
    ("a division in a task", "SELECT 1 / (run - run) FROM runs", "Division by zero. Use "
     "`try_divide` to tolerate divisor being 0 and return NULL instead (line 1, position 8)."),
    ("a cast in a task", "SELECT cast(job AS int) FROM runs", "The value 'j' of the type "
     '"STRING" cannot be cast to "INT" because it is malformed. Correct the value as per the '
     "syntax, or change its target type. Use `try_cast` to tolerate malformed input and return "
     "NULL instead (line 1, position 8)."),
    ("an error of one's own", "SELECT raise_error('no') FROM runs", "no."),
    ("no memory", "SELECT repeat('x', 2147483000) FROM runs", "OutOfMemoryError: Java heap space"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"), [c[1:] for c in EXPLAINED], ids=[c[0] for c in EXPLAINED]
)
def test_what_is_wrong_is_said_in_a_line_or_two(
    spark: SparkSession, lake: Lake, text: str, said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError) as raised:
        list(adhoc.rows(spark, adhoc.query(spark, lake, text)))
    assert str(raised.value) == said
    assert capfd.readouterr() == ("", "")


def test_columns_of_one_name_keep_their_values(spark: SparkSession, lake: Lake) -> None:
    frame = adhoc.query(spark, lake, "SELECT run a, rows_in A, 7 a FROM runs ORDER BY run")
    assert list(adhoc.rows(spark, frame)) == [
        {"a": 0, "A": 3, "a (2)": 7},
        {"a": 1, "A": 9, "a (2)": 7},
    ]


def test_results_and_alerts_under_former_names_are_read_under_the_current_ones(
    spark: SparkSession, tmp_path: Path
) -> None:
    before = Path(__file__).parents[1] / "golden" / "before_rename" / "lake"
    shutil.copytree(before, tmp_path / "lake")
    for table in ("check_results", "alerts"):
        text = f"SELECT DISTINCT check FROM {table}"
        found = {row[0] for row in adhoc.query(spark, Lake(tmp_path / "lake"), text).collect()}
        assert set(RENAMED.values()) <= found
        assert not set(RENAMED) & found
