"""Whatever is wrong with the audit, the application goes on as without it."""

from __future__ import annotations

import base64
import gc
import logging
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from acktrail_client import Audit, AuditedProducer, problems
from acktrail_client.backlog import Backlog
from acktrail_client.rows import row_size
from acktrail_client.run_lists import encode_offsets
from acktrail_client.sent_ids import SentIds
from confluent_kafka import Producer
from hypothesis import given
from hypothesis import strategies as st

from acktrail.audit.wire import decode_header, own_header
from acktrail.contracts.vocabulary import Tier
from tests.unit.client.conftest import wait_for
from tests.unit.client.test_audited_producer import ids_at, last_beat, once

ROOT = Path(__file__).parents[3]
MESSAGES = 20_000


@pytest.fixture
def silent_server():
    """It takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def produce_all(producer: Producer) -> tuple[float, float]:
    """Seconds for all messages to be acknowledged, and the longest call."""
    began, longest = time.monotonic(), 0.0
    for _ in range(MESSAGES):
        before = time.monotonic()
        producer.produce("orders", b"x" * 100)
        producer.poll(0)
        longest = max(longest, time.monotonic() - before)
    assert producer.flush(30) == 0
    return time.monotonic() - began, longest


@pytest.mark.parametrize("what", ["down", "silent", "refused settings"])
def test_a_broken_audit_cluster_changes_nothing(brokers, silent_server, caplog, what):
    audit = {
        "down": Audit(bootstrap_servers="127.0.0.1:1", interval_s=0.2),
        "silent": Audit(bootstrap_servers=silent_server, interval_s=0.2),
        "refused settings": Audit(interval_s=0.2, conf={"no.such.setting": "1"}),
    }[what]
    bare = Producer(brokers.client)
    plain, _ = produce_all(bare)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with caplog.at_level(logging.ERROR, "acktrail_client"):
        producer = AuditedProducer(brokers.client, audit=audit)
        took, longest = produce_all(producer)
        ends = time.monotonic()
        producer.close()
        closing = time.monotonic() - ends
    # Waiting for the audit would take a socket's time-out; the rest is for a machine that is busy.
    assert took < 4 * plain + 15
    assert longest < 10
    assert closing < 15  # a second, and the time to close the client
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 80_000
    own = {producer._audit._reporter._thread.ident, threading.get_ident()}  # not of other tests
    said = [record.getMessage() for record in caplog.records if record.thread in own]
    assert len(said) == len({text.partition(":")[0] for text in said})  # one line of a kind
    assert said or what == "silent"
    assert sum(problems().values()) > 0
    assert len(brokers.records("orders")) == 2 * MESSAGES


def test_a_fault_of_ours_switches_the_audit_off(brokers, audit, monkeypatch, caplog):
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    heard = []
    with AuditedProducer(brokers.client, audit=audit) as producer:
        producer.produce("orders", b"1", on_delivery=lambda *_: heard.append(1))
        producer.flush(60)
        monkeypatch.setattr(SentIds, "take", broken)
        assert wait_for(lambda: producer._audit is not None and not producer._audit.on)
        monkeypatch.undo()
        producer.produce("orders", b"2", on_delivery=lambda *_: heard.append(2))
        producer.flush(60)
    assert heard == [1, 2]
    assert {m.value(): m.headers() is None for m in brokers.records("orders")} == {
        b"1": False,
        b"2": True,
    }
    assert "not audited any more: ZeroDivisionError('a bug')" in caplog.text


def test_an_exception_of_the_application_stays_its_own(brokers, audit):
    def refuse(*_: object) -> None:
        raise LookupError("of the application")

    producer = AuditedProducer(brokers.client, audit=audit)
    producer.produce("orders", b"1", on_delivery=refuse)
    with pytest.raises(LookupError, match="of the application"):
        producer.flush(60)
    producer.close()
    assert ids_at(brokers.reports(), Tier.ACKED) == once([0])


def test_a_last_report_that_has_no_time_is_made_later(brokers):
    """Another client's last report, or a cluster that is asked for its id, has the reporter."""
    audit = Audit(interval_s=0.3, close_s=0.05, conf={"client.id": "busy"})
    producer = AuditedProducer(brokers.client, audit=audit)
    producer.produce("orders", b"1")
    producer.flush(60)
    with producer._audit._reporter._lock:
        producer.close()
    assert wait_for(lambda: bool(brokers.reports()) and last_beat(brokers.reports()).closed)
    assert ids_at(brokers.reports(), Tier.ACKED) == once([0])


def test_a_producer_that_is_let_go_is_reported_to_its_end(brokers, audit):
    producer = AuditedProducer(brokers.client, audit=audit)
    producer.produce("orders", b"1")
    producer.flush(60)
    del producer
    gc.collect()
    assert wait_for(lambda: bool(brokers.reports()) and last_beat(brokers.reports()).closed)
    assert ids_at(brokers.reports(), Tier.ACKED) == once([0])


HEAD = """
import os, signal, sys, time
from acktrail_client import Audit, AuditedProducer
producer = AuditedProducer({"bootstrap.servers": sys.argv[1], "linger.ms": 0},
                           audit=Audit(interval_s=0.3, close_s=30))
for n in range(10):
    producer.produce("orders", b"x")
producer.flush(60)
"""


def run(brokers, body: str) -> subprocess.CompletedProcess[str]:
    path = f"{ROOT}:{ROOT / 'clients/python/src'}"
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", HEAD + body, brokers.servers],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_an_exit_without_close_is_reported(brokers):
    """What is still in the queue may be written or not: indeterminate, and none is left out."""
    done = run(
        brokers,
        """
slow = AuditedProducer({"bootstrap.servers": sys.argv[1], "linger.ms": 60000},
                       audit=Audit(interval_s=60))
for n in range(5):
    slow.produce("later", b"x")
""",
    )
    assert done.returncode == 0, done.stderr
    reports = brokers.reports()
    assert ids_at(reports, Tier.ACKED) == once(range(10))
    assert last_beat(reports).closed
    assert ids_at(reports, Tier.INDETERMINATE, "later") == once(range(5))
    assert last_beat(reports, "later").closed


def test_a_kill_leaves_what_was_reported(brokers):
    done = run(
        brokers,
        """
audit, reporter = producer._audit, producer._audit._reporter
while True:
    with reporter._lock:
        if audit.topics["orders"].outcomes == {"0": 10} and not reporter._backlog.bytes:
            os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.05)
""",
    )
    assert done.returncode == -signal.SIGKILL
    reports = brokers.reports()
    assert ids_at(reports, Tier.ACKED) == once(range(10))
    assert not any(r.closed for r in reports)


def test_a_forked_child_reports_nothing_as_its_parent(brokers):
    """A producer does not survive a fork; a new one of the child has a session of its own."""
    done = run(
        brokers,
        """
pid = os.fork()
if pid == 0:
    assert not producer._audit.on
    own = AuditedProducer({"bootstrap.servers": sys.argv[1]},
                          audit=Audit(interval_s=0.3, close_s=30))
    own.produce("orders", b"child")
    own.close()
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
producer.produce("orders", b"x")
producer.close()
""",
    )
    assert done.returncode == 0, done.stderr
    headers = [
        (m.value(), decode_header(own_header(m.headers()))) for m in brokers.records("orders")
    ]
    by_session: dict[str, set[int]] = {}
    for _, header in headers:
        by_session.setdefault(header.session, set()).add(header.seq)
    assert sorted(by_session.values(), key=len) == [{0}, set(range(11))]
    reports = brokers.reports()
    for session, seqs in by_session.items():
        own = [r for r in reports if r.session == session]
        assert ids_at(own, Tier.ACKED) == once(seqs)
        assert last_beat(own).closed
        assert len({r.reporter for r in own}) == 1


def row(count: int, seq: int) -> dict:
    ids = encode_offsets(range(0, 2 * count, 2), range(0, 7 * count, 7))
    return {"tier": "acked", "records": count, "ids": base64.b64encode(ids).decode(), "seq": seq}


@given(st.lists(st.tuples(st.integers(1, 60), st.sampled_from(["", "ok", "bad"])), max_size=40))
def test_memory_is_bounded_and_what_is_dropped_is_counted(steps):
    """Each row is sent, waits, or was dropped; offsets go first, then the oldest rows."""
    most, backlog, dropped, sent = 4_000, Backlog(4_000), [], []
    for number, (count, answer) in enumerate(steps):
        dropped += backlog.add("s", [row(count, number)], [{"tier": "heartbeat"}])
        assert backlog.bytes <= most
        if answer and (message := backlog.next_message(1_500)) is not None:
            if answer == "ok":
                backlog.sent(message)
                sent += message.rows
            else:
                backlog.failed(message)
    waiting = [] if "s" not in backlog._clients else list(backlog._clients["s"].rows)
    everything = sorted(r["seq"] for r in [*waiting, *dropped, *sent])
    assert everything == list(range(len(steps)))
    assert [r["seq"] for r in waiting] == sorted(r["seq"] for r in waiting)
    assert backlog.bytes == sum(map(row_size, waiting))
    assert backlog.in_flight == 0
