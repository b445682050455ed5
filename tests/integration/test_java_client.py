"""The Java client against real brokers, with real clients of every version.

In an ordinary run a chosen part; `make soak PART=java` runs every case with every version.
"""

from __future__ import annotations

import itertools
import os
import time
from collections import Counter

import pytest

from acktrail.audit.wire import BLOCK_BITS, decode_runs
from acktrail.contracts.vocabulary import Tier
from lab.steps import wait_until
from tests.integration import java_client as kit

SOAK = "ACKTRAIL_SOAK" in os.environ
_numbers = itertools.count(1)
WAYS = ("interceptor", "wrapper")
CHOSEN = {(kit.OLDEST, "interceptor"), (kit.NEWEST, "interceptor"), (kit.OLDEST, "wrapper")}


def versions(*chosen: str):
    """All of them in a soak, the *chosen* ones otherwise."""
    return pytest.mark.parametrize("version", kit.VERSIONS if SOAK else chosen)


def names() -> tuple[str, str]:
    """A topic of an application, and one for its reports."""
    number = next(_numbers)
    return f"java-{number}", f"java-{number}-reports"


@pytest.fixture
def topics(nodes) -> tuple[str, str]:
    application, reports = names()
    kit.create_topics(nodes.direct, application, reports)
    return application, reports


def ours(books: dict[str, kit.Books]) -> kit.Books:
    (only,) = books.values()
    return only


def agrees(books: kit.Books, told: kit.Told, *, exact: bool) -> None:
    """The books have what the application was told, no more and no less."""
    handed_over = set(told.acks) | set(told.errors)
    assert books.sent == handed_over
    assert set(books.errors) == set(told.errors)
    if exact:
        assert books.acked == told.acks
    else:
        assert not books.acked
        assert books.acked_offsets == Counter(told.acks.values())
        assert books.ack_count == len(told.acks)
    assert books.last.closed
    assert books.last.records == len(handed_over)
    assert books.last.dropped == {}


# -- what is reported -----------------------------------------------------------------------------

EVERY = [
    (v, w) for v in kit.VERSIONS for w in WAYS if SOAK or (v, w) in CHOSEN or v == kit.EXACT[0]
]


@pytest.mark.parametrize(("version", "way"), EVERY)
def test_every_message_is_accounted_for(nodes, topics, version, way):
    topic, reports = topics
    settings = kit.audited(nodes.direct, reports)
    if way == "wrapper":
        del settings["interceptor.classes"]
    told = kit.run_producer(
        *(version, settings, *(["wrap"] if way == "wrapper" else [])),
        *(f"send:{topic}:2000", f"again:{topic}:3", f"send:{topic}:1:2000000"),
        *("send:no-such-topic:0", f"keyed:{topic}:500", "wait:30", "sleep:400"),
        *(f"send:{topic}:20", "close", f"send:{topic}:1"),
    )
    assert told.code == 0, told.log
    assert told.error_lines == []
    assert told.errors.pop(2524)[0].endswith("IllegalStateException")  # sent after the close
    books = ours(kit.books_of(nodes.direct, reports, topic))
    exact = way == "wrapper" or version in kit.EXACT
    agrees(books, told, exact=exact)
    assert set(told.acks) == set(range(2524)) - {2003}
    assert books.errors == {2003: "RecordTooLargeException(client)"}
    in_log = kit.ids_in_log(nodes.direct, topic)
    assert {seq: at for (_, seq), at in in_log.items()} == told.acks
    settings = books.last.settings
    assert settings["client_id"] == "shop"
    assert settings["client"] == f"kafka-clients {version}"
    assert settings["acks"] == ("1" if version == kit.OLDEST else "all")
    assert settings.get("audit_mode") == (None if exact else "acked_offsets")
    assert books.last.cluster_id
    assert books.last.metrics["record-retry-total"] == 0
    # The same record sent three times: it keeps its headers, and has one of ours.
    again = [m for m in kit.records_of(nodes.direct, topic) if m.value() == b"again"]
    assert [[k for k, _ in m.headers()] for m in again] == [["acktrail", "trace", "acktrail"]] * 3


@versions(kit.OLDEST, kit.NEWEST)
def test_an_error_of_the_broker_is_told_for_the_right_ids(nodes, version):
    topic, reports = names()
    kit.create_topics(nodes.direct, reports)
    kit.create_topics(nodes.direct, topic, max_message_bytes="1000")
    told = kit.run_producer(
        *(version, kit.audited(nodes.direct, reports, batch_size="1")),
        *(f"send:{topic}:50", f"send:{topic}:3:5000", f"send:{topic}:50", f"send:{topic}:2:5000"),
        *("wait:30", "close"),
    )
    assert sorted(told.errors) == [50, 51, 52, 103, 104]
    books = ours(kit.books_of(nodes.direct, reports, topic))
    agrees(books, told, exact=version in kit.EXACT)
    assert set(books.errors.values()) == {"RecordTooLargeException"}
    assert books.plain[Tier.FAILED] == set(told.errors)


@versions(kit.OLDEST, kit.NEWEST)
def test_batches_larger_than_the_topic_takes_are_never_called_stored(nodes, version):
    """Before 4.3 the client splits such a batch for ever, until the messages expire."""
    topic, reports = names()
    kit.create_topics(nodes.direct, reports)
    kit.create_topics(nodes.direct, topic, partitions=3, max_message_bytes="1000")
    times = {"linger_ms": "500", "delivery_timeout_ms": "6000", "request_timeout_ms": "3000"}
    told = kit.run_producer(
        *(version, kit.audited(nodes.direct, reports, **times)),
        *(f"keyed:{topic}:3000", "wait:40", "close"),
    )
    books = ours(kit.books_of(nodes.direct, reports, topic))
    agrees(books, told, exact=version in kit.EXACT)
    assert len(kit.ids_in_log(nodes.direct, topic)) == len(told.acks)
    if version == kit.NEWEST:
        assert len(told.acks) == 3000
    else:
        assert set(books.errors.values()) == {"TimeoutException(expired)"}


@versions(kit.OLDEST, kit.NEWEST)
def test_sends_without_acks_are_sent_unacked(nodes, topics, version):
    topic, reports = topics
    settings = kit.audited(nodes.direct, reports, acks="0")
    kit.run_producer(version, settings, f"send:{topic}:300", "wait:30", "close")
    books = ours(kit.books_of(nodes.direct, reports, topic))
    assert books.sent == books.plain[Tier.SENT_UNACKED] == set(range(300))
    assert books.last.outcomes == {"0": 300}
    assert "audit_mode" not in books.last.settings


@versions(kit.OLDEST, kit.NEWEST)
def test_a_wrapped_producer_tells_commit_from_abort(nodes, topics, version):
    topic, reports = topics
    settings = kit.audited(nodes.direct, reports, transactional_id=f"tx-{topic}")
    del settings["interceptor.classes"]
    told = kit.run_producer(
        *(version, settings, "wrap", "init", "begin", f"send:{topic}:10", "commit"),
        *("begin", f"send:{topic}:5", "flush", "abort", "begin", f"send:{topic}:7", "commit"),
        "close",
    )
    assert len(told.acks) == 22, told.log
    books = ours(kit.books_of(nodes.direct, reports, topic))
    assert books.acked == told.acks
    assert books.plain[Tier.ABORTED] == set(range(10, 15))
    assert books.plain[Tier.COMMITTED] == set(range(22)) - set(range(10, 15))


@versions(kit.NEWEST)
def test_a_fenced_producer_commits_nothing(nodes, topics, version):
    topic, reports = topics
    settings = kit.audited(nodes.direct, reports, transactional_id=f"fenced-{topic}")
    del settings["interceptor.classes"]
    first = kit.start_producer(
        *(version, settings),
        ["wrap", "init", "begin", f"send:{topic}:10", "flush", "sleep:9000", "commit", "close"],
    )
    second = ["wrap", "init", "begin", f"send:{topic}:10", "commit", "close"]
    assert wait_until(lambda: len(kit.records_of(nodes.direct, topic)) >= 10, 60)
    winner = kit.run_producer(version, settings, *second)
    loser = kit.ended(first)
    assert "refused" in loser.output
    assert len(winner.acks) == 10
    books = kit.books_of(nodes.direct, reports, topic).values()
    assert sorted(len(b.plain.get(Tier.COMMITTED, ())) for b in books) == [0, 10]
    assert all(len(b.acked) == 10 for b in books)


@versions(kit.OLDEST, kit.NEWEST)
def test_what_ends_without_close(nodes, topics, version):
    topic, reports = topics
    slow = {"linger_ms": "60000", "batch_size": "100000", "acktrail_close_ms": "10000"}
    settings = kit.audited(nodes.direct, reports, **slow)
    told = kit.run_producer(version, settings, f"send:{topic}:100", "flush", f"send:{topic}:30")
    assert len(told.acks) == 100
    books = ours(kit.books_of(nodes.direct, reports, topic))
    assert books.last.closed
    assert books.last.records == 130
    if version in kit.EXACT:
        assert books.plain[Tier.INDETERMINATE] == set(range(100, 130))
        assert set(books.errors.values()) == {"_DESTROY"}
    killed = kit.run_producer(version, settings, f"send:{topic}:100", "sleep:1500", "halt")
    assert killed.code == 9
    (books,) = (b for b in kit.books_of(nodes.direct, reports, topic).values() if not b.last.closed)
    assert books.sent == set(range(100))
    assert not books.acked


# -- never harms ----------------------------------------------------------------------------------

FAULTS = ("configure", "send", "ack", "take")


@versions(kit.OLDEST, kit.NEWEST)
@pytest.mark.parametrize("where", FAULTS)
def test_an_error_in_our_code_is_not_the_applications(nodes, topics, version, where):
    topic, reports = topics
    faulty = {"interceptor.classes": "io.acktrail.FaultyInterceptor", "test.fault": where}
    settings = kit.audited(nodes.direct, reports) | faulty
    told = kit.run_producer(
        version, settings, f"send:{topic}:50", "wait:20", "sleep:900", f"send:{topic}:50", "close"
    )
    assert told.code == 0, told.log
    assert len(told.acks) == 100
    assert len(told.error_lines) == 1
    assert "is off; the application goes on" in told.error_lines[0]
    books = kit.books_of(nodes.direct, reports, topic)
    if where == "ack":
        last = ours(books).last
        assert "made by a test in ack" in last.settings["audit_off"]
        assert last.dropped["acked"] >= 3
        assert len(kit.ids_in_log(nodes.direct, topic)) < 100
    else:
        assert books == {}


WRONG = {
    "number": {"acktrail.interval.ms": "soon"},
    "expression": {"acktrail.topics.exclude": "("},
    "unreadable": {"test.unreadable": "yes"},
    "refused": {"acktrail.producer.bootstrap.servers": "nowhere.invalid:9092"},
    "protocol": {"acktrail.producer.security.protocol": "SECURE"},
}


@versions(kit.NEWEST)
@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_settings_never_stop_the_client(nodes, topics, version, wrong):
    topic, reports = topics
    settings = kit.audited(nodes.direct, reports) | WRONG[wrong]
    told = kit.run_producer(version, settings, f"send:{topic}:50", "wait:20", "sleep:600", "close")
    assert told.code == 0, told.log
    assert len(told.acks) == 50
    assert len(told.error_lines) == 1
    assert kit.books_of(nodes.direct, reports, topic) == {}


AWAY = {
    "no topic": {},
    "down": {"acktrail.producer.bootstrap.servers": "127.0.0.1:9"},
}


AWAY_CASES = [(v, a) for v in kit.VERSIONS for a in AWAY if SOAK or v == kit.NEWEST]


@pytest.mark.parametrize(("version", "away"), AWAY_CASES)
def test_an_audit_cluster_that_is_away_costs_a_second_at_the_close(nodes, version, away):
    topic, reports = names()
    kit.create_topics(nodes.direct, topic)
    settings = kit.audited(nodes.direct, reports) | AWAY[away]
    told = kit.run_producer(
        version, settings, f"send:{topic}:500", "wait:20", "sleep:7000", "flush", "close"
    )
    assert told.code == 0, told.log
    assert len(told.acks) == 500
    assert told.times_ms["close"] < 2500
    assert 1 <= len(told.error_lines) <= 2, told.log  # the reports, and the last one


@versions(kit.NEWEST)
def test_reports_come_late_and_say_what_memory_did_not_hold(nodes, version):
    topic, reports = names()
    kit.create_topics(nodes.direct, topic)
    settings = kit.audited(nodes.direct, reports, acktrail_memory_bytes="65536")
    app = kit.start_producer(
        *(version, settings),
        [
            f"keyed:{topic}:300000",
            "wait:60",
            "sleep:12000",
            f"send:{topic}:10",
            "sleep:1500",
            "close",
        ],
    )
    time.sleep(9)
    kit.create_topics(nodes.direct, reports)
    told = kit.ended(app)
    assert len(told.acks) == 300_010, told.log
    books = ours(kit.books_of(nodes.direct, reports, topic))
    assert books.last.records == 300_010
    known = len(books.acked) + len(books.plain.get(Tier.ACKED_NO_OFFSET, ()))
    assert 0 < known < 300_010
    assert sum(n for t, n in books.last.dropped.items() if t.startswith("acked")) == 300_010 - known
    assert all(told.acks[seq] == at for seq, at in books.acked.items())


# -- consumers ------------------------------------------------------------------------------------


def reader(nodes, reports: str, group: str, **more: str) -> dict[str, str]:
    return kit.audited(
        *(nodes.direct, reports),
        **{"group_id": group, "auto_offset_reset": "earliest", **more},
    ) | {"interceptor.classes": "io.acktrail.AuditConsumerInterceptor"}


@versions(kit.OLDEST, kit.NEWEST)
def test_a_group_reports_what_it_read(nodes, topics, version):
    topic, reports = topics
    kit.run_producer(
        kit.NEWEST, kit.audited(nodes.direct, reports), f"keyed:{topic}:1000", "wait:20", "close"
    )
    group = f"readers-{topic}"
    read = kit.run_consumer(
        *(version, reader(nodes, reports, group), topic),
        *("subscribe", "poll:1000", "sleep:500", "commit", "close"),
    )
    assert len(read) == 1000
    rows = kit.reads_of(nodes.direct, reports, group)
    consumed = {
        (r.partition, r.first_offset): r.last_offset for r in rows if r.tier is Tier.CONSUMED
    }
    ends = Counter(p for p, _ in read)
    assert consumed == {(p, 0): n - 1 for p, n in ends.items()}
    assert all(r.assignment is not None for r in rows if r.tier is Tier.CONSUMED)
    delivered = {}
    for row in (r for r in rows if r.tier is Tier.DELIVERED):
        ids, offsets = decode_runs(row.ids).listed()
        for seq, at in zip(ids, offsets, strict=True):
            delivered[row.session, (row.block << BLOCK_BITS) + int(seq)] = (row.partition, int(at))
    assert delivered == kit.ids_in_log(nodes.direct, topic)
    last = max((r for r in rows if r.tier is Tier.HEARTBEAT), key=lambda r: r.number)
    assert last.closed
    assert last.cluster_id
    assert last.settings["group.id"] == group


@versions(kit.OLDEST, kit.NEWEST)
def test_a_jump_counts_only_within_one_known_assignment(nodes, version):
    topic, reports = names()
    kit.create_topics(nodes.direct, reports)
    kit.create_topics(nodes.direct, topic, partitions=1)
    plain = {"bootstrap.servers": nodes.direct}
    kit.run_producer(kit.NEWEST, plain, f"send:{topic}:300", "wait:20", "close")
    few = {"max_poll_records": "10"}
    for how, group in (("subscribe", f"jump-{topic}"), ("assign:0", f"alone-{topic}")):
        kit.run_consumer(
            *(version, reader(nodes, reports, group, **few), topic),
            *(how, "poll:10", "seek:0:200", "poll:10", "close"),
        )
        rows = [r for r in kit.reads_of(nodes.direct, reports, group) if r.tier is Tier.CONSUMED]
        assert {(r.first_offset, r.last_offset) for r in rows} == {(0, 9), (200, 209)}
        known = {r.assignment for r in rows}
        assert len(known) == 1
        assert (known == {None}) == (how != "subscribe")
