"""Scraping many targets: each gives its samples, or a row that says why not."""

from __future__ import annotations

import http.server
import threading
import time

import pytest

from acktrail.contracts.bronze import METRIC_SAMPLES
from acktrail.lake import Lake
from acktrail.settings.sources import ScrapeSource
from ingest.registry import SourceContext
from ingest.sources.scrape import Scraper

GOOD = b'kafka_producer_record_error_total{clientId="a"} 3\njvm_info 1\n'
NOW = 1_790_000_000.0


class Target(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/slow":
            time.sleep(1)
        if self.path == "/gone":
            self.send_error(503)
            return
        if self.path == "/closed" and self.headers.get("Authorization") != "Bearer t0ken":
            self.send_error(401)
            return
        self.send_response(200)
        length = len(GOOD) * 2 if self.path == "/cut" else len(GOOD)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        try:
            self.wfile.write(GOOD)
        except OSError:
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture(scope="module")
def address():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Target)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def scraper(*targets: str, now=lambda: NOW, **more) -> Scraper:
    settings = ScrapeSource(kind="scrape", name="s", targets=targets, timeout_s=0.5, **more)
    return Scraper(settings, SourceContext("c"), clock=now)


CASES = [
    # path       error named in the row; None: a value
    ("/metrics", None),
    ("/slow", "timed out"),
    ("/gone", "503"),
    ("/cut", "the answer broke off"),
    ("/closed", "401"),
]


@pytest.mark.parametrize(("path", "named"), CASES)
def test_a_target_answers_or_leaves_a_gap(address, tmp_path, path, named):
    source = scraper(address + path, metrics=("record-error-total",))
    source.open(Lake(tmp_path))
    (batch,) = source.poll(1)
    (row,) = batch.rows.to_pylist()
    if named is None:
        assert (row["value"], row["scrape_error"]) == (3.0, None)
        assert batch.dropped == {"not_configured": 1}
        assert source.health().notes == ()
    else:
        assert row["value"] != row["value"]
        assert named in row["scrape_error"]
        assert named in source.health().notes[0]
    assert batch.received == batch.rows.num_rows + sum(batch.dropped.values())


def test_one_bad_target_costs_no_other_and_rounds_follow_the_clock(address, tmp_path):
    clock = [NOW]
    source = scraper(address + "/gone", address + "/metrics", now=lambda: clock[0], interval_s=15)
    lake = Lake(tmp_path)
    source.open(lake)
    for seconds in (0, 5, 15):
        clock[0] = NOW + seconds
        for batch in source.poll(1):
            lake.append(batch.table, batch.rows, batch.positions)
    rows = lake.read(METRIC_SAMPLES).to_pylist()
    assert sorted((r["metric"], r["at"].timestamp() - NOW) for r in rows) == [
        ("kafka_producer_record_error_total", 0),
        ("kafka_producer_record_error_total", 15),
        ("up", 0),
        ("up", 15),
    ]
    assert lake.position(METRIC_SAMPLES, source.app_id) == (NOW + 15) * 1000
    (note,) = source.health().notes
    assert note.endswith(": HTTP 503 Service Unavailable.")


ABSENT = [
    # path, what the settings name (None: all we know), the note's beginning
    ("/metrics", None, None),
    ("/metrics", ("record-error-rate", "record-error-total"), None),
    ("/metrics", ("record-error-total", "record-retry-rate", "record-retry-total"), "No series fo"),
    ("/metrics", ("failed-produce-requests-total",), "{host}: the answer has none of the metrics"),
]


@pytest.mark.parametrize(("path", "named", "said"), ABSENT)
def test_only_what_a_person_can_mend_is_a_note(address, tmp_path, path, named, said):
    source = scraper(address + path, **({} if named is None else {"metrics": named}))
    source.open(Lake(tmp_path))
    list(source.poll(1))
    host = address.removeprefix("http://")
    assert [note.startswith((said or "").format(host=host)) for note in source.health().notes] == (
        [] if said is None else [True]
    )


def test_a_token_from_a_file_is_read_anew(address, tmp_path):
    token = tmp_path / "token"
    token.write_text("old")
    source = scraper(address + "/closed", bearer_token_file=str(token), interval_s=0.001)
    source.open(Lake(tmp_path / "lake"))
    values = []
    for text in ("old", "t0ken\n"):
        token.write_text(text)
        source._next_round = 0
        (batch,) = source.poll(1)
        values.append(batch.rows.column("scrape_error").to_pylist()[0])
    assert "401" in values[0]
    assert values[1] is None
