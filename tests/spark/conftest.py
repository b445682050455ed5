"""One Spark session for all tests of a run, and lakes to put rows in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from acktrail.contracts import Table
from acktrail.contracts.arrow import rows
from acktrail.lake import Lake
from pipelines import session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    built = session.build("local[1]")
    yield built
    session.stop(built)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


Put = Callable[[Lake, Table, list[Mapping[str, Any]]], None]


@pytest.fixture
def put(spark: SparkSession) -> Put:
    """Append records to a table that Spark writes; keys left out are null."""

    def append(where: Lake, table: Table, records: list[Mapping[str, Any]]) -> None:
        if not records:
            return
        frame = spark.createDataFrame(rows(table, records))
        writer = frame.write.format("delta").mode("append")
        if table.partition:
            writer = writer.partitionBy(*table.partition)
        writer.save(where.path(table))

    return append
