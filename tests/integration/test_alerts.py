"""Alerts against a real Alertmanager: killed, refused, cut off, and exactly one in the end."""

from __future__ import annotations

import http.client
import http.server
import multiprocessing
import os
import random
import threading
import time
from datetime import UTC, datetime, timedelta
from multiprocessing import forkserver
from pathlib import Path

import pytest

from acktrail.errors import AlertUndelivered
from acktrail.lake import Lake
from expectations.notify.alertmanager import Alertmanager
from expectations.notify.post import Patience
from expectations.outbox import Outbox
from tests.integration.alert_trial import begin, incident, run
from tests.integration.servers import AlertmanagerServer, free_port

TRIALS = 1_000 if os.environ.get("ACKTRAIL_SOAK") else 50
FAULTS = ("none", "down", "429", "500", "no answer", "taken, no answer")
KILLS = ("alerts recorded", "alerts sent", "alerts marked", "at random", "never")
CALM = Patience(10, 30)


@pytest.fixture(scope="module")
def alertmanager(tmp_path_factory):
    server = AlertmanagerServer(tmp_path_factory.mktemp("alertmanager"))
    server.start()
    yield server
    server.stop()


class FaultyWay:
    """Stands before the Alertmanager and does what *fault* says."""

    def __init__(self, upstream: int) -> None:
        self.fault = "none"
        way = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = int(way.fault) if way.fault.isdigit() else 200
                if way.fault in ("none", "taken, no answer"):
                    onward = http.client.HTTPConnection("127.0.0.1", upstream, timeout=10)
                    onward.request("POST", self.path, body, {"Content-Type": "application/json"})
                    status = onward.getresponse().status
                    onward.close()
                if "no answer" in way.fault:
                    time.sleep(0.5)
                    self.close_connection = True
                    return
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_args: object) -> None:
                pass

            def handle(self) -> None:
                try:
                    super().handle()
                except OSError:  # the one who asked was killed
                    self.close_connection = True

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))

    def __enter__(self) -> FaultyWay:
        self.thread.start()
        return self

    def __exit__(self, *_args: object) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


PROCESSES = multiprocessing.get_context("forkserver")
"""A process of its own for each trial, forked from one that has done its imports."""
PROCESSES.set_forkserver_preload(["tests.integration.alert_trial", "acktrail.lake.rows"])


@pytest.fixture(scope="module", autouse=True)
def found_by_processes():
    """The server of processes looks for modules where its environment says, not where we do."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
        forkserver.ensure_running()
        yield


def killed_run(lake: Path, url: str, trial: str, what: str, kill: str, chance: random.Random):
    """Run the alert code in a process of its own, and end it as *kill* says."""
    crash_at = kill if kill.startswith("alerts") else ""
    here, there = PROCESSES.Pipe()
    told = (there, crash_at, str(lake), url, trial, what == "wrong")
    process = PROCESSES.Process(target=begin, args=told)
    process.start()
    there.close()
    assert here.recv() == "ready"
    if kill == "at random":
        time.sleep(chance.uniform(0, 0.4))
        process.kill()
    process.join(timeout=60)
    assert process.exitcode is not None, "it did not end"
    process.close()
    here.close()


def test_any_kill_and_any_fault_leave_exactly_one_active_alert_and_none_after_the_cure(
    alertmanager, tmp_path
):
    chance = random.Random(20260131)
    nowhere = f"http://127.0.0.1:{free_port()}"
    with FaultyWay(alertmanager.port) as way:
        for number in range(TRIALS):
            trial, lake = f"trial-{number}", tmp_path / str(number)
            phase = ("wrong", "cured")[number % 2]
            fault, kill = chance.choice(FAULTS), chance.choice(KILLS)
            told = f"{trial}: {phase}, killed {kill}, fault {fault}"
            if phase == "cured":
                run(str(lake), alertmanager.url, trial, True, CALM).require()
            way.fault = fault
            url = nowhere if fault == "down" else way.url
            killed_run(lake, url, trial, phase, kill, chance)
            if fault != "none" and number % 5 == 0:
                broken = run(str(lake), url, trial, phase == "wrong", Patience(0.2, 0))
                with pytest.raises(AlertUndelivered):
                    broken.require()
            way.fault = "none"
            run(str(lake), way.url, trial, phase == "wrong", CALM).require()
            active = alertmanager.active(cluster=trial)
            assert len(active) == (1 if phase == "wrong" else 0), told
            if phase == "wrong":
                assert active[0]["annotations"]["cause"] == "unclean_election", told
                run(str(lake), way.url, trial, False, CALM).require()
                assert alertmanager.active(cluster=trial) == [], told


def test_an_alert_nobody_speaks_of_ends_by_itself_and_one_sent_again_goes_on(
    alertmanager, tmp_path
):
    interval = timedelta(seconds=1)
    receiver = Alertmanager((alertmanager.url,), interval, CALM)
    for trial in ("left-alone", "sent-again"):
        outbox = Outbox(Lake(tmp_path / trial))
        outbox.record([incident(trial)], {"no_loss_after_ack"}, datetime.now(UTC))
        outbox.deliver([receiver], datetime.now(UTC), interval).require()
        assert len(alertmanager.active(cluster=trial)) == 1
    began, gives_up = time.monotonic(), time.monotonic() + 60
    while time.monotonic() < began + 3.5 or alertmanager.active(cluster="left-alone"):
        assert time.monotonic() < gives_up, "it did not end by itself"
        outbox.deliver([receiver], datetime.now(UTC), interval).require()
        assert len(alertmanager.active(cluster="sent-again")) == 1
        time.sleep(0.5)


def test_one_instance_of_two_is_enough(alertmanager, tmp_path):
    urls = (f"http://127.0.0.1:{free_port()}", alertmanager.url)
    outbox = Outbox(Lake(tmp_path / "lake"))
    outbox.record([incident("two")], {"no_loss_after_ack"}, datetime.now(UTC))
    receiver = Alertmanager(urls, timedelta(minutes=5), Patience(10, 0))
    outbox.deliver([receiver], datetime.now(UTC), timedelta(minutes=5)).require()
    assert len(alertmanager.active(cluster="two")) == 1
