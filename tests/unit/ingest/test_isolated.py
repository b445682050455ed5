"""A source in a process of its own: its errors are raised here, and one that hangs is ended."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.errors import ConfigError, SourceUnavailable
from acktrail.lake import Lake
from acktrail.settings.model import KafkaSettings
from acktrail.settings.sources import ClusterStateSource, LogFilesSource
from ingest.agent import isolated
from ingest.agent.isolated import IsolatedSource
from ingest.registry import BUILDERS, NATIVE, SourceContext, hosted_source


def test_every_source_that_calls_librdkafka_is_isolated():
    root = Path(isolated.__file__).parents[2]
    text = {kind: (root / f"{m.replace('.', '/')}.py").read_text() for kind, m in BUILDERS.items()}
    assert {kind for kind, source in text.items() if "ingest.kafka." in source} == set(NATIVE)


def test_wrong_settings_are_refused_before_a_process_is_started():
    settings = ClusterStateSource(kind="cluster_state", name="state")
    with pytest.raises(ConfigError, match="bootstrap_servers"):
        hosted_source(settings, SourceContext("c", KafkaSettings()))


def test_batches_errors_and_a_process_that_hangs(tmp_path, monkeypatch):
    lake, log = Lake(tmp_path / "lake"), tmp_path / "app.log"
    log.write_text("WARN Got error produce response 1\nINFO next\n")
    settings = LogFilesSource(kind="log_files", name="app", host="h", paths=(str(log),))
    source = IsolatedSource(settings, SourceContext("c", once=True))
    source.open(lake)
    try:
        (batch,) = source.poll(1)
        assert batch.table is LOG_RECORDS
        lake.append(batch.table, batch.rows, batch.positions)
        source.committed(batch)
        assert list(source.poll(1)) == []
        assert source.health().lag == 0.0
        hanging = source.pid
        assert hanging is not None
        os.kill(hanging, signal.SIGSTOP)
        monkeypatch.setattr(isolated, "ANSWER_S", 0.2)
        with pytest.raises(SourceUnavailable, match="did not answer"):
            source.health()
        source.committed(batch)  # nobody is left to be told
    finally:
        source.close()
    assert not Path(f"/proc/{hanging}").exists()
    with pytest.raises(SourceUnavailable, match="not running"):
        source.health()


def test_an_error_of_ours_keeps_its_kind_and_another_is_one_that_may_pass():
    assert isinstance(isolated._error("ConfigError", "no right"), ConfigError)
    other = isolated._error("KeyError", "'x'")
    assert isinstance(other, SourceUnavailable)
    assert "KeyError" in str(other)
