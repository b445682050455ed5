"""Report and live page in a real browser: on the recorded incident, and on hostile texts."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from acktrail.answers.inquiry import Inquiry
from acktrail.answers.losses import Wanted, incidents
from acktrail.contracts.arrow import rows
from acktrail.contracts.gold import RETRY_BUDGETS
from acktrail.lake import Lake
from acktrail.pages.delivery_report import VIEWS, report
from acktrail.pages.live_pages import PAGES
from acktrail.policy.model import Policy
from acktrail.window import hour_of
from expectations.paging import keep_results
from expectations.policy_suites import policy_and_suites
from expectations.validate import Asked, validate
from tests.laws.incident import AS_OF
from tests.unit.pages import lakes
from tests.unit.pages.hostile_texts import HOSTILE
from tests.unit.pages.served import served

ASKED = Inquiry(AS_OF - timedelta(minutes=5), AS_OF, AS_OF)
SCREENS = [(width, scheme) for width in (1280, 390) for scheme in ("light", "dark")]


@pytest.fixture(scope="module")
def incident_lake(whole_lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """The recorded incident after a run and a check."""
    place = tmp_path_factory.mktemp("pages") / "lake"
    shutil.copytree(whole_lake.uri, place)
    lake = Lake(place)
    decided, suites = policy_and_suites(None)
    keep_results(lake, validate(suites, lake, Asked(AS_OF, decided, "docs/runbooks")), AS_OF)
    return lake


@pytest.fixture(scope="module")
def incident_id(incident_lake: Lake) -> str:
    """The name of the loss of acknowledged messages."""
    found = incidents(incident_lake, Wanted(topic="payments"))
    return str(found[0]["incident"])


@pytest.fixture(scope="module")
def page_file(incident_lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Path:
    page = tmp_path_factory.mktemp("report") / "report.html"
    page.write_text(report(incident_lake, ASKED, Policy()))
    return page


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as driver:
        program = shutil.which("chromium")
        assert program, "run scripts/servers.sh"
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


def opened(browser: Browser, address: str, width: int = 1280, scheme: str = "light") -> Page:
    """The page at *address*; its errors and requests are listed on it."""
    page = browser.new_page(
        viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
    )
    page.set_default_timeout(30_000)
    said: list[str] = []
    page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: said.append(f"error: {error}"))
    page.on("dialog", lambda dialog: (said.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda request: said.append(f"request: {request.url}"))
    page.goto(address)
    said.remove(f"request: {page.url.partition('#')[0]}")
    page.said = said  # type: ignore[attr-defined]
    return page


LAYOUT = """() => {
  const wrong = [];
  const seen = e => e.getClientRects().length && getComputedStyle(e).visibility !== 'hidden';
  const name = e =>
    e.tagName + '.' + (e.className.baseVal ?? e.className) + ' ' + e.textContent.slice(0, 60);
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width) wrong.push('the page is wider than the screen');
  const hidden = '.quiet, .skip, thead, title, desc, .defs, .cross';
  for (const e of document.querySelectorAll('body *')) {
    if (!seen(e) || e.closest(hidden) || e.closest('svg') || e.closest('.table')) continue;
    const box = e.getBoundingClientRect();
    if (box.right > width + 1 || box.left < -1) wrong.push('outside the screen: ' + name(e));
    const hides = e.clientWidth && getComputedStyle(e).overflowX === 'hidden';
    if (hides && e.scrollWidth > e.clientWidth + 1)
      wrong.push('cut: ' + name(e));
  }
  const apart = (list, why) => {
    const boxes = list.filter(seen).map(e => [e, e.getBoundingClientRect()]);
    for (let i = 0; i < boxes.length; i++) for (let j = i + 1; j < boxes.length; j++) {
      const [a, b] = [boxes[i][1], boxes[j][1]];
      const x = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const y = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (x > 1 && y > 1) wrong.push(why + ': ' + name(boxes[i][0]) + ' | ' + name(boxes[j][0]));
    }
  };
  apart([...document.querySelectorAll('main > section')], 'sections overlap');
  apart([...document.querySelectorAll('.tile')], 'tiles overlap');
  for (const axis of document.querySelectorAll('svg.axis')) {
    apart([...axis.querySelectorAll('text')], 'labels overlap');
    const box = axis.getBoundingClientRect();
    for (const t of axis.querySelectorAll('text')) {
      const r = t.getBoundingClientRect();
      if (seen(t) && (r.left < box.left - 2 || r.right > box.right + 2))
        wrong.push('label cut: ' + name(t));
    }
  }
  for (const whole of ['.row', 'tr', '.chart'])
    for (const e of document.querySelectorAll(whole))
      if (seen(e)) apart([...e.children], 'parts of ' + whole + ' overlap');
  return wrong.slice(0, 20);
}"""


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_the_report_fits_every_screen(
    chromium: Browser, page_file: Path, width: int, scheme: str
) -> None:
    page = opened(chromium, page_file.as_uri(), width, scheme)
    assert page.evaluate(LAYOUT) == []
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
    assert page.evaluate(LAYOUT) == []
    assert page.said == []
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(20, 24, 28)") is (scheme == "dark")
    page.close()


CONTENT = {
    "verdict": ["176 acknowledged messages are gone", "279 more messages were not stored"],
    "incidents": ["payments-api", "acks=all with min.insync.replicas=2", "broker 2", "★"],
    "rates": ["Failed for good", "refunds-api", "Failed produce requests", "no evidence"],
    "budgets": ["shipments-api", "critical", "orders-api"],
    "ledger": ["9,418 of 9,873", "-176", "-279", "residual"],
    "offsets": ["payments-0", "176 lost"],
    "producers": ["refunds-api", "payments-api", "clicks-tracker"],
    "groups": ["billing", "analytics", "at the end"],
    "coverage": ["audit", "metrics", "cluster", "logs"],
    "checks": ["no_loss_after_ack", "retry_budget_left", "failed"],
}


def test_every_view_has_content_in_order(chromium: Browser, page_file: Path) -> None:
    page = opened(chromium, page_file.as_uri())
    order = page.evaluate("[...document.querySelectorAll('main > section')].map(s => '#' + s.id)")
    assert [name for name in order if name in dict(VIEWS)] == [name for name, _ in VIEWS]
    for name, words in CONTENT.items():
        said = page.inner_text(f"#{name}")
        assert [w for w in words if w not in said] == [], name
    assert "Not seen\n0" not in page.inner_text("#verdict"), "brokers were down, clients had ended"
    drawn = page.evaluate("document.querySelectorAll('svg[role=img]').length")
    assert drawn == page.evaluate(
        "document.querySelectorAll('svg[role=img] > title:first-child').length"
    )
    page.close()


def test_it_works_without_scripts_with_a_keyboard_and_by_links(
    chromium: Browser, page_file: Path, incident_id: str
) -> None:
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{page_file.as_uri()}#incident-{incident_id}")
    page.keyboard.press("Tab")
    assert "176 acknowledged" in page.inner_text("#verdict")
    context.close()
    page = opened(chromium, f"{page_file.as_uri()}#client-payments-api")
    target = page.locator(":target")
    assert "payments-api" in target.inner_text()
    page.goto(page_file.as_uri())
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    broken = page.evaluate(
        "[...document.querySelectorAll('a[href^=\"#\"]')].map(a => a.getAttribute('href').slice(1))"
        ".filter(id => !document.getElementById(id))"
    )
    assert [name for name in broken if not name.startswith("group-")] == []
    page.close()


def test_it_prints_on_paper(chromium: Browser, page_file: Path) -> None:
    page = opened(chromium, page_file.as_uri())
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 700, "height": 1000})
    assert page.evaluate(LAYOUT) == []
    assert not page.is_visible("nav")
    printed = page.pdf(format="A4")
    assert printed.startswith(b"%PDF")
    assert 3 <= len(re.findall(rb"/Type /Page\b", printed)) <= 15
    page.close()


@pytest.mark.parametrize("width", [1280, 390])
def test_the_live_page_fits_and_asks_nobody_else(
    chromium: Browser, incident_lake: Lake, incident_id: str, width: int
) -> None:
    with served(incident_lake, AS_OF) as live:
        for address in [*PAGES, "/?client=payments-api", f"/incidents?incident={incident_id}"]:
            mark = "&" if "?" in address else "?"
            page = opened(chromium, f"{live.address}{address}{mark}last=10m", width)
            assert page.evaluate(LAYOUT) == [], address
            assert page.said == [], address
            page.close()


def test_budgets_count_down_on_the_live_page(chromium: Browser, tmp_path: Path) -> None:
    now = datetime.now(UTC)
    lake = Lake(tmp_path)
    row = lakes.rows(RETRY_BUDGETS, 1, lakes.nulls, random.Random(1)).to_pylist()[0] | {
        "client_id": "pay", "opened_at": now, "last_at": now, "quiet_at": now + timedelta(hours=1),
        "exhausts_at_earliest": now + timedelta(seconds=100), "opened_hour": hour_of(now),
        "exhausts_at_latest": now + timedelta(seconds=110), "exhausted_by": "time",
    }  # fmt: skip
    lakes.write(lake, RETRY_BUDGETS, rows(RETRY_BUDGETS, [row]))
    with served(lake, None) as live:
        page = opened(chromium, f"{live.address}/budgets")
        left = page.locator("[data-until]").first
        before = left.inner_text()
        page.wait_for_timeout(2_100)
        assert before != left.inner_text()
        assert before.endswith(" s")
        assert page.locator('meta[http-equiv="refresh"]').count() == 1
        page.close()


def test_hostile_texts_stay_texts(chromium: Browser, tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    chosen = random.Random(7)
    assert len(HOSTILE) >= 100
    for table in lakes.tables():
        data = lakes.rows(table, 2 * len(HOSTILE), lakes.hostile(HOSTILE), chosen)
        lakes.write(lake, table, data)
    asked = Inquiry(lakes.SINCE, lakes.UNTIL, lakes.UNTIL)
    file = tmp_path / "report.html"
    file.write_text(report(lake, asked, Policy()))
    page = opened(chromium, file.as_uri())
    _runs_nothing(page)
    with served(lake, lakes.UNTIL) as live:
        for address in [*PAGES, "/?client=%3Cscript%3Ealert(1)%3C/script%3E&last=12h"]:
            _runs_nothing(opened(chromium, f"{live.address}{address}"))


def _runs_nothing(page: Page) -> None:
    """No script ran, nothing was asked, and nothing but our own elements and addresses is there."""
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
    page.wait_for_timeout(50)
    found: dict[str, Any] = page.evaluate("""() => ({
      ran: window.hostile === undefined ? [] : [window.hostile],
      tags: [...document.querySelectorAll(
          'iframe, img, object, embed, base, audio, video, math, marquee')]
        .map(e => e.outerHTML),
      scripts: document.querySelectorAll('script').length,
      handlers: [...document.querySelectorAll('*')].flatMap(e => [...e.attributes])
        .filter(a => a.name.startsWith('on') || a.name === 'style').map(a => a.name),
      links: [...document.querySelectorAll('a')].map(a => a.getAttribute('href'))
        .filter(h => !/^[#/][^/]?/.test(h) || h.startsWith('//')),
    })""")
    assert found == {"ran": [], "tags": [], "scripts": 1, "handlers": [], "links": []}
    assert page.said == []
    page.close()
