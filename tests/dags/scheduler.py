"""The scheduler itself, for a few minutes: `python -m tests.dags.scheduler [--screenshot PNG]`.

Scheduler, DAG processor and API server of a real Airflow on loopback, with SQLite, over a lake that
first knows nothing and then has the recorded incident. The five-minute DAG is triggered twice and
completes twice, green and then red; a DAG that waits for a gold table wakes up once. With
--screenshot, Chromium takes a picture of the grid.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from acktrail.cli.demo import incident
from tests.dags.airflow_session import ROOT, VENV, environment
from tests.dags.alertmanager import Alertmanager
from tests.dags.place import Place, prepare
from tests.integration.servers import free_port

AUDIT = "acktrail_audit_5min"
WAITING = "waits_for_loss_incidents"
WAITING_DAG = f'''\
from airflow.sdk import DAG, Asset, task

with DAG("{WAITING}", schedule=[Asset("acktrail_loss_incidents", uri="acktrail://gold/loss_incidents")]):

    @task
    def tell() -> None:
        """What a team does with new answers."""

    tell()
'''


class Scheduler:
    """Airflow's processes on loopback, ended together."""

    def __init__(self, home: Path, place: Place) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.home = home
        self._env = {
            **environment(home),
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(port),
            "AIRFLOW__API__WORKERS": "1",
            "AIRFLOW__API__BASE_URL": self.url,
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
            "AIRFLOW__CORE__PARALLELISM": "2",
            "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "60",
            "AIRFLOW__DAG_PROCESSOR__PARSING_PROCESSES": "1",
            "ACKTRAIL_COMMAND": str(place.command),
            "ACKTRAIL_CONFIG": str(place.config),
        }
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start them and wait until the API and the scheduler answer."""
        subprocess.run(
            [VENV / "bin" / "airflow", "db", "migrate"],
            env=self._env,
            check=True,
            capture_output=True,
        )
        self._start("api-server")
        self._start("dag-processor")
        self._start("scheduler", "--skip-serve-logs")
        wait_for("a healthy scheduler", self._healthy, 300)

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """The API's answer."""
        request = urllib.request.Request(
            f"{self.url}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def finished(self, dag: str) -> list[dict[str, Any]]:
        """Runs of *dag* that are over, the oldest first."""
        runs = self.ask("GET", f"/api/v2/dags/{dag}/dagRuns?order_by=run_after")["dag_runs"]
        return [run for run in runs if run["state"] in ("success", "failed")]

    def states(self, dag: str, run: str) -> dict[str, str]:
        """Task states of one run."""
        found = self.ask("GET", f"/api/v2/dags/{dag}/dagRuns/{run}/taskInstances")
        return {task["task_id"]: task["state"] for task in found["task_instances"]}

    def stop(self) -> None:
        """End every process, with all it started."""
        for sent in (signal.SIGTERM, signal.SIGKILL):
            for process in self._processes:
                try:
                    os.killpg(process.pid, sent)
                except ProcessLookupError:
                    continue
            time.sleep(3 if sent == signal.SIGTERM else 0)
        for process in self._processes:
            process.wait()

    def _start(self, *argv: str) -> None:
        with (self.home / f"{argv[0]}.log").open("wb") as log:
            self._processes.append(
                subprocess.Popen(
                    [VENV / "bin" / "airflow", *argv],
                    env=self._env,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            )

    def _healthy(self) -> bool:
        health = self.ask("GET", "/api/v2/monitor/health")
        known = self.ask("GET", "/api/v2/dags")["total_entries"]
        return health["scheduler"]["status"] == "healthy" and known >= 4


def wait_for(what: str, holds: Callable[[], Any], seconds: float) -> Any:
    """Wait until *holds* gives something true."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if found := holds():
                return found
        except (urllib.error.URLError, OSError):
            pass
        time.sleep(1)
    raise AssertionError(f"waited {seconds:.0f} s in vain for {what}")


def triggered(scheduler: Scheduler, conf: dict[str, str]) -> dict[str, str]:
    """Trigger the five-minute DAG by hand; the states of its tasks once it is over."""
    made = scheduler.ask(
        "POST", f"/api/v2/dags/{AUDIT}/dagRuns", {"logical_date": None, "conf": conf}
    )
    name = made["dag_run_id"]
    wait_for(
        f"the end of {name}",
        lambda: any(run["dag_run_id"] == name for run in scheduler.finished(AUDIT)),
        1200,
    )
    return scheduler.states(AUDIT, name)


def take_picture(url: str, picture: Path) -> None:
    """A screenshot of *url* by headless Chromium."""
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(
            [
                "chromium",
                *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"),
                *("--no-first-run", "--disable-background-networking"),
                *("--disable-component-update", "--disable-sync", "--hide-scrollbars"),
                f"--user-data-dir={profile}",
                "--window-size=1400,860",
                "--virtual-time-budget=60000",
                f"--screenshot={picture}",
                url,
            ],
            check=True,
            capture_output=True,
            timeout=300,
        )


def main() -> None:
    """Run it and say what was seen."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--screenshot", type=Path)
    picture = parser.parse_args().screenshot
    subprocess.run([ROOT / "scripts" / "airflow_env.sh"], check=True)
    scratch = Path(tempfile.mkdtemp(prefix="acktrail-airflow-"))
    alertmanager = Alertmanager(scratch)
    place = prepare(scratch, alertmanager)
    home = scratch / "airflow"
    shutil.copytree(ROOT / "airflow_dags", home / "dags")
    (home / "dags" / f"{WAITING}.py").write_text(WAITING_DAG, encoding="utf-8")
    scheduler = Scheduler(home, place)
    try:
        scheduler.start()
        watch(scheduler, place)
        if picture:
            take_picture(f"{scheduler.url}/dags/{AUDIT}", picture.absolute())
    except BaseException:
        sys.stderr.write(f"Airflow's logs are in {home}\n")
        raise
    finally:
        scheduler.stop()
        alertmanager.stop()
    shutil.rmtree(scratch)


def watch(scheduler: Scheduler, place: Place) -> None:
    """Two runs by hand, one before and one after the incident; each as it should be."""
    began = time.monotonic()
    for dag in (AUDIT, WAITING):
        scheduler.ask("PATCH", f"/api/v2/dags/{dag}", {"is_paused": False})
    quiet = triggered(scheduler, {})
    place.fill(incident())
    incident_run = triggered(scheduler, {"as_of": place.as_of})
    woken = wait_for("the DAG that waits", lambda: scheduler.finished(WAITING), 120)
    seen = {
        "seconds": round(time.monotonic() - began),
        "before the incident": quiet,
        "after the incident": incident_run,
        "runs of the five-minute DAG": len(scheduler.finished(AUDIT)),
        "runs of the DAG that waits": len(woken),
    }
    sys.stdout.write(json.dumps(seen, indent=1) + "\n")
    assert quiet == {"agent": "skipped", "run": "success", "check": "success"}
    assert incident_run == {"agent": "skipped", "run": "success", "check": "failed"}
    assert len(woken) == 1


if __name__ == "__main__":
    main()
