"""A Delta reader that is neither ours nor delta-rs reads the same rows, types and partitions."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import duckdb_extension_delta
import polars as pl
import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession

from acktrail.contracts import Table
from acktrail.contracts.arrow import rows
from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.contracts.gold import DELIVERY_LEDGER
from acktrail.contracts.runs import COVERAGE
from acktrail.contracts.silver import AUDIT_BLOCKS, UNREAD_RECORDS
from acktrail.lake import Lake
from acktrail.window import Window
from pipelines import runner
from pipelines.audit_jobs import AUDIT_JOBS
from pipelines.job import Fold, Map, Read
from tests.worlds import former_lake

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import tests

NOW = datetime(2026, 1, 31, 7, 8, 9, 123456, tzinfo=UTC)


@pytest.fixture(scope="module")
def duck() -> duckdb.DuckDBPyConnection:
    """DuckDB with its own Delta reader, from the package: nothing is fetched."""
    connection = duckdb.connect()
    shipped = Path(duckdb_extension_delta.__file__).parent / "extensions"
    (extension,) = shipped.rglob("delta.duckdb_extension")
    connection.execute(f"LOAD '{extension}'")
    connection.execute("SET TimeZone = 'UTC'")
    return connection


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """By an agent, by Spark's tasks, by Spark itself; in two partitions and several commits."""
    made = Lake(tmp_path_factory.mktemp("lake"))
    for start in (0, 3):
        records = [
            {
                "cluster": "c", "source": "s", "file_id": "f", "position": i, "text": f"ü {i}",
                "truncated": i % 2 == 0, "read_at": NOW, "day": f"2026-01-{30 + i % 2}",
            }
            for i in range(start, start + 3)
        ]  # fmt: skip
        made.append(LOG_RECORDS, rows(LOG_RECORDS, records))
        runner.run(BY_TASKS, made, lambda: spark, NOW)
        runner.run(BY_SPARK, made, lambda: spark, NOW)
    return made


def _unread(batch: pa.RecordBatch) -> Read:
    read = [{"record_key": str(r.pop("position")), "reason": "?", **r} for r in batch.to_pylist()]
    return Read([pa.RecordBatch.from_pylist(read)], {})


def _counted(inputs: Mapping[str, DataFrame], _keys: object, _options: object) -> DataFrame:
    return inputs[LOG_RECORDS.name].selectExpr(
        "cluster", "source", "text AS subject", "'logs' AS kind", "day AS hour", "position AS rows",
        "read_at AS first_at", "truncated AS closed",
    )  # fmt: skip


BY_TASKS = Map(
    LOG_RECORDS,
    ("cluster", "source", "position", "text", "day"),
    UNREAD_RECORDS,
    lambda _options: _unread,
)
BY_SPARK = Fold((LOG_RECORDS,), COVERAGE, lambda e: e.changed[LOG_RECORDS.name], _counted)


@pytest.mark.parametrize("table", [LOG_RECORDS, UNREAD_RECORDS, COVERAGE], ids=lambda t: t.name)
def test_duckdb_reads_what_we_wrote(
    duck: duckdb.DuckDBPyConnection, lake: Lake, table: Table
) -> None:
    path = Path(lake.path(table))
    theirs = duck.execute(f"SELECT * FROM delta_scan('{path}')").to_arrow_table()
    ours = lake.read(table)
    assert set(theirs.column_names) == set(ours.column_names)
    order = [(name, "ascending") for name in table.grain]
    theirs, ours = (t.select(ours.column_names).sort_by(order) for t in (theirs, ours))
    assert theirs.cast(ours.schema).to_pylist() == ours.to_pylist()
    day = table.partition[0]
    days = duck.execute(f"SELECT {day}, count(*) FROM delta_scan('{path}') GROUP BY 1 ORDER BY 1")
    assert days.fetchall() == [("2026-01-30", 3), ("2026-01-31", 3)]


def test_duckdb_and_polars_read_named_fields(
    duck: duckdb.DuckDBPyConnection, spark: SparkSession, tmp_path: Path
) -> None:
    """Parts and findings, one of them written by Spark and one by the migration."""
    lake = former_lake.unpacked(tmp_path)
    for job in AUDIT_JOBS:
        if job.output in former_lake.TABLES:
            window = Window(NOW, NOW + timedelta(days=1)) if job.output == AUDIT_BLOCKS else None
            runner.run(job, lake, lambda: spark, NOW, rebuild=window)
    for table, column in ((AUDIT_BLOCKS, "parts"), (DELIVERY_LEDGER, "findings")):
        grain = list(table.grain)
        ours = [
            {**{name: row[name] for name in grain}, **struct}
            for row in lake.read(table).to_pylist()
            for struct in row[column]
        ]
        fields = [field.name for field in table.column(column).fields]
        assert ours
        assert fields == list(ours[0])[-len(fields) :]
        listed = ", ".join(f'"{name}"' for name in grain)
        inner = ", ".join(f's."{name}"' for name in fields)
        theirs = duck.execute(
            f"SELECT {listed}, {inner} FROM (SELECT {listed}, unnest({column}) AS s "
            f"FROM delta_scan('{lake.path(table)}'))"
        ).fetchall()
        names = [*grain, *fields]
        assert _spelt(dict(zip(names, row, strict=True)) for row in theirs) == _spelt(ours)
        polar = pl.read_delta(lake.path(table)).select(*grain, pl.col(column).alias("s"))
        polar = polar.explode("s").drop_nulls("s")
        assert _spelt(
            {**{name: row[name] for name in grain}, **row["s"]} for row in polar.to_dicts()
        ) == _spelt(ours)


def _spelt(found: Iterable[Mapping[str, object]]) -> list[str]:
    """Rows in one order; an instant as its number, whatever object stands for its zone."""
    return sorted(
        str([v.timestamp() if isinstance(v, datetime) else v for v in row.values()])
        for row in found
    )
