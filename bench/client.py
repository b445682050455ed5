"""What the audit costs an application: CPU per message and at a steady rate, and bytes.

librdkafka's own broker in a process beside it, 200-byte values, a callback of the application in
both. The peer is confluent-kafka's client without the audit. CPU times, the best of some runs.
"""

from __future__ import annotations

import multiprocessing
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import MethodType
from typing import Any, ClassVar

from confluent_kafka import Consumer, Producer, TopicPartition

sys.path.insert(0, str(Path(__file__).parents[1] / "clients" / "python" / "src"))

from acktrail_client import Audit, AuditedConsumer, AuditedProducer

MESSAGES = 200_000
RUNS = 4
KEPT, PASSES = 8_000, 10
"""librdkafka's own broker keeps 5 MB of a partition: so many messages are read again and again."""
RATE, RATE_S = 20_000, 12
VALUE = b"x" * 200
KEYS = [str(number) for number in range(1_000)]
Make = Callable[[dict[str, Any]], Any]
_hand_over = Producer.produce


def run() -> list[dict[str, Any]]:
    """One row for each shape of traffic, and figures without a peer."""
    with mock_brokers() as servers:
        return [*_produce(servers), _consume(servers), *_at_a_rate(servers)]


@contextmanager
def mock_brokers() -> Iterator[str]:
    """librdkafka's own broker in a process beside this one: where it is reached."""
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    broker = spawn.Process(target=_broker, args=(theirs,), daemon=True)
    broker.start()
    try:
        yield ours.recv()
    finally:
        broker.kill()


def _broker(pipe: Any) -> None:
    conf = {"test.mock.num.brokers": 1, "bootstrap.servers": "x:1", "log_level": 0}
    host = Producer(conf)
    found = host.list_topics(timeout=10).brokers.values()
    pipe.send(",".join(f"{one.host}:{one.port}" for one in found))
    threading.Event().wait()


class _Floor(Producer):
    """What any audit in Python costs at least: a header, and a callback that knows its number.

    The header is always the same, nothing is noted, no lock is taken and no clock is read.
    """

    _headers: ClassVar = [("acktrail", b"x" * 33)]

    def produce(  # type: ignore[override]
        self, topic: str, value: Any = None, key: Any = None, on_delivery: Any = None
    ) -> None:
        """As `Producer.produce`."""
        if on_delivery is not self._user:
            self._user, self._pass_on = on_delivery, _passing_on(on_delivery)
        told = MethodType(self._pass_on, 1)
        _hand_over(self, topic, value, key, -1, told, None, 0, self._headers)

    _user: Any = None
    _pass_on: Any = None


def _passing_on(user: Any) -> Callable[..., None]:
    def pass_on(_number: int, error: Any, message: Any) -> None:
        user(error, message)

    return pass_on


def _audited(conf: dict[str, Any]) -> AuditedProducer:
    return AuditedProducer(conf, audit=Audit(interval_s=10))


def _produce(servers: str) -> list[dict[str, Any]]:
    shapes = {"unkeyed": (None, 1.8), "keyed": (KEYS, 2.3)}
    rows = []
    for name, (keys, bar) in shapes.items():
        ours = min(_producing(_audited, servers, keys) for _ in range(RUNS))
        peer = min(_producing(Producer, servers, keys) for _ in range(RUNS))
        rows.append(_row(f"client_{name}", ours, peer, bar))
        if keys is None:
            floor = min(_producing(_Floor, servers, keys) for _ in range(RUNS))
            rows.append({"name": "client_unkeyed_floor", "ours_s": floor, "ratio": floor / peer})
    return rows


def _producing(make: Make, servers: str, keys: list[str] | None) -> float:
    """Seconds of CPU of the application's thread."""
    conf = {"bootstrap.servers": servers, "queue.buffering.max.messages": 2 * MESSAGES}
    producer, answered = make(conf), 0

    def told(_error: Any, _message: Any) -> None:
        nonlocal answered
        answered += 1

    producer.produce("warm", VALUE, on_delivery=lambda *_: None)
    producer.flush(10)
    began = time.thread_time()
    for number in range(MESSAGES):
        key = None if keys is None else keys[number % 1_000]
        producer.produce("orders", VALUE, key, on_delivery=told)
        if number % 100 == 0:
            producer.poll(0)
    while answered < MESSAGES:
        producer.poll(0.1)
    used = time.thread_time() - began
    producer.close()
    return used


def _consume(servers: str) -> dict[str, Any]:
    producer = _audited({"bootstrap.servers": servers})
    for number in range(KEPT):
        while True:
            try:
                producer.produce("read", VALUE, partition=number % 2)
                break
            except BufferError:
                producer.poll(0.01)
    producer.close()

    def reading(make: Make) -> float:
        consumer = make({"bootstrap.servers": servers, "group.id": "bench"})
        used = 0.0
        for _ in range(PASSES):
            consumer.assign([TopicPartition("read", number, 0) for number in range(2)])
            seen, began = 0, time.thread_time()
            while seen < KEPT:
                for message in consumer.consume(500, 1.0):
                    if message.error() is None and len(message.value()) == len(VALUE):
                        seen += 1
            used += time.thread_time() - began
        consumer.close()
        return used

    ours = min(reading(lambda conf: AuditedConsumer(conf, audit=Audit())) for _ in range(RUNS))
    return _row("client_consumer", ours, min(reading(Consumer) for _ in range(RUNS)), 1.3)


def _at_a_rate(servers: str) -> list[dict[str, Any]]:
    """At 20,000 messages a second: CPU that the audit adds, in cores; bytes it reports."""
    bare, _ = _paced(Producer, servers)
    audited, reported = _paced(_audited, servers)
    added = (audited - bare) / RATE_S
    per_million = reported / (RATE * RATE_S) * 1_000_000
    return [
        {"name": "client_cores_at_20000_per_s", "ours_s": added, "ratio": added, "bar": 0.05},
        {"name": "client_report_bytes_per_million", "ours_s": per_million},
    ]


def _paced(make: Make, servers: str) -> tuple[float, int]:
    """Seconds of CPU of the whole process, and bytes on the audit topic."""
    before = _reported(servers)
    producer = make({"bootstrap.servers": servers})
    began, used = time.monotonic(), time.process_time()
    for turn in range(RATE_S * 100):
        for number in range(RATE // 100):
            producer.produce("paced", VALUE, KEYS[number])
        producer.poll(0)
        time.sleep(max(0.0, began + (turn + 1) / 100 - time.monotonic()))
    producer.flush(30)
    producer.close()
    return time.process_time() - used, _reported(servers) - before


def _reported(servers: str) -> int:
    topic = Audit().topic
    reader = Consumer(
        {"bootstrap.servers": servers, "group.id": "look", "enable.partition.eof": True}
    )
    partitions = reader.list_topics(topic, timeout=10).topics[topic].partitions
    reader.assign([TopicPartition(topic, number, 0) for number in partitions])
    size, ends = 0, 0
    while ends < len(partitions) and (message := reader.poll(10)) is not None:
        ends += message.error() is not None
        size += 0 if message.error() is not None else len(message.value())
    reader.close()
    return size


def _row(name: str, ours: float, peer: float, bar: float) -> dict[str, Any]:
    row = {"name": name, "ours_s": ours, "peer": "confluent-kafka", "peer_s": peer}
    return {**row, "ratio": ours / peer, "bar": bar}
