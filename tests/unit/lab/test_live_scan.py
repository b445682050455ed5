"""The agent beside a run is given settings that acktrail reads."""

from __future__ import annotations

from types import SimpleNamespace

from acktrail.settings import load
from lab.live_scan import LiveScan
from lab.scenarios import SCENARIOS


def test_the_settings_of_every_scenario_are_read(tmp_path):
    cluster = SimpleNamespace(direct="127.0.0.1:1,127.0.0.1:2")
    for scenario in SCENARIOS:
        beside = LiveScan(cluster, scenario, tmp_path)  # type: ignore[arg-type]
        beside._home = tmp_path
        file = tmp_path / "acktrail.toml"
        file.write_text(beside._settings())
        sources = load(file, [], environment={}).settings.sources
        kinds = [source.kind for source in sources]
        clients = [*scenario.producers, *scenario.consumers]
        assert kinds == ["cluster_state", "log_scan"] + ["verifiable"] * len(clients)
        (scan,) = (source for source in sources if source.kind == "log_scan")
        assert scan.mode == "suspicion"
        assert scan.topics == tuple(topic.name for topic in scenario.topics)
