"""How often a live page asks the lake: bounded by numbers of reads, which a busy machine bears."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from acktrail.answers.inquiry import Inquiry
from acktrail.contracts.gold import DELIVERY_LEDGER
from acktrail.lake import Lake, rows
from acktrail.lake.store import Store
from acktrail.pages.live_pages import LIMITS, PAGES, PageRequest
from acktrail.policy.model import Policy
from tests.unit.pages import lakes

ASKED = Inquiry(lakes.SINCE, lakes.UNTIL, lakes.UNTIL)
COMMITS = 30
SCANS = 3
"""Scans of one table for a page, at most: those going on, those that ended, and their number."""
STORIES = {"/incidents": 2 * LIMITS.stories}
"""More scans for the timelines: each is of its own time."""


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A lake whose tables have logs of many commits, and no job's notes in them."""
    place = Lake(tmp_path_factory.mktemp("reads"))
    for number in range(COMMITS):
        for table in lakes.tables():
            if number == 0 or table.layer == "gold":
                chosen = random.Random(number)
                lakes.write(place, table, lakes.rows(table, 5, lakes.ordinary, chosen))
    return place


@pytest.fixture
def asked_for(monkeypatch: pytest.MonkeyPatch) -> dict[str, Counter[str]]:
    """What is asked of the store and of the tables from here on."""
    found: dict[str, Counter[str]] = {"entries": Counter(), "scans": Counter()}
    read_text, scanned, listed = Store.read_text, rows.read_batches, rows.read_rows

    def entry(self: Store, name: str) -> str:
        found["entries"][f"{self.path}/{name}"] += 1
        return read_text(self, name)

    def batches(table: Any, *given: Any) -> Any:
        found["scans"][table.name] += 1
        return scanned(table, *given)

    def whole(table: Any, *given: Any) -> Any:
        found["scans"][table.name] += 1
        return listed(table, *given)

    monkeypatch.setattr(Store, "read_text", entry)
    monkeypatch.setattr(rows, "read_batches", batches)
    monkeypatch.setattr(rows, "read_rows", whole)
    return found


def shown(lake: Lake, address: str) -> str:
    with lake.one_look():
        return str(PAGES[address][1](PageRequest(lake, ASKED, Policy())))


@pytest.mark.parametrize("address", PAGES)
def test_a_page_asks_once_for_each_table_and_scans_it_a_few_times(
    lake: Lake, asked_for: dict[str, Counter[str]], address: str
) -> None:
    first = shown(lake, address)
    for counted in asked_for.values():
        counted.clear()
    assert shown(lake, address) == first
    assert asked_for["scans"]
    most = SCANS + STORIES.get(address, 0)
    assert max(asked_for["scans"].values()) <= most, asked_for["scans"]
    assert set(asked_for["entries"].values()) == {1}
    tables_read = {entry.rpartition("/_delta_log/")[0] for entry in asked_for["entries"]}
    assert len(asked_for["entries"]) == len(tables_read), "of each table the newest entry alone"


def test_a_page_sees_one_version_and_the_next_page_the_newest(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    part = lakes.rows(DELIVERY_LEDGER, 3, lakes.ordinary, random.Random(1))
    lakes.write(lake, DELIVERY_LEDGER, part)
    with lake.one_look():
        assert lake.read(DELIVERY_LEDGER).num_rows == 3
        lakes.write(lake, DELIVERY_LEDGER, part)
        assert lake.read(DELIVERY_LEDGER).num_rows == 3
    assert lake.read(DELIVERY_LEDGER).num_rows == 6
