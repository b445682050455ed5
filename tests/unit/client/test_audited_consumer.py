"""The audited consumer does what the plain one does, and reports what it was given."""

from __future__ import annotations

import threading
import time
from collections import Counter
from itertools import pairwise

import pytest
from acktrail_client import Audit, AuditedConsumer, AuditedDeserializingConsumer, AuditedProducer
from acktrail_client.given_records import note_ids, runs_of
from acktrail_client.identity import header_prefix, pack_header
from acktrail_client.processing import Progress
from acktrail_client.read_offsets import MOST_PARTS, ReadOffsets
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.serialization import StringDeserializer
from hypothesis import given
from hypothesis import strategies as st

from acktrail.audit.wire import decode_runs
from acktrail.contracts.vocabulary import Tier
from tests.unit.client.conftest import Cluster, wait_for

CONF = {"group.id": "billing", "auto.offset.reset": "earliest", "client.id": "biller"}


def fill(brokers: Cluster, audit: Audit, count: int = 60) -> None:
    """Audited messages in one partition, and one without an id in the middle."""
    with AuditedProducer(brokers.client, audit=audit) as producer:
        for n in range(count // 2):
            producer.produce("orders", f"{n}", partition=0)
        producer.flush(60)
        plain = Producer(brokers.client)
        plain.produce("orders", b"foreign", partition=0)
        plain.flush(60)
        for n in range(count // 2, count):
            producer.produce("orders", f"{n}", partition=0)


def read_all(consumer: Consumer, count: int, at_once: int = 20) -> list:
    found = []
    for _ in range(200):
        if at_once:
            found += [m for m in consumer.consume(at_once, 0.2) if m.error() is None]
        elif (message := consumer.poll(0.2)) is not None and message.error() is None:
            found.append(message)
        if len(found) >= count:
            return found
    raise AssertionError(f"{len(found)} of {count} came")


def given_ids(reports) -> Counter[int]:
    found: Counter[int] = Counter()
    for row in reports:
        if row.tier is Tier.DELIVERED:
            assert row.group == "billing"
            found.update(decode_runs(row.ids).listed()[0].tolist())
    return found


def ranges(reports) -> list[tuple[int, int, int]]:
    """First and last offset and records of the newest report of each part."""
    newest = {r.part: r for r in reports if r.tier is Tier.CONSUMED and r.partition == 0}
    return [(r.first_offset, r.last_offset, r.records) for _, r in sorted(newest.items())]


@pytest.mark.parametrize("at_once", [0, 20], ids=["poll", "consume"])
def test_what_was_given_is_reported(brokers, audit, at_once):
    fill(brokers, audit)
    consumer = AuditedConsumer({**brokers.client, **CONF}, audit=audit)
    assert isinstance(consumer, Consumer)
    consumer.subscribe(["orders"])
    assert len(read_all(consumer, 61, at_once)) == 61
    consumer.close()
    reports = brokers.reports()
    assert given_ids(reports) == Counter(range(60))
    assert ranges(reports) == [(0, 60, 61)]
    beats = [r for r in reports if r.tier is Tier.HEARTBEAT and r.group]
    assert beats[-1].closed
    assert beats[-1].settings["client_id"] == "biller"
    (consumed,) = {r.part for r in reports if r.tier is Tier.CONSUMED}
    newest = [r for r in reports if r.tier is Tier.CONSUMED and r.part == consumed][-1]
    assert newest.assignment is not None
    given = [r for r in reports if r.tier is Tier.DELIVERED]
    assert {r.leader_epoch for r in given} == {newest.leader_epoch}


def test_a_consumer_that_always_waits_for_messages_is_reported(brokers, audit):
    """confluent-kafka lets one thread at a time into a client: ours must not wait for that."""
    fill(brokers, audit)
    before = len(brokers.reports())
    consumer = AuditedConsumer({**brokers.client, **CONF}, audit=audit)
    consumer.subscribe(["orders"])
    ends, longest = threading.Event(), [0.0]

    def read() -> None:
        while not ends.is_set():
            began = time.monotonic()
            consumer.consume(100, 0.2)
            longest[0] = max(longest[0], time.monotonic() - began)
        consumer.close()

    reader = threading.Thread(target=read)
    reader.start()
    beats: list = []

    def heard() -> bool:
        beats[:] = [r for r in brokers.reports()[before:] if r.tier is Tier.HEARTBEAT and r.group]
        return any(beat.cluster_id for beat in beats)

    came = wait_for(heard, 30)
    ends.set()
    reader.join(60)
    assert came
    assert longest[0] < 5


def test_the_last_header_of_ours_is_the_id(brokers, audit):
    """Whatever else stands behind it; a header of another shape is somebody else's."""
    first, second = (
        pack_header(header_prefix("0194b8a3c8007000800000000000000" + n), 5, 1) for n in "12"
    )
    plain = Producer(brokers.client)
    for n, headers in enumerate(
        [
            [("acktrail", first), ("acktrail", second)],
            [("acktrail", first), ("trace", b"x" * 33), ("none", None)],
            [("acktrail", b"\x02" + first[1:]), ("acktrail", b"short")],
        ]
    ):
        plain.produce("orders", f"{n}", partition=0, headers=headers)
    plain.flush(60)
    consumer = AuditedConsumer({**brokers.client, **CONF}, audit=audit)
    consumer.subscribe(["orders"])
    read_all(consumer, 3)
    consumer.close()
    rows = [r for r in brokers.reports() if r.tier is Tier.DELIVERED]
    found = {(r.session[-1], tuple(decode_runs(r.ids).listed()[1].tolist())) for r in rows}
    assert found == {("2", (0,)), ("1", (1,))}


def test_a_jump_of_the_application_is_a_new_part(brokers, audit):
    fill(brokers, audit)
    consumer = AuditedConsumer({**brokers.client, **CONF}, audit=audit)
    consumer.assign([TopicPartition("orders", 0, 0)])
    read = [consumer.poll(60).offset() for _ in range(5)]
    consumer.seek(TopicPartition("orders", 0, 20))
    read += [consumer.poll(60).offset() for _ in range(5)]
    consumer.close()
    assert read == [*range(5), *range(20, 25)]
    reports = brokers.reports()
    assert ranges(reports) == [(0, 4, 5), (20, 24, 5)]
    assert len({r.assignment for r in reports if r.tier is Tier.CONSUMED}) == 1


def test_only_what_was_processed_is_committed_and_commits_say_so(brokers, audit):
    fill(brokers, audit)
    consumer = AuditedConsumer({**brokers.client, **CONF}, audit=audit, processed="explicit")
    consumer.subscribe(["orders"])
    messages = read_all(consumer, 61)
    for message in messages[:10]:
        consumer.processed(message)
    consumer.processed(messages[10], outcome="dead_letter")
    consumer.processed(messages[20])  # 11 to 19 are still under way
    (committed,) = [c for c in consumer.commit(asynchronous=False) if c.partition == 0]
    assert committed.offset == 11
    (stored,) = consumer.committed([TopicPartition("orders", 0)], 60)
    assert (stored.offset, stored.metadata) == (11, "acktrail:processed=11")
    for message in messages[11:20]:
        consumer.processed(message, outcome="skipped")
    consumer.close()
    look = Consumer({**brokers.client, **CONF})
    (stored,) = look.committed([TopicPartition("orders", 0)], 60)
    look.close()
    assert (stored.offset, stored.metadata) == (21, "acktrail:processed=21")
    beat = [r for r in brokers.reports() if r.tier is Tier.HEARTBEAT and r.group][-1]
    counted = {name: n for name, n in beat.settings.items() if name.startswith("processed.")}
    assert counted == {"processed.ok": "11", "processed.dead_letter": "1", "processed.skipped": "9"}


def test_the_next_poll_shows_that_the_last_batch_was_processed(brokers, audit):
    fill(brokers, audit)
    conf = {**brokers.client, **CONF, "enable.auto.commit": False}
    consumer = AuditedConsumer(conf, audit=audit, processed="next_poll")
    consumer.subscribe(["orders"])
    read_all(consumer, 61)
    consumer.commit(asynchronous=False)
    (stored,) = consumer.committed([TopicPartition("orders", 0)], 60)
    consumer.close()
    assert (stored.offset, stored.metadata) == (61, "acktrail:processed=61")


@pytest.mark.parametrize("why", ["excluded", "a fault of ours"])
@pytest.mark.parametrize("processed", ["explicit", "next_poll"])
def test_what_is_not_audited_is_committed_all_the_same(brokers, audit, monkeypatch, why, processed):
    fill(brokers, audit, 10)
    if why == "excluded":
        audit = Audit(interval_s=0.3, exclude="orders")
    else:
        monkeypatch.setattr(ReadOffsets, "read", lambda *_: 1 / 0)
    conf = {**brokers.client, **CONF}
    with AuditedConsumer(conf, audit=audit, processed=processed) as consumer:
        consumer.subscribe(["orders"])
        messages = read_all(consumer, 11)
        for message in messages if processed == "explicit" else ():
            consumer.processed(message)
        consumer.commit(asynchronous=False)
        (stored,) = consumer.committed([TopicPartition("orders", 0)], 60)
    assert (stored.offset, stored.metadata) == (11, "acktrail:processed=11")


def test_a_consumer_in_a_with_statement_is_reported_to_its_end(brokers, audit):
    fill(brokers, audit)
    with AuditedConsumer({**brokers.client, **CONF}, audit=audit) as consumer:
        consumer.subscribe(["orders"])
        read_all(consumer, 61)
    reports = brokers.reports()
    assert given_ids(reports) == Counter(range(60))
    assert [r for r in reports if r.tier is Tier.HEARTBEAT and r.group][-1].closed


def test_plain_auto_commit_is_left_alone(brokers, audit):
    fill(brokers, audit)
    consumer = AuditedConsumer({**brokers.client, **CONF}, audit=audit)
    consumer.subscribe(["orders"])
    read_all(consumer, 61)
    consumer.close()
    look = Consumer({**brokers.client, **CONF})
    (stored,) = look.committed([TopicPartition("orders", 0)], 60)
    look.close()
    assert (stored.offset, stored.metadata) == (61, None)


def test_rebalance_callbacks_of_the_application_are_called(brokers, audit):
    fill(brokers, audit)
    heard = []
    conf = {**brokers.client, **CONF}
    consumer = AuditedConsumer(conf, audit=audit)
    consumer.subscribe(
        ["orders"],
        on_assign=lambda _, p: heard.append(("assigned", len(p))),
        on_revoke=lambda _, p: heard.append(("revoked", len(p))),
    )
    read_all(consumer, 61)
    consumer.close()
    assert [what for what, _ in heard] == ["assigned", "revoked"]


def test_deserialized_messages_are_audited(brokers, audit):
    fill(brokers, audit)
    conf = {**brokers.client, **CONF, "value.deserializer": StringDeserializer()}
    consumer = AuditedDeserializingConsumer(conf, audit=audit, processed="explicit")
    consumer.subscribe(["orders"])
    message = None
    while message is None:
        message = consumer.poll(1)
    assert isinstance(message.value(), str)
    consumer.processed(message)
    consumer.close()
    assert given_ids(brokers.reports()) == Counter({0: 1})


@pytest.mark.parametrize(
    ("conf", "processed", "said"),
    [
        ({}, "sometimes", "expected one of unknown, next_poll, explicit"),
        ({"enable.auto.offset.store": True}, "explicit", "remove enable.auto.offset.store"),
    ],
)
def test_wrong_use_is_refused_at_once(conf, processed, said):
    with pytest.raises(ValueError, match=said):
        AuditedConsumer({"group.id": "g", **conf}, processed=processed)


def test_a_wrong_expression_is_refused_before_any_message():
    with pytest.raises(ValueError, match=r"exclude='\[' is not a regular expression"):
        Audit(exclude="[")


@given(
    st.lists(st.tuples(st.sampled_from(["give", "done", "back"]), st.integers(0, 30)), max_size=60)
)
def test_never_past_what_is_still_to_process(steps):
    progress, position = Progress(), 0
    under_way: set[int] = set()
    for what, number in steps:
        if what == "give":
            position += number % 3  # markers and compacted records
            progress.give(position)
            under_way.add(position)
            position += 1
        elif what == "done" and under_way:
            offset = sorted(under_way)[number % len(under_way)]
            under_way.discard(offset)
            progress.done(offset)
        elif what == "back" and number < position:
            position = number
            under_way = {o for o in under_way if o < number}
        if under_way:
            assert progress.next is not None
            assert progress.next <= min(under_way)


PLACES = st.tuples(st.sampled_from([("a", 0), ("a", 1), ("b", 0)]), st.integers(1, 2))


@given(st.lists(PLACES, min_size=1, max_size=60), st.data())
def test_records_looked_at_together_are_noted_as_one_by_one(steps, data):
    """Runs of offsets without a gap, and every id at its offset, in whatever order they came."""
    places, offsets, headers, wanted, after = [], [], [], {}, Counter()
    for place, step in steps:
        after[place] += step
        seq = data.draw(st.none() | st.integers(0, 2**16))
        session = data.draw(st.sampled_from(["01" * 16, "02" * 16]))
        places.append(place)
        offsets.append(after[place])
        own = [] if seq is None else [("acktrail", pack_header(header_prefix(session), seq, 1))]
        more = [("trace", b"x")] if data.draw(st.booleans()) else []
        headers.append([*own, *more] or None)
        if seq is not None:
            key = (place, bytes.fromhex(session), seq >> 15)
            wanted.setdefault(key, []).append((seq & 32767, after[place]))
    found: dict = {}
    covered = []
    for place, first, end in runs_of(places, offsets):
        assert set(places[first:end]) == {place}
        assert offsets[first:end] == list(range(offsets[first], offsets[first] + end - first))
        covered += range(first, end)
        note_ids(found.setdefault(place, {}), headers[first:end], offsets[first:end])
    assert covered == list(range(len(steps)))
    assert {
        (place, *key): list(zip(seen.ids, seen.offsets, strict=True))
        for place, of in found.items()
        for key, seen in of.items()
    } == wanted


@given(st.lists(st.integers(1, 3), max_size=120), st.integers(1, 9))
def test_any_report_that_comes_shows_no_gap_but_the_jumps(steps, every):
    """Whichever reports are lost: between the parts of one assignment nothing was read."""
    read, offsets, messages, offset = ReadOffsets("g"), set(), [], 0
    for number, step in enumerate(steps):
        read.read(("t", 0), offset, offset, 0, 1)
        offsets.add(offset)
        offset += step
        if number % every == 0:
            messages.append(read.take(1))
    messages.append(read.take(1))
    for first in range(len(messages)):
        newest: dict[int, dict] = {}
        for rows in messages[first::2]:  # half of the messages are lost
            newest.update({row["part"]: row for row in rows})
        by_assignment: dict[int, list[dict]] = {}
        for row in newest.values():
            by_assignment.setdefault(row["assignment"], []).append(row)
        for parts in by_assignment.values():
            assert len(parts) <= MOST_PARTS
            ordered = sorted(parts, key=lambda row: row["first_offset"])
            for before, after in pairwise(ordered):
                passed = set(range(before["last_offset"] + 1, after["first_offset"]))
                assert not passed & offsets
