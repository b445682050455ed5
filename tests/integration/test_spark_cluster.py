"""The jobs on a standalone cluster of two workers, with the lake on S3: the tables of a local run.

Each executor has a directory of its own, a copy of the packed environment in it, and neither this
checkout nor the driver's Python environment.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import fs

from acktrail.cli.demo import incident, recorded_until
from acktrail.contracts import TABLES
from acktrail.lake import Lake
from pipelines import environment
from tests.integration.process_list import process_list
from tests.integration.s3_server import KEY_ID, SECRET, make_bucket, s3_server
from tests.integration.spark_cluster import SparkCluster, leashed

ROOT = Path(__file__).parents[2]
SETTINGS = """
cluster = "demo"
[lake]
uri = "s3://books/lake"
[lake.storage_options]
endpoint_url = "{endpoint}"
access_key_id = "{key}"
secret_access_key = "{secret}"
[spark]
master = "{master}"
driver_host = "127.0.0.1"
executors = 2
executor_cores = 1
executor_memory = "1g"
environment = "{archive}"
[spark.conf]
# Two small workers: what is set for a local master by itself.
"spark.sql.shuffle.partitions" = "2"
"spark.sql.adaptive.enabled" = "false"
"spark.sql.codegen.wholeStage" = "false"
"spark.sql.codegen.factoryMode" = "NO_CODEGEN"
"spark.executor.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""


def acktrail(*words: str | Path, cwd: Path) -> subprocess.Popen[str]:
    """Start the command, without what the environment says about stores and clusters."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "SPARK_", "PYSPARK_"))}
    return subprocess.Popen(
        leashed(sys.executable, "-m", "acktrail", *map(str, words)),
        cwd=cwd,
        env={**kept, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(*words: str | Path, cwd: Path) -> None:
    process = acktrail(*words, cwd=cwd)
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with the evidence of the recorded incident, and nothing made of it."""
    place = tmp_path_factory.mktemp("evidence")
    run("ingest", "lab", incident(), "--lake", place / "lake", "--set", "cluster=demo", cwd=place)
    return place / "lake"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with SparkCluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with s3_server() as address:
        make_bucket(address, "books")
        yield address


def rows(lake: Lake) -> dict[str, list[str]]:
    """Every row of silver and gold, sorted."""
    made = [table for table in TABLES if table.layer in ("silver", "gold")]
    return {table.name: sorted(map(repr, lake.read(table).to_pylist())) for table in made}


def test_a_cluster_with_a_lake_on_s3_makes_the_tables_of_a_local_run(
    evidence, cluster, server, tmp_path
):
    as_of = recorded_until(incident()).isoformat()
    local = shutil.copytree(evidence, tmp_path / "local")
    run("run", "--lake", local, "--as-of", as_of, "--master", "local[2]", cwd=tmp_path)

    archive = tmp_path / "environment.tar.gz"
    environment.pack(archive)
    options = {"endpoint_url": server, "access_key_id": KEY_ID, "secret_access_key": SECRET}
    remote = Lake("s3://books/lake", options)
    fs.copy_files(str(evidence), "", destination_filesystem=remote.store.files())
    config = tmp_path / "acktrail.toml"
    config.write_text(
        SETTINGS.format(
            endpoint=server, key=KEY_ID, secret=SECRET, master=cluster.master, archive=archive
        )
    )
    process = acktrail("run", "--config", config, "--as-of", as_of, cwd=tmp_path)
    seen: set[str] = set()
    while process.poll() is None:
        seen |= {line for pid in (process.pid, *cluster.pids) for line in process_list(pid)}
        time.sleep(0.5)
    printed, errors = process.communicate()
    assert process.returncode == 0, errors

    assert rows(remote) == rows(Lake(local))
    for worker in cluster.workers:
        assert cluster.tasks_done(worker) > 0, f"{worker} has done nothing"
        (python,) = cluster.work(worker).glob("app-*/*/environment/bin/python")
        assert python.is_file()
    assert any("SparkSubmit" in line for line in seen), "the driver's JVM"
    assert any("CoarseGrainedExecutorBackend" in line for line in seen), "an executor"
    for text in (printed, errors, *seen, *cluster.logs()):
        assert SECRET not in text
