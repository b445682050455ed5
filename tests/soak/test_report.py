"""`acktrail report` over a lake of any size: a million rows in each table in turn."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import html5lib
import pytest

from acktrail.contracts import Table
from acktrail.lake import Lake
from tests.unit.pages import lakes
from tests.unit.pages.many_rows import many_rows
from tests.unit.pages.test_report import checked

pytestmark = [
    pytest.mark.skipif(not os.environ.get("ACKTRAIL_SOAK"), reason="make soak"),
    pytest.mark.timeout(2400),
]
MILLION = 1_000_000
QUICK_S = 10
LARGE_MB = 3_000
MEASURED = """
import atexit, pathlib, sys
from acktrail.cli import main
atexit.register(lambda: sys.stderr.write(pathlib.Path("/proc/self/status").read_text()))
main()
"""
"""The command; at its end it says how much memory it had."""
MAKERS = {"ordinary": lakes.ordinary, "nulls": lakes.nulls}


@dataclass(frozen=True)
class Cost:
    """What the command took: processor time bears a busy machine, time on the clock does not."""

    cpu_s: float
    wall_s: float
    memory_mb: int


def reported(name: str, place: Path) -> Cost:
    """Run `acktrail report` over the lake at *place*, look at the page, and say what it took."""
    page = place / "report.html"
    words = ["report", "--lake", str(place), "--html", str(page), "--as-of", "2026-01-31T12:00Z"]
    began = time.monotonic()
    asked = [sys.executable, "-c", MEASURED, *words, "--since", f"{lakes.SINCE:%Y-%m-%dT%H:%MZ}"]
    told = place / "stderr.txt"
    with told.open("w") as errors, subprocess.Popen(asked, stderr=errors) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    said = told.read_text()
    assert process.returncode == 0, said
    memory_kb = int(re.findall(r"VmHWM:\s*(\d+) kB", said)[0])
    cost = Cost(used.ru_utime + used.ru_stime, time.monotonic() - began, memory_kb // 1024)
    text = page.read_text()
    print(
        f"{name:28} {cost.cpu_s:5.1f} s of processor time, {cost.wall_s:5.1f} s, "
        f"{cost.memory_mb:,} MB, page of {len(text.encode()) / 1000:,.0f} kB"
    )
    checked(text)
    parser = html5lib.HTMLParser(strict=False)
    parser.parse(text)
    assert parser.errors == []
    assert cost.cpu_s <= QUICK_S
    assert cost.memory_mb <= LARGE_MB
    return cost


@pytest.fixture(scope="module")
def some_of_all(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A lake with a few rows of each table."""
    lake = Lake(tmp_path_factory.mktemp("some"))
    for table in lakes.tables():
        lakes.write(lake, table, many_rows(table, 200, lakes.ordinary, seed=5))
    return lake


@pytest.mark.parametrize("table", lakes.tables(), ids=lambda table: table.name)
def test_a_million_rows_in_one_table(some_of_all: Lake, tmp_path: Path, table: Table) -> None:
    place = tmp_path / "lake"
    shutil.copytree(some_of_all.uri, place)
    lakes.write(Lake(place), table, many_rows(table, MILLION, lakes.ordinary, seed=7))
    reported(table.name, place)
    shutil.rmtree(place)


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("number", [1, 100_000])
def test_as_many_rows_in_every_table(tmp_path: Path, kind: str, number: int) -> None:
    lake = Lake(tmp_path)
    for table in lakes.tables():
        lakes.write(lake, table, many_rows(table, number, MAKERS[kind], seed=11))
    reported(f"all, {number:,}, {kind}", tmp_path)
