"""The settings that are kept show what all settings ever printed show."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

from acktrail.audit.loss_evidence import printed_settings
from acktrail.contracts.silver import CLIENT_CONFIGS
from acktrail.lake import Lake
from acktrail.lake.rows import Rows
from pipelines.gold.settings_in_force import settings_in_force
from tests.unit.expectations.gold_rows import row, write

SINCE = datetime(2026, 1, 30, 12, tzinfo=UTC)
COLUMNS = ("acks", "role")
FILE = "app/log/7"


def starts(chance: random.Random) -> list[dict[str, Any]]:
    """Starts of a few clients on a few hosts; some at the same instant, some of consumers."""
    return [
        row(
            CLIENT_CONFIGS,
            record_key=f"{chance.choice([FILE, 'app/log/8', 'app/log/9', 'app/log/6'])}/{number}",
            role=chance.choice(["producer", "producer", "consumer"]),
            client_id=chance.choice(["pay", "shop", None]),
            host=chance.choice(["a", "b", "", None]),
            started_at=SINCE + timedelta(microseconds=chance.randint(-9, 6) * 400),
            acks=str(number),
            day="2026-01-30",
        )
        for number in range(chance.randint(1, 60))
    ]


def test_what_is_in_force_is_kept(tmp_path):
    fewer = 0
    for seed in range(12):
        chance, lake = random.Random(seed), Lake(tmp_path / str(seed))
        write(lake, CLIENT_CONFIGS, *starts(chance))
        configs = Rows(CLIENT_CONFIGS, lake.at(CLIENT_CONFIGS), lake.look(CLIENT_CONFIGS))
        every = settings_in_force(configs, COLUMNS, None).to_pylist()
        kept = settings_in_force(configs, COLUMNS, SINCE, files=[FILE]).to_pylist()
        assert {r["role"] for r in every} <= {"producer"}
        assert in_force(kept) == in_force(every), seed
        pays = settings_in_force(configs, COLUMNS, SINCE, ["pay"]).to_pylist()
        ours = [r for r in every if r["client_id"] == "pay"]
        for at in (SINCE, SINCE + timedelta(milliseconds=1), SINCE + timedelta(days=1)):
            for host in ("a", "b", "c", None):
                assert said(pays, host, at) == said(ours, host, at), (seed, host, at)
        fewer += len(every) - len(kept)
    assert fewer > 20


def in_force(rows: list[dict[str, Any]]) -> set[str]:
    """Keys of starts that another follows at SINCE or later, or none, or in FILE: as `_configs`."""
    ordered = sorted(rows, key=lambda r: (r["client_id"] or "", str(r["host"]), order(r)))
    found = set()
    for _, same in groupby(ordered, key=lambda r: (r["client_id"] or "", r["host"])):
        listed = list(same)
        for one, after in zip(listed, [*listed[1:], None], strict=True):
            in_file = one["record_key"].startswith(FILE)
            if in_file or after is None or after["started_at"] >= SINCE:
                found.add(one["record_key"])
    return found


def order(one: dict[str, Any]) -> tuple[datetime, str]:
    return one["started_at"], one["record_key"]


def said(rows: list[dict[str, Any]], host: str | None, at: datetime) -> dict[str, str]:
    blocks = [
        {
            "host": r["host"], "key": r["record_key"], "settings": {"acks": r["acks"]},
            "started_ms": int(r["started_at"].timestamp() * 1000),
        }
        for r in rows
    ]  # fmt: skip
    return printed_settings(blocks, host, int(at.timestamp() * 1000))
