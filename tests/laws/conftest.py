"""The recorded incident as bronze rows, and as the tables of one run over all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from acktrail.cli.demo import CLUSTER
from acktrail.contracts.bronze import BRONZE
from acktrail.lake import Lake
from ingest.replay import replay
from pipelines import runner
from pipelines.schedule import run_all
from tests.laws.incident import AS_OF, FOLDED, INCIDENT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pa.Table]:
    """The bronze rows of the recorded incident."""
    lake = Lake(tmp_path_factory.mktemp("evidence"))
    replay(INCIDENT, lake, CLUSTER)
    return {table.name: lake.read(table) for table in BRONZE}


@pytest.fixture(scope="session")
def whole_lake(
    evidence: dict[str, pa.Table], spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Lake:
    """A lake after one run over everything."""
    lake = Lake(tmp_path_factory.mktemp("whole"))
    for table in BRONZE:
        lake.append(table, evidence[table.name])
    run_all(FOLDED, lambda job: runner.run(job, lake, lambda: spark, AS_OF))
    return lake
