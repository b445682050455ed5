"""The audited producer does what the plain one does, and every message is accounted for."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import Counter
from contextlib import suppress

import pytest
from acktrail_client import (
    Audit,
    AuditedAIOProducer,
    AuditedProducer,
    AuditedSerializingProducer,
)
from acktrail_client.sent_ids import ONE_MORE
from acktrail_client.statistics import Statistics
from confluent_kafka import KafkaError, KafkaException, Producer, SerializingProducer
from confluent_kafka.serialization import SerializationError, StringSerializer

from acktrail.audit.block import newest_parts
from acktrail.audit.wire import decode_header, decode_runs, own_header
from acktrail.contracts.vocabulary import Tier
from tests.unit.client.conftest import Cluster, wait_for


def ids_at(reports, tier: Tier, topic: str = "orders") -> Counter[int]:
    found: Counter[int] = Counter()
    for row in reports:
        if row.tier is tier and row.topic == topic and row.session:
            ids, _ = decode_runs(row.ids).listed()
            found.update((row.block << 15) + i for i in ids.tolist())
    return found


def once(numbers) -> Counter[int]:
    return Counter(dict.fromkeys(numbers, 1))


def last_beat(reports, topic: str = "orders"):
    return [r for r in reports if r.tier is Tier.HEARTBEAT and r.topic == topic][-1]


def test_every_message_has_an_id_and_an_outcome(brokers, audit):
    heard = []
    conf = {**brokers.client, "client.id": "shop", "sasl.password": "secret"}
    with AuditedProducer(conf, audit=audit) as producer:
        assert isinstance(producer, Producer)
        for n in range(500):
            producer.produce("orders", f"v{n}", str(n), on_delivery=lambda e, _: heard.append(e))
            producer.poll(0)
    assert heard == [None] * 500
    records = brokers.records("orders")
    headers = [decode_header(own_header(m.headers())) for m in records]
    assert once(h.seq for h in headers) == once(range(500))
    assert len({h.session for h in headers}) == 1
    reports = brokers.reports()
    assert ids_at(reports, Tier.SENT) == ids_at(reports, Tier.ACKED) == once(range(500))
    beat = last_beat(reports)
    assert (beat.closed, beat.records, dict(beat.outcomes)) == (True, 500, {"0": 500})
    assert (beat.settings["client_id"], beat.settings["acks"]) == ("shop", "all")
    assert "secret" not in json.dumps([dict(r.settings) for r in reports])
    offsets = {(m.partition(), m.offset()): h.seq for m, h in zip(records, headers, strict=True)}
    for row in reports:
        if row.tier is Tier.ACKED:
            ids, at = decode_runs(row.ids).listed()
            for i, offset in zip(ids.tolist(), at.tolist(), strict=True):
                assert offsets[row.partition, offset] == i


def test_reports_of_one_block_add_up_in_the_lake(brokers, audit):
    """A newer row of the same part replaces it: what is new must be a part of its own."""
    with AuditedProducer(brokers.client, audit=audit) as producer:
        for n in range(4):
            producer.produce("orders", f"{n}", partition=0)
            producer.flush(60)
            time.sleep(0.5)  # a report in between
    reports = brokers.reports()
    acked = [r for r in reports if r.tier is Tier.ACKED]
    assert len({r.number for r in acked}) > 1
    rows = [{**vars(r), "ids": r.ids} for r in acked]
    kept = {i for part in newest_parts(rows) for i in decode_runs(part["ids"]).listed()[0].tolist()}
    assert kept == set(range(4))


def test_users_headers_stay_as_they_are(brokers, audit):
    as_list, as_dict = [("trace", b"1")], {"trace": "1", "none": None}
    with AuditedProducer(brokers.client, audit=audit) as producer:
        producer.produce("orders", b"a", headers=as_list)
        producer.produce("orders", b"b", headers=as_dict)
        producer.produce("orders", b"c", headers=[*as_list, ("acktrail", b"o"), ("acktrail", b"p")])
    assert (as_list, as_dict) == ([("trace", b"1")], {"trace": "1", "none": None})
    found = {m.value(): m.headers() for m in brokers.records("orders")}
    assert found[b"a"][:-1] == [("trace", b"1")]
    assert found[b"b"][:-1] == [("trace", b"1"), ("none", None)]
    assert found[b"c"][:-1] == [("trace", b"1"), ("acktrail", b"o")]
    assert all(decode_header(headers[-1][1]) is not None for headers in found.values())


def test_only_errors_are_called_back_where_that_is_asked(brokers, audit):
    heard = []
    conf = {
        **brokers.client,
        "delivery.report.only.error": True,
        "linger.ms": 1_000,
        "on_delivery": lambda e, _: heard.append(e),
    }
    with AuditedProducer(conf, audit=audit) as producer:
        for _ in range(20):
            producer.produce("orders", b"x")
        producer.flush(60)
        assert heard == []
        producer.produce("orders", b"x")
        producer.purge()
        producer.poll(1)
    assert [error.name() for error in heard] == ["_PURGE_QUEUE"]
    reports = brokers.reports()
    assert ids_at(reports, Tier.ACKED) == once(range(20))
    assert ids_at(reports, Tier.INDETERMINATE) == once([20])


def test_a_full_queue_burns_no_id(brokers, audit):
    """Eight threads, full buffers: no number is left out, none is given twice."""
    conf = {**brokers.client, "queue.buffering.max.messages": 50, "linger.ms": 1}
    producer = AuditedProducer(conf, audit=audit)
    refused = Counter()

    def work(name: int) -> None:
        for n in range(400):
            while True:
                try:
                    producer.produce("orders", f"{name}-{n}")
                    break
                except BufferError:
                    refused[name] += 1
                    producer.poll(0.001)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    producer.close()
    assert refused.total() > 0
    reports = brokers.reports()
    assert ids_at(reports, Tier.SENT) == ids_at(reports, Tier.ACKED) == once(range(3_200))
    seqs = once(decode_header(own_header(m.headers())).seq for m in brokers.records("orders"))
    assert seqs == once(range(3_200))


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_signal_gives_no_number_twice(brokers, audit, monkeypatch, when):
    """A handler that raises as soon as a message was handed over, or a refusal just before."""
    real, left = Producer.produce, [3]

    def interrupted(self, *arguments):
        left[0] -= 1
        if left[0] == 0 and when == "before":
            raise BufferError("full")
        real(self, *arguments)
        if left[0] == 0:
            raise KeyboardInterrupt

    monkeypatch.setattr("acktrail_client.producer._produce", interrupted)
    producer = AuditedProducer(brokers.client, audit=audit)
    for n in range(6):
        with suppress(BufferError, KeyboardInterrupt):
            producer.produce("orders", f"{n}")
    producer.close()
    seqs = once(decode_header(own_header(m.headers())).seq for m in brokers.records("orders"))
    assert seqs == once(range(5 if when == "before" else 6))
    assert ids_at(brokers.reports(), Tier.ACKED) == seqs


def test_a_thread_that_keeps_its_turn_ends_the_audit_alone(brokers, audit, caplog):
    producer = AuditedProducer(brokers.client, audit=audit)
    producer.produce("orders", "0")
    del producer._audit.topics["orders"].turn[ONE_MORE]
    producer.produce("orders", "1")
    assert producer.flush(60) == 0
    assert len(brokers.records("orders")) == 2
    assert wait_for(lambda: not producer._audit.on)
    assert "a thread was stopped while it handed over a message" in caplog.text
    producer.close()


def test_purged_messages_are_not_said_to_be_absent(audit, brokers):
    conf = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}
    target = Audit(bootstrap_servers=brokers.servers, interval_s=0.3)
    producer = AuditedProducer(conf, audit=target)
    for _ in range(10):
        producer.produce("orders", b"x")
    producer.purge()
    producer.poll(1)
    producer.close()
    reports = brokers.reports()
    assert ids_at(reports, Tier.INDETERMINATE) == once(range(10))
    assert {e for r in reports for e in r.errors} == {"_PURGE_QUEUE"}


def test_acks_0_is_no_ack(brokers, audit):
    with AuditedProducer({**brokers.client, "acks": 0}, audit=audit) as producer:
        for _ in range(10):
            producer.produce("orders", b"x")
    reports = brokers.reports()
    assert ids_at(reports, Tier.SENT_UNACKED) == once(range(10))
    assert not ids_at(reports, Tier.ACKED)
    assert last_beat(reports).settings["acks"] == "0"


def test_a_message_near_the_limit_travels_without_an_id(brokers, audit):
    conf = {**brokers.client, "message.max.bytes": 2_000}
    with AuditedProducer(conf, audit=audit) as producer:
        producer.produce("orders", b"x" * 1_930)
        producer.produce("orders", b"y" * 1_000)
        with pytest.raises(KafkaException):
            producer.produce("orders", b"z" * 5_000)
    sizes = {len(m.value()): m.headers() for m in brokers.records("orders")}
    assert sizes[1_930] is None
    assert len(sizes[1_000]) == 1
    beat = last_beat(brokers.reports())
    assert (beat.records, beat.settings["unaudited"]) == (1, "2")


def test_what_cannot_be_serialized_is_given_no_id(brokers, audit):
    conf = {**brokers.client, "value.serializer": StringSerializer()}
    producer = AuditedSerializingProducer(conf, audit=audit)
    assert isinstance(producer, SerializingProducer)
    producer.produce("orders", value="a")
    with pytest.raises((SerializationError, KafkaException)):
        producer.produce("orders", value=object())
    producer.produce("orders", value="b")
    producer.close()
    assert ids_at(brokers.reports(), Tier.ACKED) == once([0, 1])


def test_batches_are_refused_with_the_remedy(brokers, audit):
    with (
        AuditedProducer(brokers.client, audit=audit) as producer,
        pytest.raises(NotImplementedError, match="Call produce"),
    ):
        producer.produce_batch("orders", [{"value": b"x"}])


def test_statistics_go_to_the_application_and_into_heartbeats(brokers, audit):
    heard = []
    conf = {**brokers.client, "stats_cb": heard.append, "statistics.interval.ms": 100}
    with AuditedProducer(conf, audit=audit) as producer:
        producer.produce("orders", b"x")
        until = time.monotonic() + 60
        while not heard and time.monotonic() < until:
            producer.poll(0.1)
    assert json.loads(heard[0])["type"] == "producer"
    found = last_beat(brokers.reports()).metrics
    assert found["record-send-total"] == 1.0
    assert {"record-retry-total", "record-error-total", "requests-in-flight"} <= set(found)


def test_transactions_are_reported_as_they_ended(brokers, audit):
    producer = AuditedProducer({**brokers.client, "transactional.id": "tx"}, audit=audit)
    producer.init_transactions(20)
    for end in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        for _ in range(3):
            producer.produce("orders", b"x")
        producer.flush(60)
        end()
    producer.begin_transaction()
    producer.produce("orders", b"x")
    producer.flush(60)
    producer._end_audit()  # the process ends within a transaction
    reports = brokers.reports()
    assert ids_at(reports, Tier.COMMITTED) == once(range(3))
    assert ids_at(reports, Tier.ABORTED) == once(range(3, 6))
    assert ids_at(reports, Tier.ACKED) == once(range(7))
    assert last_beat(reports).settings["transactional.id"] == "tx"


def test_a_transaction_whose_end_times_out_is_reported_as_neither(brokers):
    slow = Cluster(answers_after_ms=300)
    audit = Audit(bootstrap_servers=brokers.servers, interval_s=0.3, close_s=30)
    producer = AuditedProducer({**slow.client, "transactional.id": "tx"}, audit=audit)
    producer.init_transactions(20)
    producer.begin_transaction()
    for _ in range(3):
        producer.produce("orders", b"x")
    producer.flush(60)
    with pytest.raises(KafkaException) as caught:
        producer.commit_transaction(0.05)
    assert caught.value.args[0].retriable()
    producer._end_audit()
    reports = brokers.reports()
    assert ids_at(reports, Tier.ACKED) == once(range(3))
    assert not ids_at(reports, Tier.COMMITTED) + ids_at(reports, Tier.ABORTED)


def test_expired_messages_may_be_stored(brokers):
    """No broker answers: each message is told `_MSG_TIMED_OUT`, and may have been written."""
    target = Audit(bootstrap_servers=brokers.servers, interval_s=0.3, close_s=30)
    conf = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0, "message.timeout.ms": 500}
    producer = AuditedProducer(conf, audit=target)
    for _ in range(5):
        producer.produce("orders", b"x")
    assert producer.flush(60) == 0
    producer.close()
    reports = brokers.reports()
    assert ids_at(reports, Tier.INDETERMINATE) == once(range(5))
    assert {name for r in reports for name in r.errors} == {"_MSG_TIMED_OUT"}
    assert last_beat(reports).metrics["record-error-total"] == 5


def test_excluded_topics_are_left_alone(brokers):
    audit = Audit(interval_s=0.3, exclude="cache-.*")
    with AuditedProducer(brokers.client, audit=audit) as producer:
        for topic in ("cache-1", "__private", "acktrail-reports", "orders"):
            producer.produce(topic, b"{}")
    assert brokers.records("cache-1")[0].headers() is None
    assert {r.topic for r in decodable(brokers)} == {"orders"}


def decodable(brokers):
    from acktrail.audit.wire import decode_reports

    bodies = [m.value() for m in brokers.records("acktrail-reports")]
    return [row for body in bodies if body != b"{}" for row in decode_reports(body)]


def test_asyncio(brokers, audit):
    async def main():
        async with AuditedAIOProducer(brokers.client, audit=audit) as producer:
            sends = [producer.produce("orders", f"{n}", headers={"h": "1"}) for n in range(50)]
            messages = await asyncio.gather(*sends)
            cancelled = asyncio.create_task(producer.produce("orders", b"late"))
            await asyncio.sleep(0)
            cancelled.cancel()
            with pytest.raises(KafkaException) as caught:
                await producer.produce("orders", b"x", partition=99)
            return messages, caught.value.args[0].code()

    messages, code = asyncio.run(main())
    assert len({(m.partition(), m.offset()) for m in messages}) == 50
    assert code == KafkaError._UNKNOWN_PARTITION
    reports = brokers.reports()
    assert ids_at(reports, Tier.ACKED) == once(range(51))
    assert last_beat(reports).records == 51


def test_a_callback_that_fails_leaves_nobody_waiting(brokers, audit):
    """One thread polls for all: it goes on after an exception of the application."""
    failed = threading.Event()

    def refuse(_text: str) -> None:
        failed.set()
        raise LookupError("of the application")

    async def main():
        conf = {**brokers.client, "statistics.interval.ms": 50, "stats_cb": refuse}
        async with AuditedAIOProducer(conf, audit=audit) as producer:
            assert await asyncio.to_thread(failed.wait, 60)
            producer._producer._users_statistics = None
            return await asyncio.wait_for(producer.produce("orders", b"x"), 60)

    assert asyncio.run(main()).offset() == 0


def test_retried_records_are_those_sent_beyond_what_was_handed_over():
    statistics = Statistics()

    def retried(sent: int, handed_over: int, requests: int = 0) -> float:
        partitions = {"0": {"txmsgs": sent, "msgs": handed_over}, "-1": {"txmsgs": 9, "msgs": 0}}
        brokers = {"b:9092/1": {"nodeid": 1, "txretries": requests, "waitresp_cnt": 2}}
        document = {"brokers": brokers, "topics": {"orders": {"partitions": partitions}}}
        return statistics.metrics_of(document)["record-retry-total"]

    assert [retried(100, 100), retried(4984, 4440), retried(5000, 4900)] == [0, 544, 544]
    assert retried(8339, 4540, requests=7) == 3799
