"""Cold processes that must be quick, against the start of Python with what they need.

The peer is the same interpreter importing what the command cannot do without, so that the ratio
says what acktrail adds.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from acktrail.cli.demo import CLUSTER, incident, recorded_until
from acktrail.lake import Lake
from bench.cost import cost_of, environment, middle

_IDLE = "from pipelines import session; s = session.build(); s.range(1).count(); session.stop(s)"


def run() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as scratch:
        lake = str(Path(scratch) / "lake")
        at = recorded_until(incident()).isoformat()
        _call(["-m", "acktrail", "demo", "--lake", lake])
        nothing = ["-m", "acktrail", "run", "--lake", lake, "--as-of", at]
        check = ["-m", "acktrail", "check", "--lake", lake, "--as-of", at]
        engine = ["-c", "import great_expectations, deltalake, pandas"]
        return [
            _row(
                "help_cold", ["-m", "acktrail", "--help"], "python + click", ["-c", "import click"]
            ),
            _row("run_nothing_new_cold", nothing, "python + deltalake", ["-c", "import deltalake"]),
            _row("check_cold", check, "python + great_expectations", engine),
            *_small_run(Path(scratch), at),
        ]


def _small_run(scratch: Path, at: str) -> list[dict[str, Any]]:
    """`acktrail run` on the demo's evidence, against a Spark session that counts one row.

    Whole commands, with every process they start: seconds, and CPU seconds. Medians of three.
    """
    from ingest.replay import replay

    ours, theirs = [], []
    for number in range(3):
        path = scratch / f"small-{number}"
        replay(incident(), Lake(path), CLUSTER)
        ours.append(cost_of(["-m", "acktrail", "run", "--lake", str(path), "--as-of", at]))
        theirs.append(cost_of(["-c", _IDLE]))
    run, idle = middle(ours), middle(theirs)
    figures = {"small_run": (run.wall_s, idle.wall_s), "small_run_cpu": (run.cpu_s, idle.cpu_s)}
    return [
        {
            "name": name,
            "ours_s": round(ours_s, 2),
            "peer": "a Spark session that counts one row",
            "peer_s": round(peer_s, 2),
            "ratio": round(ours_s / peer_s, 2),
            "bar": None,
        }
        for name, (ours_s, peer_s) in figures.items()
    ]


def _row(name: str, ours: Sequence[str], peer: str, theirs: Sequence[str]) -> dict[str, Any]:
    ours_s, peer_s = (min(_call(words) for _ in range(3)) for words in (ours, theirs))
    return {
        "name": name,
        "ours_s": round(ours_s, 2),
        "peer": peer,
        "peer_s": round(peer_s, 2),
        "ratio": round(ours_s / peer_s, 2),
        "bar": None,
    }


def _call(words: Sequence[str]) -> float:
    began = time.monotonic()
    subprocess.run(
        [sys.executable, *words],
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    return time.monotonic() - began
