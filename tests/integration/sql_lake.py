"""A small lake to ask questions of, and the environment in which its commands run."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from acktrail.contracts.arrow import rows
from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.contracts.runs import RUNS
from acktrail.lake import Lake

NOW = datetime(2026, 1, 31, tzinfo=UTC)
ROOT = Path(__file__).parents[2]


def small_lake(place: Path) -> Lake:
    """Three log records and two runs."""
    lake = Lake(place)
    record = {
        "cluster": "c", "source": "s", "file_id": "f", "text": "x", "truncated": False,
        "read_at": NOW, "day": "2026-01-31",
    }  # fmt: skip
    lake.append(LOG_RECORDS, rows(LOG_RECORDS, [{**record, "position": i} for i in range(3)]))
    run = {
        "job": "j", "started_at": NOW, "ended_at": NOW, "as_of": NOW, "shape": "map",
        "rebuilt": False, "rows_in": 3, "rows_out": 2, "touched": 0, "version": 1,
    }  # fmt: skip
    lake.append(RUNS, rows(RUNS, [{**run, "run": i} for i in range(2)]))
    return lake


def environment(directory: Path) -> dict[str, str]:
    """As a user's shell has it, with a history of its own."""
    unset = ("PAGER", "LESS", "SPARK_REMOTE", "SPARK_CONNECT_AUTHENTICATE_TOKEN")
    kept = {name: value for name, value in os.environ.items() if name not in unset}
    own = {"PYTHONPATH": str(ROOT), "ACKTRAIL_SQL_HISTORY": str(directory / "history")}
    terminal = {"TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", "PYTHONWARNINGS": "ignore"}
    return {**kept, **own, **terminal}
