"""A gap in what a group read, from a file to the answer, and what proves less than a skip."""

from __future__ import annotations

import contextlib
import io
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner

from acktrail.cli import main
from acktrail.contracts.arrow import rows
from acktrail.contracts.bronze import GROUP_OFFSETS
from acktrail.contracts.gold import DELIVERY_LEDGER
from acktrail.lake import Lake
from acktrail.settings import load
from ingest.messages.load import ingest_files
from tests.spark.books.test_books import ALL, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = (Path(__file__).parents[3] / "docs/audit.md").read_text(encoding="utf-8")
EXAMPLE = PAGE[PAGE.index("## A gap that a group skipped") :]
AT = datetime(2026, 1, 31, 8, tzinfo=UTC)
STATES = ("delivered", "not_owed", "skipped_by_consumer", "inconclusive", "pending")


def example_rows() -> list[dict[str, Any]]:
    """What the page's program prints."""
    found = re.search(r"```python\n(.*?)```", EXAMPLE, re.DOTALL)
    assert found is not None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(found[1], "docs/audit.md", "exec"), {})
    return [json.loads(line) for line in printed.getvalue().splitlines()]


def delivered_rows(listed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same, by a group that reports each message and no range."""
    messages = [r for r in listed if r["tier"] != "consumed"]
    got = [r for r in messages if r["tier"] == "in_log" and not 10 <= r["offset"] < 15]
    return [*messages, *({**r, "tier": "delivered", "group": "billing"} for r in got)]


def test_a_skip_is_proven_by_reports_and_by_nothing_less(
    spark: SparkSession, tmp_path: Path
) -> None:
    listed, lake = example_rows(), Lake(tmp_path / "lake")
    cluster = load(None, [], environment={}).settings.cluster
    worlds = {
        cluster: listed,
        "no_assignment": [{**r, "assignment": None} for r in listed],
        "only_messages": delivered_rows(listed),
    }
    for name, made in worlds.items():
        file = tmp_path / f"{name}.jsonl"
        file.write_text("".join(json.dumps(r) + "\n" for r in made))
        ingest_files([file], lake, name, AT)
    late = AT + timedelta(hours=1)
    commits = [
        {
            "cluster": name, "source": "k", "read_at": late, "day": "2026-01-31", "at": late,
            "group": "billing", "topic": "orders", "topic_id": "t", "partition": 0,
            "committed_offset": 20,
        }
        for name in worlds
    ]  # fmt: skip
    lake.append(GROUP_OFFSETS, rows(GROUP_OFFSETS, commits))
    run(lake, spark, ALL)

    got = {
        account["cluster"]: {s: account[s] for s in STATES if account[s]}
        for account in lake.read(DELIVERY_LEDGER).to_pylist()
        if account["group"] == "billing"
    }
    assert got == {
        cluster: {"delivered": 15, "skipped_by_consumer": 5},
        "no_assignment": {"delivered": 15, "inconclusive": 5},
        "only_messages": {"delivered": 15, "inconclusive": 5},
    }
    for command in ("losses", "ledger"):
        done = CliRunner().invoke(main, [command, "--cluster", cluster, "--lake", lake.uri])
        shown = EXAMPLE.partition(f"$ acktrail {command} --lake ./lake\n")[2]
        assert re.split(r"^(?:\$|```)", shown, maxsplit=1, flags=re.MULTILINE)[0] == done.stdout
