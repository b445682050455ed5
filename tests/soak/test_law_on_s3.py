"""The law of every job with the lake on S3: in any split and order, with kills at every point."""

from __future__ import annotations

import os

import pytest

from acktrail.lake import Lake
from acktrail.settings.spark import SparkSettings
from pipelines import session
from tests.integration.s3_server import KEY_ID, SECRET, make_bucket, s3_server
from tests.laws.conftest import evidence, whole_lake  # noqa: F401
from tests.laws.test_jobs import contents, run_in_pieces

pytestmark = [
    pytest.mark.skipif(not os.environ.get("ACKTRAIL_SOAK"), reason="make soak"),
    pytest.mark.timeout(7200),
]


@pytest.fixture(scope="session")
def lake():
    with s3_server() as address:
        make_bucket(address, "bucket")
        options = {
            "endpoint_url": address,
            "access_key_id": KEY_ID,
            "secret_access_key": SECRET,
            "region": "us-east-1",
        }
        yield Lake("s3://bucket/lake", options)


@pytest.fixture(scope="session")
def spark(lake):
    """A session that reaches S3 and directories alike."""
    built = session.build(SparkSettings(master="local[2]"), lake.store)
    yield built
    session.stop(built)


def test_any_split_in_any_order_with_kills_gives_the_tables_of_one_run(
    lake,
    evidence,
    whole_lake,
    spark,
    monkeypatch,
):
    run_in_pieces(lake, evidence, spark, monkeypatch)
    wanted = contents(whole_lake)
    for name, rows in contents(lake).items():
        assert rows == wanted[name], f"{name} differs from one full run on a disk"
