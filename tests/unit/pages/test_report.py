"""Whatever the lake holds, the report is valid, small and quick, and claims no more than it saw."""

from __future__ import annotations

import random
import re
import time
from pathlib import Path
from xml.etree import ElementTree

import html5lib
import pytest
from click.testing import CliRunner

from acktrail.answers.inquiry import Inquiry
from acktrail.cli import main
from acktrail.contracts.gold import LOSS_EVENTS, LOSS_INCIDENTS, RETRY_BUDGETS
from acktrail.lake import Lake
from acktrail.pages.delivery_report import LARGEST, VIEWS, report
from acktrail.pages.document import script
from acktrail.policy.model import Policy
from tests.unit.pages import lakes

ASKED = Inquiry(lakes.SINCE, lakes.UNTIL, lakes.UNTIL)
QUICK_S = 10
_NULL = re.compile(r"\b(None|nan|NaT|null)\b")


def checked(text: str) -> ElementTree.Element:
    """The page as a tree: well formed, with every view, each name once, and all links good."""
    assert len(text.encode()) <= LARGEST
    plain = re.sub(
        r"<(style|script)>.*?</\1>", "", text.removeprefix("<!doctype html>"), flags=re.S
    )
    tree = ElementTree.fromstring(re.sub(r"<(meta|br|input|link)\b([^>]*)>", r"<\1\2/>", plain))
    names = [found.get("id") for found in tree.iter() if found.get("id")]
    assert len(names) == len(set(names))
    assert {href.removeprefix("#") for href, _ in VIEWS} <= set(names)
    for svg in tree.iter("svg"):
        if svg.get("role") == "img":
            assert svg.find("title") is not None, ElementTree.tostring(svg)[:200]
    return tree


def filled(place: Path, number: int, make: lakes.Make, seed: int = 1) -> Lake:
    lake = Lake(place)
    chosen = random.Random(seed)
    for table in lakes.tables():
        lakes.write(lake, table, lakes.rows(table, number, make, chosen))
    return lake


MAKERS = {"ordinary": lakes.ordinary, "nulls": lakes.nulls}


@pytest.mark.parametrize("number", [1, 150])
@pytest.mark.parametrize("kind", MAKERS)
def test_any_lake_makes_a_valid_report(tmp_path: Path, kind: str, number: int) -> None:
    lake = filled(tmp_path, number, MAKERS[kind])
    began = time.monotonic()
    text = report(lake, ASKED, Policy())
    assert time.monotonic() - began < QUICK_S
    body = "".join(checked(text).find("body").itertext())
    assert not _NULL.search(body), _NULL.search(body)


def test_the_same_lake_makes_the_same_report(tmp_path: Path) -> None:
    lake = filled(tmp_path, 50, lakes.ordinary)
    assert report(lake, ASKED, Policy()) == report(Lake(tmp_path), ASKED, Policy())


def test_an_empty_lake_says_that_nothing_is_known(tmp_path: Path) -> None:
    text = report(Lake(tmp_path), ASKED, Policy())
    tree = checked(text)
    said = " ".join("".join(tree.itertext()).split())
    assert "Nothing is known about lost messages" in said
    assert "No losses" not in said
    assert "No audit in this window" in said
    problems = html5lib.HTMLParser(strict=False)
    problems.parse(text)
    assert problems.errors == []


def test_a_page_with_rows_is_valid_html(tmp_path: Path) -> None:
    parser = html5lib.HTMLParser(strict=False)
    parser.parse(report(filled(tmp_path, 20, lakes.ordinary), ASKED, Policy()))
    assert parser.errors == []


def test_many_rows_of_anything_fit_and_what_is_left_out_is_said(tmp_path: Path) -> None:
    lake = filled(tmp_path, 40, lakes.ordinary)
    chosen = random.Random(3)
    for table in (LOSS_INCIDENTS, LOSS_EVENTS, RETRY_BUDGETS):
        part = lakes.rows(table, 2_000, lakes.ordinary, chosen)
        lakes.write(lake, table, part)
    tree = checked(report(lake, ASKED, Policy()))
    said = " ".join("".join(tree.itertext()).split())
    assert re.search(r"[\d,]+ more incidents not shown", said)
    assert re.search(r"[\d,]+ less urgent chains not shown", said)


def test_long_texts_make_no_large_report(tmp_path: Path) -> None:
    lake = filled(tmp_path, 12, lakes.hostile(["x" * 20_000, "y " * 9_000]))
    checked(report(lake, ASKED, Policy()))


def test_the_script_is_small() -> None:
    assert len(script().encode()) <= 5_000


def test_the_command_writes_the_file_whole_and_says_where(tmp_path: Path) -> None:
    filled(tmp_path / "lake", 5, lakes.ordinary)
    page = tmp_path / "report.html"
    done = CliRunner().invoke(
        main,
        [
            "report",
            "--lake",
            str(tmp_path / "lake"),
            "--html",
            str(page),
            "--as-of",
            "2026-01-31T12:00Z",
        ],
    )
    assert done.exit_code == 0, done.output
    assert "Wrote" in done.stderr
    checked(page.read_text())
    assert [p.name for p in tmp_path.iterdir()] == ["lake", "report.html"] or len(
        list(tmp_path.iterdir())
    ) == 2


WRONG = {
    "window ends before it begins": ["--since", "2026-01-31T13:00Z"],
    "cannot be written": ["--html", "/nonexistent/dir/report.html"],
    "No incident is named": ["--incident", "nothere"],
}


@pytest.mark.parametrize("said", WRONG)
def test_wrong_questions_are_refused(tmp_path: Path, said: str) -> None:
    lake = str(tmp_path / "lake")
    filled(tmp_path / "lake", 2, lakes.ordinary)
    words = [
        "report",
        "--lake",
        lake,
        "--html",
        str(tmp_path / "r.html"),
        "--as-of",
        "2026-01-31T12:00Z",
    ]
    done = CliRunner().invoke(main, [*words, *WRONG[said]])
    assert done.exit_code == 2
    assert said.rsplit(maxsplit=1)[-1] in done.output
