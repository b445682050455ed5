"""Slack, Teams and PagerDuty on the outbox, against a server that knows their documented payloads.

The server refuses what the documents do not allow, keeps messages as the real one would, and is
told to answer 429 or 500 now and then.
"""

from __future__ import annotations

import http.server
import json
import re
import threading
import urllib.error
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acktrail.alerts.lifecycle import NothingKnown, acknowledged
from acktrail.contracts.vocabulary import Grade
from acktrail.errors import AlertUndelivered
from acktrail.lake import Lake
from acktrail.settings.alerts import AlertSettings
from expectations.messages import gist_of
from expectations.notify import messengers
from expectations.notify.pagerduty import PagerDuty
from expectations.notify.post import Patience
from expectations.notify.slack import Slack
from expectations.notify.teams import Teams
from expectations.outbox import Outbox
from tests.unit.alerts.test_lifecycle import T0, finding, loss

HASTY = Patience(5, 0)
DAY = timedelta(days=1)


class Chat:
    """What the three services hold, and what they were sent."""

    def __init__(self) -> None:
        self.messages: dict[str, dict] = {}  # Slack: channel/ts -> message
        self.cards: list[dict] = []  # Teams
        self.incidents: dict[str, list[dict]] = {}  # PagerDuty: dedup_key -> events
        self.answers: list[int] = []
        self.refused: list[str] = []

    def slack(self, path, headers, body):
        require(headers["Authorization"] == "Bearer xoxb-token", "token")
        require(headers["Content-Type"] == "application/json; charset=utf-8", "content type")
        require(0 < len(body["text"]) <= 4000, "text")
        require(0 < len(body["blocks"]) <= 50, "blocks")
        for block in body["blocks"]:
            require(block["type"] in ("header", "section", "context"), "type of block")
            if block["type"] == "header":
                require(block["text"]["type"] == "plain_text", "header is plain")
                require(0 < len(block["text"]["text"]) <= 150, "length of header")
            if block["type"] == "section":
                require(block["text"]["type"] == "mrkdwn", "mrkdwn")
                require(0 < len(block["text"]["text"]) <= 3000, "length of section")
                require(not re.search(r"<(?!http)", block["text"]["text"]), "escaped")
        if path.endswith("/chat.postMessage"):
            name = f"C{body['channel']}/{len(self.messages)}.1"
            self.messages[name] = body
            channel, _, ts = name.partition("/")
            return 200, {"ok": True, "channel": channel, "ts": ts}
        require(path.endswith("/chat.update"), "method")
        name = f"{body['channel']}/{body['ts']}"
        if name not in self.messages:
            return 200, {"ok": False, "error": "message_not_found"}
        self.messages[name] = body
        return 200, {"ok": True, "channel": body["channel"], "ts": body["ts"]}

    def teams(self, _path, _headers, body):
        require(body["type"] == "message", "type")
        (attachment,) = body["attachments"]
        require(
            attachment["contentType"] == "application/vnd.microsoft.card.adaptive", "content type"
        )
        card = attachment["content"]
        require((card["type"], card["version"]) == ("AdaptiveCard", "1.4"), "card")
        require(card["$schema"].startswith("http://adaptivecards.io/schemas/"), "schema")
        require(all(b["type"] in ("TextBlock", "FactSet") for b in card["body"]), "body")
        require(len(json.dumps(body)) <= 28 * 1024, "28 KB")
        self.cards.append(card)
        return 202, {}

    def pagerduty(self, path, _headers, body):
        require(path == "/v2/enqueue", "path")
        require(body["routing_key"] == "k" * 32, "routing key")
        require(body["event_action"] in ("trigger", "resolve"), "action")
        require(0 < len(body["dedup_key"]) <= 255, "dedup key")
        if body["event_action"] == "trigger":
            payload = body["payload"]
            require(0 < len(payload["summary"]) <= 1024, "summary")
            require(bool(payload["source"]), "source")
            require(payload["severity"] in ("critical", "error", "warning", "info"), "severity")
        self.incidents.setdefault(body["dedup_key"], []).append(body)
        return 202, {"status": "success", "dedup_key": body["dedup_key"]}


class Refused(Exception):
    pass


def require(holds: bool, what: str) -> None:
    if not holds:
        raise Refused(what)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        chat: Chat = self.server.chat
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, answer = chat.answers.pop(0) if chat.answers else 0, {}
        if not status:
            service = self.path.split("/")[1]
            which = {"api": chat.slack, "workflow": chat.teams, "v2": chat.pagerduty}[service]
            try:
                status, answer = which(self.path, self.headers, body)
            except (Refused, KeyError) as error:
                chat.refused.append(f"{service}: {error!r}")
                status = 400
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_args):
        pass


@pytest.fixture(scope="module")
def server():
    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=made.serve_forever, args=(0.02,))
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


@pytest.fixture
def chat(server):
    server.chat = Chat()
    return server.chat


def three(server):
    at = f"http://127.0.0.1:{server.server_address[1]}"
    return [
        Slack("xoxb-token", "ops", HASTY, {"pay": "payments"}, f"{at}/api"),
        Teams(f"{at}/workflow/x?sig=secret", HASTY),
        PagerDuty("k" * 32, HASTY, f"{at}/v2/enqueue"),
    ]


class Rounds:
    def __init__(self, tmp_path, server):
        self.outbox = Outbox(Lake(tmp_path))
        self.services = three(server)
        self.now = T0

    def ask(self, *findings, minutes=1.0):
        self.now += timedelta(minutes=minutes)
        self.outbox.record(findings, {"a", "b"}, self.now)
        return self.tell()

    def tell(self):
        return self.outbox.tell_all([], self.services, self.now, DAY, DAY)


def burning(topic="t", **facts):
    return finding(topic, state="retries_running_out", cause="NOT_ENOUGH_REPLICAS", **facts)


def test_a_page_is_one_message_that_is_changed_in_place_until_it_is_over(tmp_path, server, chat):
    rounds = Rounds(tmp_path, server)
    for known in ([burning()], [burning()], [burning(), burning("u")], [burning(), burning("u")]):
        rounds.ask(*known).require()
    ((name, message),) = chat.messages.items()
    assert name.startswith("Cops/")
    assert "AcktrailBrokers in east" in message["text"]
    assert "topics" not in message["text"].lower()
    assert "Topics: t, u" in json.dumps(message["blocks"])
    (events,) = chat.incidents.values()
    assert [e["event_action"] for e in events] == ["trigger", "trigger"], "opened, and one change"
    assert len(chat.cards) == 1, "a card cannot be changed"
    rounds.ask().require()
    ((name, message),) = chat.messages.items()
    assert message["text"].startswith("🟢 over:")
    (events,) = chat.incidents.values()
    assert [e["event_action"] for e in events] == ["trigger", "trigger", "resolve"]
    assert {e["dedup_key"] for e in events} == {next(iter(rounds.outbox.alerts()))}
    assert [c["body"][0]["text"] for c in chat.cards] == [
        "AcktrailBrokers",
        "Over: AcktrailBrokers",
    ]
    rounds.ask().require()
    assert (len(chat.cards), len(chat.messages)) == (2, 1)
    assert chat.refused == []


def test_each_owner_has_a_message_in_its_channel(tmp_path, server, chat):
    rounds = Rounds(tmp_path, server)
    rounds.ask(burning(owner="pay"), burning("u", owner="other")).require()
    assert sorted(name.partition("/")[0] for name in chat.messages) == ["Cops", "Cpayments"]
    assert sorted(e[0]["payload"]["group"] for e in chat.incidents.values()) == ["other", "pay"]


STATUS = st.sampled_from([0, 0, 0, 429, 500, 503])


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(answers=st.lists(STATUS, max_size=25))
def test_what_is_refused_for_now_is_told_later_and_nothing_is_doubled(
    tmp_path_factory, server, answers
):
    server.chat = chat = Chat()
    chat.answers = list(answers)
    rounds = Rounds(tmp_path_factory.mktemp("outbox"), server)
    rounds.services[0] = Slack("xoxb-token", "ops", HASTY, {}, rounds.services[0].url)
    for known in ([burning()], [burning(), loss("u", start=1, end=2)], [burning("x", owner="z")]):
        rounds.ask(*known, minutes=2)
    chat.answers.clear()
    rounds.ask(burning("x", owner="z"), minutes=2).require()
    rounds.ask(minutes=2).require()
    assert len(chat.messages) == 2, "one for each page"
    assert all(m["text"].startswith("🟢") for m in chat.messages.values())
    assert all(e[-1]["event_action"] == "resolve" for e in chat.incidents.values())
    over = [c["body"][0]["text"] for c in chat.cards].count("Over: AcktrailBrokers")
    assert (len(chat.incidents), over) == (2, 2)
    assert chat.refused == []


def test_tickets_wait_for_the_digest_and_wake_nobody(tmp_path, server, chat):
    rounds = Rounds(tmp_path, server)
    tickets = [finding(topic, grade=Grade.WARN) for topic in ("a", "b")]
    rounds.ask(*tickets).require()
    assert [m["text"] for m in chat.messages.values()] == ["2 tickets of acktrail for me"]
    more = finding("c", grade=Grade.WARN)
    rounds.ask(*tickets, more, minutes=60).require()
    assert len(chat.messages) == 1, "the next digest is due in a day"
    rounds.ask(more, minutes=24 * 60).require()
    _, second = chat.messages.values()
    assert second["text"] == "3 tickets of acktrail for me"
    assert json.dumps(second["blocks"]).count("(over)") == 2
    assert len(chat.cards) == 2
    assert chat.incidents == {}


def test_a_page_that_opens_again_is_a_new_message(tmp_path, server, chat):
    """A change of the one that says it is over rings for nobody."""
    rounds = Rounds(tmp_path, server)
    rounds.ask(burning()).require()
    rounds.ask().require()
    rounds.ask(burning()).require()
    (alert,) = rounds.outbox.alerts().values()
    assert alert.number == 3
    first, second = (m["text"] for m in chat.messages.values())
    assert first.startswith("🟢")
    assert second.startswith("🔴")
    rounds.ask().require()
    assert all(m["text"].startswith("🟢") for m in chat.messages.values())
    assert len(chat.messages) == 2


def test_a_message_that_somebody_deleted_is_posted_again(tmp_path, server, chat):
    rounds = Rounds(tmp_path, server)
    rounds.ask(burning()).require()
    chat.messages.clear()
    rounds.ask().require()
    assert len(chat.messages) == 1


def test_a_page_that_was_over_long_ago_and_never_told_is_left(tmp_path, server, chat):
    rounds = Rounds(tmp_path, server)
    services, rounds.services = rounds.services, []
    rounds.ask(burning())
    rounds.ask()
    rounds.now += timedelta(hours=2)
    rounds.services = services
    rounds.tell().require()
    assert (chat.messages, chat.cards, chat.incidents) == ({}, [], {})


def test_an_acknowledgement_is_told(tmp_path, server, chat):
    rounds = Rounds(tmp_path, server)
    rounds.ask(loss(start=0, end=1), burning()).require()
    (alert,) = rounds.outbox.alerts().values()
    seen = acknowledged(alert, "maria", "sent again", rounds.now, NothingKnown())
    assert gist_of(seen) != gist_of(alert)


def test_slack_says_no_in_the_body(tmp_path, server, chat):
    chat.slack = lambda *_asked: (200, {"ok": False, "error": "channel_not_found"})
    rounds = Rounds(tmp_path, server)
    delivery = rounds.ask(burning())
    with pytest.raises(AlertUndelivered, match=r"slack: .* refused: channel_not_found"):
        delivery.require()
    assert len(chat.cards) == 1, "the others are told"


@pytest.mark.parametrize("answer", [[], "ok", None])
def test_an_answer_of_another_shape_stops_nobody(tmp_path, server, chat, answer):
    chat.slack = lambda *_asked: (200, answer)
    delivery = Rounds(tmp_path, server).ask(burning())
    with pytest.raises(AlertUndelivered, match=r"slack: .* answered no JSON object"):
        delivery.require()
    assert len(chat.cards) == 1, "the others are told"


def test_a_refusal_whose_text_breaks_off_is_undelivered(tmp_path, server, chat, monkeypatch):
    def broken(*_: object) -> bytes:
        raise ConnectionResetError

    chat.slack = lambda *_asked: (403, {})
    monkeypatch.setattr(urllib.error.HTTPError, "read", broken, raising=False)
    with pytest.raises(AlertUndelivered, match=r"slack: .* answered 403"):
        Rounds(tmp_path, server).ask(burning()).require()


def test_long_texts_and_signs_of_markup_fit(tmp_path, server, chat):
    rounds = Rounds(tmp_path, server)
    many = [
        burning(f"<topic & {n}>", because="so <it> was & " * 300, clients=("c" * 200,))
        for n in range(40)
    ]
    rounds.ask(*many).require()
    assert chat.refused == []


def test_messengers_come_from_the_settings():
    assert messengers(AlertSettings()) == []
    given = {
        "slack_token": "t",
        "slack_channel": "c",
        "teams_url": "https://w",
        "pagerduty_key": "k",
    }
    assert [m.name for m in messengers(AlertSettings.model_validate(given))] == [
        "slack", "teams", "pagerduty",
    ]  # fmt: skip
    with pytest.raises(ValueError, match="belong together"):
        AlertSettings.model_validate({"slack_token": "t"})
    shown = repr(AlertSettings.model_validate(given))
    assert "https://w" not in shown
