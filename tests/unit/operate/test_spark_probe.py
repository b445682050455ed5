"""What the doctor makes of a Spark master on other hosts."""

from __future__ import annotations

import socket

import pytest

from acktrail.errors import ConfigError, SourceUnavailable
from acktrail.lake.store import Store
from acktrail.operate.probes.spark import _addresses, cluster_probes
from acktrail.settings.spark import SparkSettings

ON_S3 = Store("s3://books/lake")
ADDRESSES = [
    ("spark://m:7077", [("m", 7077)]),
    ("spark://m1:7077,m2:7078", [("m1", 7077), ("m2", 7078)]),
    ("k8s://https://k:6443", [("k", 6443)]),
    ("k8s://https://k", [("k", 443)]),
    ("k8s://k:6443", [("k", 6443)]),
]


@pytest.mark.parametrize(("master", "addresses"), ADDRESSES)
def test_addresses_of_masters(master, addresses):
    assert _addresses(master) == addresses


def row(master: str, store: Store = ON_S3, **given: object):
    (probe,) = cluster_probes(SparkSettings.model_validate({"master": master, **given}), store)
    (found,) = probe.run()
    return found


def test_a_local_master_is_not_asked():
    assert cluster_probes(SparkSettings(), ON_S3) == []


def test_a_master_that_listens_is_fine_also_as_the_second_of_two():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert row(f"spark://127.0.0.1:1,127.0.0.1:{port}")[1:] == (
            "ok", f"127.0.0.1:{port} takes connections",
        )  # fmt: skip


def test_a_master_that_does_not_listen_is_named():
    with pytest.raises(SourceUnavailable, match=r"127\.0\.0\.1:1: Connection refused"):
        row("spark://127.0.0.1:1")


def test_a_lake_or_archive_that_a_run_would_refuse_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="each would write to its own disk"):
        row("yarn", Store(str(tmp_path)))
    with pytest.raises(ConfigError, match="cannot be read"):
        row("yarn", environment=str(tmp_path / "e.tar.gz"))


def test_yarn_needs_its_configuration(monkeypatch):
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("YARN_CONF_DIR", raising=False)
    assert row("yarn").state == "warning"
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    assert row("yarn").state == "ok"
