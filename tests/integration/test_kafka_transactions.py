"""Transactions by the log alone: a real scanner, and a producer that reports nothing of them."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from acktrail.audit.wire import (
    Header,
    Report,
    encode_header,
    new_session,
    report_of_row,
    row_of_report,
)
from acktrail.contracts.arrow import rows
from acktrail.contracts.bronze import AUDIT_REPORTS
from acktrail.contracts.vocabulary import Tier
from acktrail.lake import Lake
from acktrail.settings.sources import LogScanSource
from ingest.registry import build_source
from lab.scenario import Topic
from lab.snapshots import create_topics
from lab.steps import wait_until
from tests.integration.kafka_nodes import around
from tests.unit.ingest.test_scan_transactions import ids

MOVES = "moves"
NOW_MS = 1_790_000_000_000


def heard(lake: Lake, session: str) -> None:
    """A heartbeat of the producer, as an audit by its interceptor would have it."""
    settings = {"client_id": "mover", "host": "h", "acks": "all", "transactional.id": "m"}
    beat = Report("p", Tier.HEARTBEAT, MOVES, 1, 1, session, settings=settings)
    now = datetime.now(UTC)
    beat = replace(beat, reported_ms=int(now.timestamp() * 1000))
    lake.append(AUDIT_REPORTS, rows(AUDIT_REPORTS, [row_of_report(beat, "lab", "clients", now)]))


def sent(producer: Producer, session: str, first: int, last: int) -> None:
    for seq in range(first, last):
        header = encode_header(Header(session, seq, 1))
        producer.produce(MOVES, b"x", partition=0, headers=[("acktrail", header)])
    assert producer.flush(60) == 0


def transactional(nodes, name: str, timeout_ms: int = 60_000) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": nodes.direct,
            "transactional.id": name,
            "transaction.timeout.ms": timeout_ms,
        }
    )
    producer.init_transactions(60)
    return producer


def test_committed_aborted_open_and_timed_out(nodes, tmp_path):
    create_topics(AdminClient({"bootstrap.servers": nodes.direct}), [Topic(MOVES)])
    lake, session, plain = Lake(tmp_path), new_session(NOW_MS), new_session(NOW_MS)
    producer = transactional(nodes, "mover")
    for first, ends in ((0, "commit"), (40, "abort"), (80, "commit")):
        producer.begin_transaction()
        sent(producer, session, first, first + 40)
        if ends == "commit":
            producer.commit_transaction(60)
        else:
            producer.abort_transaction(60)
    sent(Producer({"bootstrap.servers": nodes.direct}), plain, 0, 5)
    late = transactional(nodes, "late", timeout_ms=5_000)
    late.begin_transaction()
    sent(late, session, 120, 130)  # nobody ends it: the coordinator does, after its time-out
    behind = transactional(nodes, "behind")
    behind.begin_transaction()
    sent(behind, session, 130, 140)
    behind.commit_transaction(60)  # and is not stable while the one before it is open
    heard(lake, session)
    settings = LogScanSource(
        kind="log_scan", name="scan", topics=(MOVES,), settle_s=0.5, interval_s=0.1, max_records=50
    )
    source = build_source(settings, around(nodes))

    def told() -> list[Report]:
        for batch in source.poll(60):
            lake.append(batch.table, batch.rows, batch.positions)
        found = lake.read(AUDIT_REPORTS).to_pylist()
        return [report_of_row(row) for row in found]

    source.open(lake)
    first: list[Report] = []

    def stable() -> bool:
        first[:] = told()
        time.sleep(0.6)
        return len(ids(first, Tier.COMMITTED)) >= 80

    assert wait_until(stable, 60)
    committed = {(session, n) for n in (*range(40), *range(80, 120))}
    assert ids(first, Tier.COMMITTED) >= committed
    assert ids(first, Tier.ABORTED) >= {(session, n) for n in range(40, 80)}

    def all_ended() -> bool:
        first[:] = told()
        time.sleep(0.6)
        return len(ids(first, Tier.COMMITTED)) >= 90

    assert wait_until(all_ended, 90)
    source.close()
    assert ids(first, Tier.COMMITTED) == committed | {(session, n) for n in range(130, 140)}
    aborted = (*range(40, 80), *range(120, 130))
    assert ids(first, Tier.ABORTED) == {(session, n) for n in aborted}
