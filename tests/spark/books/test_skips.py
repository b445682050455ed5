"""A gap in what a group read, from a file to the answer, and what proves less than a skip."""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds
from click.testing import CliRunner

from acktrail.cli import main
from acktrail.contracts import Table
from acktrail.contracts.arrow import rows
from acktrail.contracts.bronze import AUDIT_REPORTS, CLUSTER_CONFIGS, CLUSTER_STATES, GROUP_OFFSETS
from acktrail.contracts.gold import DELIVERY_LEDGER
from acktrail.lake import Lake
from acktrail.settings import load
from ingest.messages.message_files import ingest_files
from tests.spark.books.test_books import ALL, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = (Path(__file__).parents[3] / "docs/audit.md").read_text(encoding="utf-8")
EXAMPLE = PAGE[PAGE.index("## A gap in what a group read") :]
AT = datetime(2026, 1, 31, 8, tzinfo=UTC)
REST = AT + timedelta(minutes=1)
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


def answers(lake: Lake, names: Iterable[str]) -> None:
    """What the cluster answered after the first range was reported, and after all was."""
    made: dict[Table, list[dict[str, Any]]] = {t: [] for t in (CLUSTER_STATES, GROUP_OFFSETS)}
    made[CLUSTER_CONFIGS] = []
    for name in names:
        place = {"cluster": name, "source": "k", "read_at": REST, "day": "2026-01-31"}
        topic = place | {"topic": "orders", "topic_id": "t", "partition": 0}
        before = datetime.fromtimestamp(0, UTC)  # when nothing had been received
        for after, second, end in ((before, -9, 0), (AT, 1, 10), (AT, 3, 18), (REST, 61, 20)):
            asked = {"at": AT + timedelta(seconds=second), "after_at": after, "leader_epoch": 0}
            made[CLUSTER_STATES].append(
                topic | asked | {"earliest_offset": 0, "latest_offset": end}
            )
        made[GROUP_OFFSETS].append(
            topic | {"at": AT + timedelta(seconds=2), "after_at": AT, "group": "billing"}
            | {"committed_offset": 18, "members": 1}
        )  # fmt: skip
        made[CLUSTER_CONFIGS].append(
            place | {"entity_kind": "topic", "entity": "orders", "at": AT - timedelta(hours=2)}
            | {"settings": {"cleanup.policy": "delete"}}
        )  # fmt: skip
    for table, listed in made.items():
        lake.append(table, rows(table, listed))


def reported_live(lake: Lake, cluster: str) -> None:
    """The reports of *cluster* as an agent receives them that follows the member."""
    listed = lake.read(AUDIT_REPORTS, where=ds.field("cluster") == cluster).to_pylist()
    for at, first in ((AT, True), (REST, False)):
        for assignment, name in ((1, "live"), (None, "live_no_assignment")):
            made = [
                {**r, "cluster": name, "read_at": at}
                | ({"assignment": assignment} if r["tier"] == "consumed" else {})
                for r in listed
                if (r["tier"] == "consumed" and r["first_offset"] == 0) is first
            ]
            lake.append(AUDIT_REPORTS, rows(AUDIT_REPORTS, made))


def test_a_skip_is_proven_by_reports_and_answers_and_by_nothing_less(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake, listed = Lake(tmp_path / "lake"), example_rows()
    cluster = load(None, [], environment={}).settings.cluster
    worlds = {cluster: listed, "only_messages": delivered_rows(listed)}
    for name, made in worlds.items():
        file = tmp_path / f"{name}.jsonl"
        file.write_text("".join(json.dumps(r) + "\n" for r in made))
        ingest_files([file], lake, name, AT)
    reported_live(lake, cluster)
    answers(lake, ("only_messages", "live", "live_no_assignment"))
    run(lake, spark, ALL)
    got = {
        account["cluster"]: {s: account[s] for s in STATES if account[s]}
        for account in lake.read(DELIVERY_LEDGER).to_pylist()
        if account["group"] == "billing"
    }
    unproven = {"delivered": 15, "inconclusive": 5}
    assert got == {
        cluster: unproven,
        "only_messages": unproven,
        "live": {"delivered": 15, "skipped_by_consumer": 5},
        "live_no_assignment": unproven,
    }
    done = CliRunner().invoke(main, ["ledger", "--cluster", cluster, "--lake", lake.uri])
    shown = EXAMPLE.partition("$ acktrail ledger --lake ./lake\n")[2]
    assert done.stdout == re.split(r"^(?:\$|```)", shown, maxsplit=1, flags=re.MULTILINE)[0]
