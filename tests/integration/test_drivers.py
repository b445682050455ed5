"""Any number of drivers on one lake: each goes on, nothing is lost, doubled or alerted twice."""

from __future__ import annotations

import pytest

from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.lake import Lake
from tests.integration.drivers import (
    Drivers,
    contents,
    copied_evidence,
    doubled,
    flapping,
    stop,
    wait_for_rows,
)

ROUNDS = 5


@pytest.mark.timeout(1800)
def test_watch_run_agent_and_check_at_once(tmp_path):
    lake = Lake(tmp_path / "lake")
    drivers = Drivers(tmp_path, lake)
    drivers.print_lines(5)
    watch = drivers.command("watched", "watch", "--every", "2")
    try:
        wait_for_rows(drivers, watch)
        for _ in range(ROUNDS):
            ran, collected, checked = drivers.round(("run",), ("agent", "--once"), ("check",))
            assert (ran, collected) == (0, 0), drivers.said()[-6000:]
            assert checked in (0, 1), drivers.said()[-6000:]
            assert watch.poll() is None, drivers.said()[-6000:]
        assert stop(watch) == 0, drivers.said()[-6000:]
    finally:
        watch.kill()
        watch.wait()
    assert drivers.command("watched", "agent", "--once").wait(600) == 0
    assert drivers.command("collected", "run").wait(600) == 0, drivers.said()[-6000:]
    assert "Traceback" not in drivers.said()
    read = lake.read(LOG_RECORDS, columns=["source", "position"]).num_rows
    assert read == sum(drivers.lines.values()) + 2, "every line, and the two blocks of settings"
    assert doubled(lake) == {}
    assert flapping(lake) == []
    once = copied_evidence(lake, Lake(tmp_path / "once"))
    ran = drivers.command("collected", "run", "--lake", once.uri).wait(600)
    assert ran == 0, drivers.said()[-6000:]
    found, wanted = contents(lake), contents(once)
    for name, rows in wanted.items():
        assert found[name] == rows, f"{name} differs from one run over the same evidence"
