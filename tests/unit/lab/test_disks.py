"""Disks of brokers: what a wipe keeps, and what is refused before it can hurt the machine."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from acktrail.errors import LabError
from lab.admin import WipeBroker
from lab.cluster import Broker
from lab.disks import FullDisk, SmallDisk, unmount
from lab.processes import Process


@pytest.fixture
def run(tmp_path):
    """What actions on disks ask of a run: its brokers, and a place for what they did."""
    broker = Broker(1, tmp_path, 1, 2, 3, 4, 5)
    (broker.data / "payments-0").mkdir(parents=True)
    (broker.data / "__cluster_metadata-0").mkdir()
    for name in ("meta.properties", "recovery-point-offset-checkpoint", "payments-0/1.log"):
        (broker.data / name).write_text("x")
    did = []
    act = lambda action, **facts: did.append((action, facts))  # noqa: E731
    return SimpleNamespace(cluster=SimpleNamespace(brokers={1: broker}), act=act, did=did)


@pytest.fixture
def running(run, tmp_path):
    words = [sys.executable, "-c", "import time; time.sleep(60)"]
    process = Process(words, output=tmp_path / "out.txt")
    run.cluster.brokers[1].process = process
    yield run
    process.kill()


def test_a_wiped_disk_keeps_what_makes_a_member_of_the_cluster(run):
    WipeBroker(1).start(run)
    left = sorted(path.name for path in run.cluster.brokers[1].data.iterdir())
    assert left == ["__cluster_metadata-0", "meta.properties"]
    assert run.did == [("wipe_broker", {"broker": 1, "removed": 2})]


@pytest.mark.parametrize("action", [WipeBroker(1), SmallDisk(1)], ids=lambda a: a.name)
def test_a_disk_is_not_changed_under_a_broker_that_runs(running, action):
    with pytest.raises(LabError, match="still runs"):
        action.start(running)
    assert (running.cluster.brokers[1].data / "payments-0" / "1.log").exists()


def test_the_disk_of_the_machine_is_never_filled(run):
    with pytest.raises(LabError, match="not a disk of its own"):
        FullDisk(1).start(run)
    assert not (run.cluster.brokers[1].data / "ballast").exists()


def test_what_is_no_mount_stays(run):
    unmount(run.cluster.brokers[1].data)
    assert (run.cluster.brokers[1].data / "payments-0").exists()
