"""What the doctor makes of what it finds: files, zones, clocks, crashes, silence."""

from __future__ import annotations

import os
import signal
import time
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from acktrail.lake import Lake
from acktrail.operate.probes import kafka, storage
from acktrail.operate.probes.clocks import clock_of, clock_row
from acktrail.operate.probes.files import files_probe
from acktrail.operate.probes.row import Clock, Probe, Row
from acktrail.operate.probes.together import run_probes
from acktrail.settings.model import KafkaSettings
from acktrail.settings.sources import LogFilesSource, LogScanSource

NOON = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
ZONES = [
    # zone the log is written in, zone in the settings, state, part of the remark
    ("UTC", "UTC", "ok", "1 file, all readable"),
    ("Europe/Berlin", "Europe/Berlin", "ok", "all readable"),
    ("Europe/Berlin", "UTC", "warning", "60 min after the file was changed"),
    ("Europe/Berlin", "UTC", "warning", "Times in it fit UTC+01:00, not UTC: set `zone`"),
    ("UTC", "Asia/Kolkata", "warning", "fit UTC+00:00, not Asia/Kolkata: set"),
    ("America/New_York", "UTC", "warning", "5.0 h before the file was changed"),
    ("America/New_York", "Asia/Tokyo", "warning", "fit UTC-05:00, not Asia/Tokyo"),
]


@pytest.mark.parametrize(("written", "zone", "state", "said"), ZONES)
def test_the_last_line_tells_a_wrong_zone(tmp_path, written, zone, state, said):
    log = tmp_path / "app.log"
    local = NOON.astimezone(ZoneInfo(written))
    log.write_text(f"{local:%Y-%m-%d %H:%M:%S},001 INFO started\n  no time here\n")
    os.utime(log, (NOON.timestamp() + 1,) * 2)
    source = LogFilesSource(kind="log_files", name="a", paths=(str(log),), zone=zone)
    ((_, found, remark),) = files_probe(source).run()
    assert found == state
    assert said in remark


def test_a_glob_that_matches_nothing_says_where_it_ends(tmp_path):
    (tmp_path / "logs").mkdir()
    for pattern, said in [
        (f"{tmp_path}/lgos/*.log", f"there is no directory {tmp_path}/lgos."),
        (f"{tmp_path}/logs/*.log", f"matches no file in {tmp_path}/logs."),
        (f"{tmp_path}/logs/*/a.log", f"matches no file in {tmp_path}/logs."),
    ]:
        source = LogFilesSource(kind="log_files", name="a", paths=(pattern,))
        ((_, state, remark),) = files_probe(source).run()
        assert state == "warning"
        assert said in remark


def test_a_lake_is_written_to_and_nothing_is_left(tmp_path):
    ((_, state, remark),) = storage.lake_probe(Lake(tmp_path / "a/b/lake")).run()
    assert "writable, 0 tables, 0 rows" in remark
    assert state in ("ok", "warning"), "a warning where the disk has little room"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("ahead", "state"), [(0, "ok"), (-3, "ok"), (9, "warning")])
def test_clocks(ahead, state):
    now = time.time()
    date = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(now + ahead))
    (clock,) = clock_of("prometheus:9090", {"Date": date}, now)
    assert isinstance(clock, Clock)
    assert abs(clock.ahead_s - ahead) <= 1
    assert clock_row([clock]).state == state


def test_a_server_without_a_date_is_not_compared():
    assert clock_of("a", {}, 0.0) == clock_of("a", {"Date": "soon"}, 0.0) == []
    assert clock_row([]).state == "warning"


def test_what_does_not_answer_in_time_or_raises_is_a_row_of_its_own():
    def late():
        time.sleep(30)
        return []

    def wrong():
        raise OSError("no such thing")

    began = time.monotonic()
    rows, clocks = run_probes(
        [
            Probe("late", late),
            Probe("wrong", wrong),
            Probe("well", lambda: [Row("well", "ok", "")]),
        ],
        limit_s=1,
    )
    assert time.monotonic() - began < 10
    assert rows == [
        Row("late", "failed", "no answer within 1 s"),
        Row("wrong", "failed", "OSError: no such thing"),
        Row("well", "ok", ""),
    ]
    assert not clocks


def _crash(sending, *_args):
    sending.send(("kafka", "ok", "brokers 1"))
    os.kill(os.getpid(), signal.SIGSEGV)


def test_a_crash_of_the_kafka_client_is_a_row_too(monkeypatch):
    """The child really dies of the signal; what it had answered before is kept."""
    monkeypatch.setattr(kafka, "_ask_all", _crash)
    source = LogScanSource(kind="log_scan", name="scan", topics=("orders",))
    access = KafkaSettings(bootstrap_servers="127.0.0.1:9")
    assert kafka.kafka_probe(access, [source]).run() == [
        Row("kafka", "ok", "brokers 1"),
        Row("source scan", "failed", "the Kafka client crashed (signal 11); run doctor again"),
    ]
