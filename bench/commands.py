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

from acktrail.cli.demo import incident, recorded_until


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
        [sys.executable, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
    )
    return time.monotonic() - began
