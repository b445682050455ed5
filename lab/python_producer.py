"""A producer on confluent-kafka, as a process of its own: `python -m lab.python_producer FILE`.

Prints what VerifiableProducer prints, and a `handed_over` line for every message that `produce()`
accepted, written out before the next one: so a `kill -9` hides nothing that was handed over.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

_stopping = False


def say(name: str, **facts: Any) -> None:
    """Print one event and hand it to the kernel at once."""
    line = json.dumps({"timestamp": time.time_ns() // 1_000_000, "name": name, **facts})
    os.write(1, line.encode() + b"\n")


def report(error: KafkaError | None, message: Message) -> None:
    """Print what became of one message."""
    value = (message.value() or b"").decode()
    facts = {"key": None, "value": value, "topic": message.topic()}
    if error is None:
        place = {"partition": message.partition(), "offset": message.offset()}
        say("producer_send_success", **facts, **place)
    else:
        say("producer_send_error", **facts, exception=error.name(), message=error.str())


def main(settings: Path) -> None:
    """Produce at a steady pace, wait for every report, and say the sums."""
    wanted = json.loads(settings.read_text())
    signal.signal(signal.SIGTERM, _stop)
    producer = Producer(wanted["settings"])
    say("startup_complete")
    handed_over = 0
    began = time.monotonic()
    while handed_over < wanted["messages"] and not _stopping:
        value = f"{wanted['prefix']}.{handed_over}"
        try:
            producer.produce(wanted["topic"], value=value, on_delivery=report)
        except BufferError:
            say("producer_send_refused", value=value, topic=wanted["topic"])
            producer.poll(0.1)
            continue
        say("handed_over", value=value, topic=wanted["topic"])
        handed_over += 1
        _pace(producer, began, handed_over, wanted["per_second"])
    producer.flush()
    say("shutdown_complete")
    say("tool_data", sent=handed_over)


def _pace(producer: Producer, began: float, handed_over: int, per_second: int) -> None:
    """Serve callbacks until the next message is due."""
    producer.poll(0)
    while (ahead := handed_over / per_second - (time.monotonic() - began)) > 0:
        producer.poll(min(ahead, 0.1))


def _stop(*_: object) -> None:
    global _stopping  # noqa: PLW0603 (a signal handler has nowhere else to write)
    _stopping = True


if __name__ == "__main__":
    main(Path(sys.argv[1]))
