"""An audit cluster that is down for ten minutes costs the application bounded memory, and no more.

5,000 keyed messages a second, beside the same application without an audit;
both on librdkafka's own brokers in a process of their own.
"""

from __future__ import annotations

import multiprocessing
import time
from typing import Any

from acktrail_client import Audit, AuditedProducer
from confluent_kafka import Producer

from bench.client import mock_brokers

MINUTES = 10
PER_SECOND = 5_000
BOUND_MB = 16
SLACK_MB = 24
"""What Python's allocator and the reporter's own producer take besides."""


def _work(servers: str, audited: bool, pipe: Any) -> None:
    """Produce at a steady rate, and send the memory that is in use every ten seconds."""
    conf = {"bootstrap.servers": servers, "linger.ms": 20}
    target = Audit(bootstrap_servers="127.0.0.1:1", memory_bytes=BOUND_MB << 20)
    producer = AuditedProducer(conf, audit=target) if audited else Producer(conf)
    keys = [str(number) for number in range(1_000)]
    began = time.monotonic()
    longest = sent = 0.0
    for turn in range(MINUTES * 60 * 100):
        before = time.monotonic()
        for number in range(PER_SECOND // 100):
            producer.produce("orders", b"x" * 200, keys[int(sent + number) % 1_000])
        producer.poll(0)
        longest = max(longest, time.monotonic() - before)
        sent += PER_SECOND // 100
        if turn % 1_000 == 999:
            pipe.send((_resident_mb(), longest))
        time.sleep(max(0.0, began + (turn + 1) / 100 - time.monotonic()))
    assert producer.flush(30) == 0
    before = time.monotonic()
    producer.close()
    pipe.send(time.monotonic() - before)


def _resident_mb() -> float:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096 / 1e6


def test_memory_is_bounded_while_the_audit_cluster_is_down():
    spawn = multiprocessing.get_context("spawn")
    with mock_brokers() as servers:
        runs = {}
        for audited in (False, True):
            ours, theirs = spawn.Pipe()
            process = spawn.Process(target=_work, args=(servers, audited, theirs))
            process.start()
            runs[audited] = (process, ours)
        seen: dict[bool, list[float]] = {False: [], True: []}
        ended: dict[bool, float] = {}
        while len(ended) < 2:
            for audited, (_, pipe) in runs.items():
                while audited not in ended and pipe.poll(0.5):
                    told = pipe.recv()
                    if isinstance(told, float):
                        ended[audited] = told
                    else:
                        seen[audited].append(told[0])
        for process, _ in runs.values():
            process.join(60)
    bare, ours = max(seen[False]), max(seen[True])
    minutes = ", ".join(f"{mb:.0f}" for mb in seen[True][5::6])
    print(f"without an audit {bare:.0f} MB; audited {ours:.0f} MB, by minute {minutes}")
    print(f"close() took {ended[True]:.2f} s, without an audit {ended[False]:.2f} s")
    assert ours - bare <= BOUND_MB + SLACK_MB
    assert ended[True] - ended[False] <= 2.5
