"""The lake of an earlier version in tests/golden/lakes, and what that version answered on it."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

from click.testing import CliRunner

from acktrail.cli import main
from acktrail.contracts.gold import DELIVERY_LEDGER
from acktrail.contracts.silver import AUDIT_BLOCKS
from acktrail.lake import Lake

GOLDEN = Path(__file__).parents[1] / "golden/lakes"
TABLES = (AUDIT_BLOCKS, DELIVERY_LEDGER)
"""What it has in a former kind."""


def unpacked(place: Path) -> Lake:
    with zipfile.ZipFile(GOLDEN / "positional_columns.zip") as packed:
        packed.extractall(place)
    return Lake(place)


def answers_then() -> dict:
    return json.loads((GOLDEN / "positional_columns.json").read_text(encoding="utf-8"))


def answers_now(lake: Lake) -> dict:
    losses = _ask(lake, "losses")
    ranges = _ask(lake, "losses", "--ranges")
    return {
        "losses": _without_new(losses),
        "ranges": _without_new(ranges),
        "ledger": _ask(lake, "ledger", "--blocks"),
        "explain": {row["incident"]: _ask(lake, "explain", row["incident"]) for row in losses},
    }


def _without_new(rows: list[dict]) -> list[dict]:
    """Without the columns that the version before did not have."""
    return [{k: v for k, v in row.items() if k not in ("host", "hosts")} for row in rows]


def _ask(lake: Lake, *words: str) -> list[dict]:
    done = CliRunner().invoke(main, [*words, "--lake", lake.uri, "--format", "json"])
    assert done.exit_code == 0, done.output
    text = done.stdout
    return json.loads(text) if text.startswith("[") else [json.loads(x) for x in text.splitlines()]
