"""Whatever does more than read the lake's tables is refused, by whatever spelling it is tried."""

from __future__ import annotations

import json
import os
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from acktrail.contracts.arrow import rows
from acktrail.contracts.runs import RUNS
from acktrail.errors import UsageError
from acktrail.lake import Lake
from pipelines.adhoc import allowed, fence, table_catalog
from pipelines.adhoc.ask import Asker

NOW = datetime(2026, 1, 31, tzinfo=UTC)
RUN = {
    "job": "j", "run": 0, "started_at": NOW, "ended_at": NOW, "as_of": NOW, "shape": "map",
    "rebuilt": False, "rows_in": 3, "rows_out": 2, "touched": 0, "version": 1,
}  # fmt: skip
SECRET = "the-secret-of-this-test"

# {file} is a file with SECRET in it, {dir} a directory that must stay empty, {lake} the lake.
FILES = """
SELECT * FROM parquet.`{file}`
SELECT * FROM text.`{file}`
SELECT * FROM TEXT.`{file}`
SELECT * FROM `text`.`{file}`
SELECT * FROM csv.`{file}`
SELECT * FROM json.`{file}`
SELECT * FROM binaryFile.`{file}`
SELECT * FROM delta.`{lake}/runs/runs`
SELECT * FROM orc.`{file}`
SELECT * FROM xml.`{file}`
TABLE text.`{file}`
FROM text.`{file}`
FROM text.`{file}` |> SELECT value
FROM runs |> UNION ALL SELECT * FROM text.`{file}`
FROM runs |> JOIN text.`{file}` ON true
SELECT * FROM runs WHERE job IN (SELECT value FROM text.`{file}`)
SELECT (SELECT max(value) FROM text.`{file}`)
SELECT * FROM runs WHERE EXISTS (SELECT 1 FROM text.`{file}`)
SELECT * FROM runs, LATERAL (SELECT * FROM text.`{file}`)
WITH t AS (SELECT * FROM text.`{file}`) SELECT * FROM t
WITH t AS (WITH u AS (SELECT * FROM text.`{file}`) SELECT * FROM u) SELECT * FROM t
WITH `text, {file}` AS (SELECT 1) SELECT * FROM text.`{file}`
WITH text AS (SELECT 1) SELECT * FROM text.`{file}`
SELECT count(*) OVER w FROM runs WINDOW w AS (ORDER BY (SELECT max(value) FROM text.`{file}`))
SELECT count(*) OVER w FROM runs WINDOW v AS (ORDER BY run), w AS (ORDER BY (TABLE text.`{file}`))
SELECT (SELECT count(*) OVER w FROM runs WINDOW w AS (ORDER BY (TABLE text.`{file}`)))
SELECT * FROM runs ORDER BY (SELECT max(value) FROM text.`{file}`)
SELECT * FROM runs TIMESTAMP AS OF (SELECT max(value) FROM text.`{file}`)
SELECT * FROM text.`{file}` VERSION AS OF 0
SELECT * FROM runs WITH (`path` = '{file}')
SELECT * FROM (runs WITH ('path' '{file}'))
SELECT * FROM runs WITH/**/(`path` = '{file}')
SELECT * FROM IDENTIFIER('text.`{file}`')
SELECT * FROM IDENTIFIER('te' || 'xt.`{file}`')
TABLE IDENTIFIER('text.`{file}`')
SELECT * FROM read_files('{file}')
SELECT * FROM table_changes('runs', 0)
SELECT * FROM table_changes_by_path('{lake}/runs/runs', 0)
SELECT * FROM python_worker_logs()
SELECT * FROM STREAM runs
SELECT * FROM STREAM(runs)
SELECT * FROM explode((SELECT collect_list(value) FROM text.`{file}`))
SELECT * FROM range((SELECT count(*) FROM text.`{file}`))
SELECT from_protobuf(X'00', 'A', '{file}')
SELECT to_protobuf(struct(1), 'A', '{file}')
SELECT from_avro(X'00', '{file}')
SELECT schema_of_avro('{file}')
SELECT a.* FROM (SELECT 1) a JOIN parquet.`{dir}` b
VALUES ((SELECT max(value) FROM text.`{file}`))
SELECT * FROM runs PIVOT (max(job) FOR run IN ((SELECT max(value) FROM text.`{file}`)))
SELECT if(true, (SELECT max(value) FROM text.`{file}`), 1)
SELECT transform(array(1), x -> (SELECT max(value) FROM text.`{file}`))
EXPLAIN SELECT * FROM text.`{file}`
EXPLAIN EXTENDED SELECT * FROM csv.`{file}`
DESCRIBE QUERY SELECT * FROM csv.`{file}`
DESCRIBE text.`{file}`
DESCRIBE TABLE EXTENDED parquet.`{file}`
DESCRIBE HISTORY delta.`{lake}/runs/runs`
DESCRIBE HISTORY '{lake}/runs/runs'
DESCRIBE DETAIL delta.`{lake}/runs/runs`
SHOW COLUMNS IN text.`{file}`
SHOW CREATE TABLE runs
"""
CODE = """
SELECT reflect('java.lang.System', 'getProperty', 'user.home')
SELECT java_method('java.lang.System', 'getProperty', 'user.home')
SELECT try_reflect('java.lang.System', 'getProperty', 'user.home')
SELECT REFLECT('java.lang.System', 'getProperty', 'user.home')
SELECT `reflect`('java.lang.System', 'getProperty', 'user.home')
SELECT system.builtin.reflect('java.lang.System', 'exit', 1)
SELECT builtin.reflect('java.lang.System', 'exit', 1)
SELECT `system`.`builtin`.`reflect`('java.lang.System', 'exit', 1)
SELECT IDENTIFIER('refl' || 'ect')('java.lang.System', 'exit', 1)
SELECT IDENTIFIER('system.builtin.reflect')('java.lang.System', 'exit', 1)
SELECT sum(run) OVER w FROM runs WINDOW w AS (ORDER BY reflect('java.lang.System', 'exit', 1))
SELECT sum(run) OVER (PARTITION BY reflect('java.lang.System', 'exit', 1)) FROM runs
SELECT 1 FROM runs GROUP BY reflect('java.lang.System', 'exit', 1)
SELECT 1 FROM runs GROUP BY GROUPING SETS ((reflect('java.lang.System', 'exit', 1)), ())
SELECT 1 FROM runs HAVING reflect('java.lang.System', 'exit', 1) > ''
SELECT 1 FROM runs LIMIT length(reflect('java.lang.System', 'exit', 1))
SELECT 1 FROM runs OFFSET length(reflect('java.lang.System', 'exit', 1))
SELECT * FROM runs LATERAL VIEW explode(array(reflect('java.lang.System', 'exit', 1))) t AS x
SELECT * FROM runs LATERAL VIEW reflect('java.lang.System', 'exit', 1) t AS x
SELECT * FROM reflect('java.lang.System', 'exit', 1)
SELECT count(*) FILTER (WHERE reflect('java.lang.System', 'exit', 1) > '') FROM runs
SELECT filter(array(1), x -> reflect('java.lang.System', 'exit', x) > '')
SELECT CASE reflect('java.lang.System', 'exit', 1) WHEN 1 THEN 1 END
SELECT 1 WHERE EXISTS (SELECT reflect('java.lang.System', 'exit', 1))
VALUES (reflect('java.lang.System', 'exit', 1))
SELECT * FROM VALUES (1, reflect('java.lang.System', 'exit', 1)) AS t(a, b)
FROM runs |> SET job = reflect('java.lang.System', 'exit', 1)
FROM runs |> EXTEND reflect('java.lang.System', 'exit', 1) AS x
FROM runs |> AGGREGATE max(reflect('java.lang.System', 'exit', 1))
SELECT /*+ REPARTITION(3, reflect('java.lang.System', 'exit', 1)) */ 1 FROM runs
EXPLAIN SELECT reflect('java.lang.System', 'exit', 1)
DESCRIBE FUNCTION reflect
SELECT TRANSFORM(job) USING 'cat' FROM runs
FROM runs SELECT TRANSFORM(job) USING 'cat' AS (x)
FROM (FROM runs MAP job USING 'cat') SELECT 1
SELECT * FROM (SELECT TRANSFORM(job) USING 'touch {dir}/x' FROM runs)
SELECT * FROM udtf(TABLE(SELECT 1))
SELECT no_such_function(1)
EXECUTE IMMEDIATE 'SELECT 1'
EXECUTE IMMEDIATE 'SELECT reflect(:a, :a)' USING 'x' AS a
BEGIN SELECT 1; END
BEGIN DECLARE x INT DEFAULT 1; SELECT x; END
CALL system.x()
ADD JAR '{file}'
ADD FILE '{file}'
ADD ARCHIVE '{file}'
LIST FILE
LIST JAR
list file join (with list as (select 1) select * from list)
CREATE TEMPORARY FUNCTION f AS 'x.Y'
CREATE FUNCTION f() RETURNS INT RETURN 1
"""
NAMES = """
SELECT current_user()
SELECT current_user
SELECT session_user
SELECT session_user()
SELECT user
SELECT USER()
SELECT `user`
SELECT x FROM (SELECT user AS x)
SELECT current_catalog()
SELECT current_database()
SELECT current_schema
SELECT input_file_name() FROM runs
SELECT INPUT_FILE_NAME() FROM runs
SELECT input_file_block_start() FROM runs
SELECT _metadata FROM runs
SELECT _metadata.file_path FROM runs
SELECT _METADATA.file_name FROM runs
SELECT r._metadata.file_path FROM runs r
SELECT `_metadata`.`file_path` FROM runs
SELECT x.file_path FROM (SELECT _metadata AS x FROM runs)
SELECT _metadata.* FROM runs
SELECT * FROM spark_catalog.default.runs
SELECT * FROM default.runs
SELECT * FROM spark_catalog.default.x
SELECT * FROM global_temp.x
SELECT * FROM system.session.x
SELECT * FROM information_schema.tables
SELECT spark_partition_id() FROM runs
"""
CHANGES = """
DROP TABLE runs
DROP VIEW runs
TRUNCATE TABLE runs
DELETE FROM runs
UPDATE runs SET run = 1
INSERT INTO runs SELECT * FROM runs
INSERT OVERWRITE runs SELECT * FROM runs
INSERT OVERWRITE DIRECTORY '{dir}' USING csv SELECT 1
INSERT OVERWRITE LOCAL DIRECTORY '{dir}' SELECT 1
WITH r AS (SELECT 1) INSERT INTO runs SELECT * FROM r
FROM runs INSERT INTO runs SELECT * INSERT INTO runs SELECT *
MERGE INTO runs USING runs AS s ON true WHEN MATCHED THEN DELETE
CREATE TABLE x AS SELECT 1
CREATE TABLE x USING csv LOCATION '{dir}' AS SELECT 1
CREATE TEMPORARY VIEW v AS SELECT 1
CREATE OR REPLACE TEMPORARY VIEW runs AS SELECT 1
CREATE TEMPORARY VIEW v USING csv OPTIONS (path '{file}')
CREATE DATABASE d
ALTER TABLE runs ADD COLUMNS (x INT)
ALTER TABLE runs SET TBLPROPERTIES ('a' = 'b')
OPTIMIZE runs
VACUUM runs
VACUUM '{lake}/runs/runs' RETAIN 0 HOURS
RESTORE TABLE runs TO VERSION AS OF 0
CONVERT TO DELTA parquet.`{dir}`
REORG TABLE runs APPLY (PURGE)
ANALYZE TABLE runs COMPUTE STATISTICS
REFRESH TABLE runs
REPAIR TABLE runs
CACHE TABLE runs
UNCACHE TABLE runs
CLEAR CACHE
LOAD DATA INPATH '{file}' INTO TABLE runs
USE x
USE CATALOG x
SET CATALOG x
SET
SET -v
SET spark.sql.variable.substitute = true
SET spark.sql.shuffle.partitions
SET TIME ZONE 'UTC'
RESET
SET VARIABLE x = 1
DECLARE VARIABLE x INT
SHOW DATABASES
SHOW CATALOGS
SHOW TBLPROPERTIES runs
SHOW TABLES IN x
SHOW TABLE EXTENDED LIKE '*'
SHOW VIEWS
SHOW PARTITIONS runs
SHOW FUNCTIONS IN x
DESCRIBE DATABASE default
DESCRIBE TABLE runs PARTITION (a = 1)
DESCRIBE EXTENDED runs AS JSON
EXPLAIN DROP TABLE runs
EXPLAIN EXTENDED INSERT INTO runs SELECT * FROM runs
COMMENT ON TABLE runs IS 'x'
SELECT 1; DROP TABLE runs
SELECT 1) AS a; DROP TABLE runs; SELECT * FROM (SELECT 1
SELECT 1 INTO x
SELECT :missing
SELECT ?
what was lost?
;
"""
ATTACKS = [
    line for part in (FILES, CODE, NAMES, CHANGES) for line in part.strip().split("\n")
]  # fmt: skip


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    made = Lake(tmp_path_factory.mktemp("lake"))
    made.append(RUNS, rows(RUNS, [RUN]))
    return made


def test_each_attack_is_refused_and_leaves_nothing(
    spark: SparkSession, lake: Lake, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    spark.conf.set("spark.sql.variable.substitute", "true")  # as a user's settings may
    file, empty = tmp_path / "secret.txt", tmp_path / "empty"
    file.write_text(SECRET)
    empty.mkdir()
    version = lake.version(RUNS)
    home = Path.home()
    answered, said_too_much = [], []
    for attack in ATTACKS:
        text = attack.format(file=file, dir=empty, lake=lake.uri)
        try:
            Asker(spark, lake).ask(text, limit=10, timeout_s=60)
        except UsageError as error:
            told = str(error)
            leaks = SECRET in told or re.search(r"\bat (org|java|scala)\.", told)
            if leaks or (len(told.split("\n")) > 3):
                said_too_much.append(f"{text}: {told}")
        else:
            answered.append(text)
    assert len(ATTACKS) >= 200
    assert not answered
    assert not said_too_much
    assert list(empty.iterdir()) == []
    assert lake.version(RUNS) == version
    assert not any(
        (Path(place) / name).exists()
        for place in (os.getcwd(), home)
        for name in ("spark-warehouse", "metastore_db", "derby.log")
    )
    assert capfd.readouterr() == ("", "")


WITHOUT_EFFECT = [
    ("variables are text", "SELECT '${env:PATH}${system:user.home}${spark.master}' AS x",
     "${env:PATH}${system:user.home}${spark.master}"),
    ("so are Hive's", "SELECT '${hiveconf:x}${hivevar:y}${z}' AS x",
     "${hiveconf:x}${hivevar:y}${z}"),
    ("an external entity is not read",
     """SELECT concat_ws('|', xpath_string(
     '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>', 'a'), coalesce(from_xml(
     '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a><b>&x;</b></a>', 'b string').b,
     'null')) AS x""", "|null"),
    ("a schema is only a text", """SELECT schema_of_json('{"a": 1}') AS x""", "STRUCT<a: BIGINT>"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "found"), [c[1:] for c in WITHOUT_EFFECT], ids=[c[0] for c in WITHOUT_EFFECT]
)
def test_what_is_answered_reveals_nothing(
    spark: SparkSession, lake: Lake, text: str, found: str
) -> None:
    spark.conf.set("spark.sql.variable.substitute", "true")
    assert Asker(spark, lake).ask(text).rows.to_pylist() == [{"x": found}]


def test_an_unknown_node_expression_or_function_is_refused() -> None:
    """As a later Spark may bring them."""
    logical, expression = f"{allowed.CATALYST}plans.logical.", f"{allowed.CATALYST}expressions."
    good = {"class": f"{logical}OneRowRelation"}
    fence.refuse_parsed([[good]], table_catalog.NAMES, windows=0)
    fence.refuse_analyzed([good])
    for strange in (
        {"class": f"{logical}ReadFiles"},
        {"class": f"{expression}CallAnything"},
        {"class": "org.example.Node"},
        {"class": f"{logical}Project", "list": [[{"deep": {"class": "io.delta.Vacuum"}}]]},
        {"class": f"{allowed.CATALYST}analysis.UnresolvedFunction", "nameParts": "[new_one]"},
    ):
        with pytest.raises(UsageError):
            fence.refuse_parsed([json.loads(json.dumps([strange]))], table_catalog.NAMES, windows=0)
    for strange in ({"class": f"{logical}ReadFiles"}, {"class": f"{expression}TryReflect"}):
        with pytest.raises(UsageError):
            fence.refuse_analyzed([strange])
    with pytest.raises(UsageError, match="WINDOW"):
        fence.refuse_parsed([[good]], table_catalog.NAMES, windows=1)


def test_no_allowed_function_of_this_spark_reaches_outside(spark: SparkSession) -> None:
    """Whatever name a further one gets, its class says what it does."""
    reaching = re.compile(r"Reflect|Proto|Avro|CurrentUser|InputFile|CurrentCatalog|CurrentDatab")
    jvm = spark._jvm
    assert jvm is not None
    registry = spark._jsparkSession.sessionState().functionRegistry()
    names = registry.listFunction().mkString(" ").split()
    called = jvm.org.apache.spark.sql.catalyst.FunctionIdentifier
    classes = {name: registry.lookupFunction(called(name)) for name in names}
    found = {
        name
        for name, info in classes.items()
        if info.isDefined() and reaching.search(info.get().getClassName())
    }
    assert {"reflect", "java_method", "try_reflect", "current_user", "user"} <= found
    assert not found & allowed.functions()
    assert not {"table_changes", "python_worker_logs"} & allowed.functions()


def test_every_name_on_the_lists_exists_in_this_spark(spark: SparkSession) -> None:
    jvm = spark._jvm
    assert jvm is not None
    functions = {row[0] for row in spark.sql("SHOW FUNCTIONS").collect()}
    assert allowed.functions() <= functions
    kinds = [
        *(f"plans.logical.{name}" for name in allowed.PARSED_NODES | allowed.ANALYZED_NODES),
        *(f"analysis.{name}" for name in allowed.UNRESOLVED),
        *(f"expressions.{name}" for name in allowed.PARSED_EXPRESSIONS),
    ]
    for kind in kinds:
        jvm.java.lang.Class.forName(allowed.CATALYST + kind)  # raises where there is none
