"""Real Airflow for the tests: its own environment, a home in a scratch directory, SQLite."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.integration.s3_server import KEY_ID, SECRET

ROOT = Path(__file__).parents[2]
VENV = ROOT / ".venv-airflow"


@dataclass(frozen=True)
class Answer:
    """How an `airflow` command ended."""

    code: int
    output: str


@dataclass(frozen=True)
class Run:
    """A DAG run as Airflow's database has it."""

    state: str
    tasks: dict[str, str | None]
    tries: dict[str, int]
    xcoms: dict[tuple[str, str], Any]


class AirflowSession:
    """One Airflow home, and one process that runs `airflow` commands in it."""

    def __init__(self, home: Path) -> None:
        subprocess.run([ROOT / "scripts" / "airflow_env.sh"], check=True)
        self.home = home
        self.dags = home / "dags"
        self.dags.mkdir(parents=True)
        self._process = subprocess.Popen(
            [VENV / "bin" / "python", Path(__file__).with_name("airflow_driver.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(home),
            cwd=home,
        )

    def send(self, *argv: str) -> None:
        """Start `airflow ARGV`; *receive* waits for its end."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"argv": argv}) + "\n")
        self._process.stdin.flush()

    def receive(self) -> Answer:
        """How the command that was sent ended."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"Airflow's process ended: {self._process.wait()}"
        return Answer(**json.loads(line))

    def airflow(self, *argv: str) -> Answer:
        """Run `airflow ARGV`."""
        self.send(*argv)
        return self.receive()

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """Ask Airflow's database."""
        with sqlite3.connect(f"file:{self.home / 'airflow.db'}?mode=ro", uri=True) as database:
            found = database.execute(query, values).fetchall()
        database.close()
        return found

    def last_run(self, dag: str) -> Run:
        """The newest run of *dag*."""
        run_id, state = self.rows(
            "SELECT run_id, state FROM dag_run WHERE dag_id = ? ORDER BY id DESC LIMIT 1", dag
        )[0]
        tasks = self.rows(
            "SELECT task_id, state, try_number FROM task_instance WHERE dag_id=? AND run_id=?",
            *(dag, run_id),
        )
        xcoms = self.rows(
            "SELECT task_id, key, value FROM xcom WHERE dag_id=? AND run_id=?", dag, run_id
        )
        return Run(
            state,
            {task: task_state for task, task_state, _ in tasks},
            {task: tries for task, _, tries in tasks},
            {(task, key): _plain(value) for task, key, value in xcoms},
        )

    def wait_for(self, what: Callable[[], bool], seconds: float) -> None:
        """Wait until *what* holds."""
        deadline = time.monotonic() + seconds
        while not what():
            assert time.monotonic() < deadline, "it did not happen in time"
            time.sleep(0.2)

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()


def environment(home: Path) -> dict[str, str]:
    """The environment of an Airflow that lives in *home* and knows nothing of this one."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("AIRFLOW", "ACKTRAIL", "PYTHON", "VIRTUAL_ENV"))
    }
    return {
        **kept,
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        "PYTHONWARNINGS": "ignore",
        # Credentials of a store that a worker has; settings of the command need not name any.
        "AWS_ACCESS_KEY_ID": KEY_ID,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "COLUMNS": "200",
    }


def command_file(directory: Path) -> Path:
    """An `acktrail` command as its own environment would have it."""
    command = directory / "acktrail"
    command.write_text(
        f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m acktrail "$@"\n',
        encoding="utf-8",
    )
    command.chmod(0o755)
    return command


def _plain(value: Any) -> Any:
    """An XCom as Python; Airflow stores JSON in JSON."""
    while isinstance(value, str | bytes):
        try:
            value = json.loads(value)
        except ValueError:
            break
    return value
