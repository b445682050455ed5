"""The live page: read-only, its filters in the address, a token where others can reach it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from acktrail.cli.ui import hosts_of, is_loopback
from acktrail.lake import Lake
from acktrail.pages.live_pages import PAGES
from tests.unit.pages import lakes
from tests.unit.pages.served import Browser, served

TOKEN = "a-token-of-some-length"
AS_OF = lakes.UNTIL


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    made = Lake(tmp_path_factory.mktemp("live"))
    chosen = random.Random(5)
    for table in lakes.tables():
        lakes.write(made, table, lakes.rows(table, 40, lakes.ordinary, chosen))
    return made


@pytest.fixture(scope="module")
def browser(lake: Lake) -> Iterator[Browser]:
    with served(lake, AS_OF) as asked:
        yield asked


@pytest.mark.parametrize("address", PAGES)
def test_every_page_is_served_with_its_policy(browser: Browser, address: str) -> None:
    reply = browser.ask(f"{address}?last=6h")
    assert reply.status_code == 200
    assert "default-src 'none'" in reply.headers["content-security-policy"]
    assert PAGES[address][0] in reply.text
    assert "None" not in reply.text.partition("<main")[2].partition("<footer")[0]


def test_an_empty_lake_has_every_page(tmp_path: Path) -> None:
    with served(Lake(tmp_path), AS_OF) as asked:
        assert {asked.ask(address).status_code for address in PAGES} == {200}


def test_filters_go_along_to_the_next_page(browser: Browser) -> None:
    page = browser.ask("/?last=2h&client=name-3&topic=a%20b%22%3E").text
    assert 'href="/budgets?last=2h&amp;topic=a+b%22%3E&amp;client=name-3"' in page
    assert '"a b&quot;&gt;"' in page


def test_a_filter_leaves_out_the_others(browser: Browser) -> None:
    page = browser.ask("/?last=6h&client=name-3").text
    listed = page.partition('<section id="producers"')[2].partition("</section>")[0]
    assert 'href="/?client=name-3"' in listed
    assert 'href="/?client=name-4"' not in listed


WRONG = {
    "/?last=soon": 400, "/?since=never": 400, "/?since=2026-02-01&until=2026-01-01": 400,
    "/?last=9000d": 400, "/incidents?incident=nothere": 400, "/nowhere": 404, "/../etc/passwd": 404,
}  # fmt: skip


@pytest.mark.parametrize("address", WRONG)
def test_wrong_addresses_are_answered_with_what_to_write(browser: Browser, address: str) -> None:
    reply = browser.ask(address)
    assert reply.status_code == WRONG[address]
    assert "<main" in reply.text


@pytest.mark.parametrize("method", ["post", "put", "delete", "patch"])
def test_nothing_can_be_written(browser: Browser, method: str) -> None:
    assert browser.ask("/", method).status_code == 405


def test_a_page_elsewhere_cannot_ask_by_a_name_of_its_own(browser: Browser) -> None:
    assert browser.ask("/", Host="evil.example").status_code == 400


def test_a_token_is_given_once_in_the_address_and_kept_as_a_cookie(lake: Lake) -> None:
    with served(lake, AS_OF, TOKEN) as asked:
        assert asked.ask("/").status_code == 401
        assert asked.ask("/?token=wrong").status_code == 401
        assert asked.ask("/checks", Authorization=f"Bearer {TOKEN}").status_code == 200
        first = asked.ask(f"/budgets?last=6h&token={TOKEN}")
        assert first.status_code == 303
        assert first.headers["location"] == "/budgets?last=6h"
        assert "httponly" in first.headers["set-cookie"].lower()
        assert asked.ask("/budgets?last=6h").status_code == 200
        away = asked.ask(f"//evil.example/?token={TOKEN}")
        assert not away.headers.get("location", "/").startswith("//")


@pytest.mark.parametrize(
    ("host", "alone"),
    [("127.0.0.1", True), ("localhost", True), ("::1", True), ("0.0.0.0", False),
     ("10.1.2.3", False), ("::", False), ("kafka-1", False)],
)  # fmt: skip
def test_only_loopback_goes_without_a_token(host: str, alone: bool) -> None:
    assert is_loopback(host) is alone
    assert (hosts_of(host) == ["*"]) is not alone
