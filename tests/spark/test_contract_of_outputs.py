"""What a job makes fits its table's contract, or nothing of it is written."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from acktrail.contracts.arrow import rows
from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.contracts.silver import AUDIT_PARTS, UNREAD_RECORDS
from acktrail.contracts.table import Column
from acktrail.errors import ContractError
from acktrail.lake import Lake
from pipelines import runner
from pipelines.job import Map, Options
from pipelines.spark_schema import loose

NOW = datetime(2026, 1, 31, 7, tzinfo=UTC)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(tmp_path)
    record = {
        "cluster": "c", "source": "s", "file_id": "f", "position": 1, "text": "x",
        "truncated": False, "read_at": NOW, "day": "2026-01-31",
    }  # fmt: skip
    made.append(LOG_RECORDS, rows(LOG_RECORDS, [record]))
    return made


def good(frame: DataFrame) -> DataFrame:
    key = F.concat_ws("/", "source", "file_id", "position").alias("record_key")
    kept = ("cluster", key, "source", "host", "path", F.lit("?").alias("reason"), "text", "day")
    return frame.select(*kept)


CASES: dict[str, tuple[Callable[[DataFrame], DataFrame], str]] = {
    "a required column is missing": (
        lambda f: good(f).drop("record_key"),
        "missing columns: +record_key",
    ),
    "a column nobody declared": (
        lambda f: good(f).withColumn("colour", F.lit("red")),
        "unexpected columns: +colour",
    ),
    "a number where text belongs": (
        lambda f: good(f).withColumn("reason", F.lit(7)),
        "reason is int, not string",
    ),
    "a required value is null": (
        lambda f: good(f).withColumn("record_key", F.lit(None).cast("string")),
        "unread_records.record_key is required, and a row has none",
    ),
}


def refused(lake: Lake, spark: SparkSession, job: Map, complaint: str) -> None:
    with pytest.raises(ContractError, match=complaint):
        runner.run(job, lake, lambda: spark, NOW)
    assert not lake.has_data(job.output)
    assert lake.consumed(job.output, job.name) is None, "the refused run counts as done"


@pytest.mark.parametrize("case", CASES)
def test_an_output_that_breaks_its_contract_is_refused(
    case: str, lake: Lake, spark: SparkSession
) -> None:
    change, complaint = CASES[case]
    refused(lake, spark, Map(LOG_RECORDS, UNREAD_RECORDS, lambda f, _o: change(f)), complaint)
    right = Map(LOG_RECORDS, UNREAD_RECORDS, lambda f, _o: good(f))
    assert runner.run(right, lake, lambda: spark, NOW).rows_out == 1, "mended, it goes through"


def test_a_value_that_is_not_allowed_is_refused(lake: Lake, spark: SparkSession) -> None:
    def strange(frame: DataFrame, _options: Options) -> DataFrame:
        return frame.select(*(_surprising(frame, c) for c in AUDIT_PARTS.columns))

    complaint = "audit_parts.tier: not an allowed value: surprise"
    refused(lake, spark, Map(LOG_RECORDS, AUDIT_PARTS, strange), complaint)


def _surprising(frame: DataFrame, column: Column) -> SparkColumn:
    """Any fitting value for a required column, and a surprise for the tier."""
    if column.name == "tier":
        value = F.lit("surprise")
    elif column.name in frame.columns:
        value = F.col(column.name)
    elif not column.required:
        value = F.lit(None)
    else:
        value = F.lit(next(iter(column.values)).value if column.values else "1")
    return value.cast(loose(AUDIT_PARTS)[column.name].dataType).alias(column.name)
