"""The outbox: written down first, told at least once, marked once taken; and the webhook."""

from __future__ import annotations

import http.server
import json
import threading
from datetime import timedelta

import pytest

from acktrail.alerts.alert import trial
from acktrail.errors import AlertUndelivered
from acktrail.lake import Lake
from acktrail.settings.alerts import AlertSettings
from expectations.notify import receivers
from expectations.notify.alertmanager import payload
from expectations.notify.post import Patience, shown
from expectations.notify.webhook import Webhook, signature
from expectations.outbox import Outbox
from tests.unit.alerts.test_lifecycle import T0, finding

INTERVAL = timedelta(minutes=5)


class Pager:
    """A receiver that remembers what it was told, and may refuse."""

    def __init__(self, name="pager", forgets=False):
        self.name, self.forgets, self.refuses, self.told = name, forgets, False, []

    def send(self, alerts, _now):
        if self.refuses:
            raise AlertUndelivered("is down")
        self.told.extend(a.key.partition("-")[2] + " " + a.status for a in alerts)


@pytest.fixture
def outbox(tmp_path):
    return Outbox(Lake(tmp_path / "lake"))


def step(outbox, pagers, *findings, minute=0):
    now = T0 + timedelta(minutes=minute)
    outbox.record(findings, {"a"}, now)
    return outbox.deliver(pagers, now, INTERVAL)


def test_each_change_is_told_once_to_who_remembers_and_again_to_who_forgets(outbox):
    remembers, forgets = Pager("one"), Pager("two", forgets=True)
    for minute, found in enumerate([[finding()], [finding()], [], [], []]):
        step(outbox, [remembers, forgets], *found, minute=minute * 10)
    assert remembers.told == ["1 open", "2 resolved"]
    assert forgets.told == ["1 open", "1 open", "2 resolved", "2 resolved"]


def test_what_was_refused_stays_and_is_told_by_the_next_run(outbox):
    pager, other = Pager(), Pager("other")
    pager.refuses = True
    delivery = step(outbox, [pager, other], finding())
    assert (delivery.delivered, delivery.waiting) == (1, 1)
    with pytest.raises(AlertUndelivered, match="pager: is down"):
        delivery.require()
    pager.refuses = False
    step(outbox, [pager, other], finding())
    assert pager.told == other.told == ["1 open"]


def test_a_receiver_added_later_hears_what_is_open_and_nothing_of_old(outbox):
    step(outbox, [Pager()], finding("old"))
    step(outbox, [Pager()], finding("new"))
    late = Pager("late")
    step(outbox, [late], finding("new"), minute=60 * 24 * 8)
    assert late.told == ["1 open"]


def test_two_commands_at_once_open_one_alert(outbox):
    """Both read an empty outbox; the second to write must decide anew."""
    real, raced = outbox.live, []

    def overtaken(*asked):
        seen = real(*asked)
        if not raced:
            raced.append(1)
            Outbox(outbox._lake).record([finding()], {"a"}, T0)
        return seen

    outbox.live = overtaken
    assert outbox.record([finding()], {"a"}, T0) == []
    assert [a.number for a in outbox.alerts().values()] == [1]


class Hook(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.seen.append((dict(self.headers), body))
        status = self.server.answers.pop(0) if self.server.answers else 200
        self.send_response(status)
        self.send_header("Retry-After", "0")
        self.send_header("Location", "http://127.0.0.1:1/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_args):
        pass


@pytest.fixture
def hook():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    server.seen, server.answers = [], []
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def address(server):
    return f"http://127.0.0.1:{server.server_address[1]}/hook?token=hidden"


def test_a_webhook_is_one_signed_request_per_owner(hook, outbox):
    webhook = Webhook(address(hook), Patience(5, 5), "secret")
    found = [finding("a", owner="x"), finding("b", owner="y"), finding("c", owner="x")]
    step(outbox, [webhook], *found)
    told = [(json.loads(body)["owner"], len(json.loads(body)["alerts"])) for _, body in hook.seen]
    assert told == [("x", 2), ("y", 1)]
    for headers, body in hook.seen:
        at = int(headers["Acktrail-Signature"].partition("=")[2].partition(",")[0])
        assert headers["Acktrail-Signature"] == signature(body, "secret", at)
        assert headers["Acktrail-Signature"] != signature(body, "other", at)


ANSWERS = {
    # answers -> requests made, taken
    "at once": ([], 1, True),
    "after too many requests": ([429, 429], 3, True),
    "after an error": ([500, 503], 3, True),
    "never, it is wrong": ([400], 1, False),
    "never, it moved": ([302], 1, False),
    "never, it is not allowed": ([401], 1, False),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_what_may_pass_is_tried_again_and_what_may_not_is_not(hook, case):
    answers, requests, taken = ANSWERS[case]
    hook.answers.extend(answers)
    webhook = Webhook(address(hook), Patience(5, 5))
    if taken:
        webhook.send(trial(T0)[:1], T0)
    else:
        with pytest.raises(AlertUndelivered) as raised:
            webhook.send(trial(T0)[:1], T0)
        assert "hidden" not in str(raised.value)
    assert len(hook.seen) == requests


def test_nobody_there_is_undelivered():
    with pytest.raises(AlertUndelivered, match="did not answer"):
        Webhook("http://127.0.0.1:9/", Patience(1, 0)).send(trial(T0)[:1], T0)


def test_an_address_is_shown_without_its_secrets():
    assert shown("https://user:pass@hooks.example.com:444/T0/key?x=y") == (
        "https://hooks.example.com:444"
    )


def test_an_open_alert_ends_ahead_and_a_resolved_one_now():
    opened, resolved = trial(T0)
    later = T0 + timedelta(minutes=1)
    assert payload(opened, later, INTERVAL)["endsAt"] == (later + 3 * INTERVAL).isoformat()
    assert payload(resolved, later, INTERVAL)["endsAt"] == T0.isoformat()
    assert payload(resolved, later, INTERVAL)["startsAt"] < T0.isoformat()


def test_receivers_come_from_the_settings():
    none = AlertSettings()
    both = AlertSettings.model_validate(
        {"alertmanager_urls": "http://a:9093, http://b:9093", "webhook_url": "https://c"}
    )
    assert receivers(none) == []
    assert [r.name for r in receivers(both)] == ["alertmanager", "webhook"]
    assert both.alertmanager_urls == ("http://a:9093", "http://b:9093")
