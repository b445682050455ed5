"""A producer on confluent-kafka, as a process of its own: `python -m lab.python_producer FILE`.

Prints what VerifiableProducer prints, and a `handed_over` line for every message that `produce()`
accepted, written out before the next one: so a `kill -9` hides nothing that was handed over. With
transactions, a `transaction_ended` line says how each ended, and `producer_fenced` that another
producer has taken the `transactional.id` over: this one ends.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

_CLIENTS = Path(__file__).parents[1] / "clients" / "python" / "src"
_stopping = False


def say(name: str, **facts: Any) -> None:
    """Print one event and hand it to the kernel at once."""
    line = json.dumps({"timestamp": time.time_ns() // 1_000_000, "name": name, **facts})
    os.write(1, line.encode() + b"\n")


def report(error: KafkaError | None, message: Message) -> None:
    """Print what became of one message."""
    value = (message.value() or b"").decode()
    key = message.key()
    name = key.decode() if isinstance(key, bytes) else key
    facts = {"key": name, "value": value, "topic": message.topic()}
    if error is None:
        place = {"partition": message.partition(), "offset": message.offset()}
        say("producer_send_success", **facts, **place)
    else:
        say("producer_send_error", **facts, exception=error.name(), message=error.str())


def main(settings: Path) -> None:
    """Produce at a steady pace, wait for every report, and say the sums."""
    wanted = json.loads(settings.read_text())
    signal.signal(signal.SIGTERM, _stop)
    transactional = bool(wanted["transaction_messages"])
    producer = _producer(wanted)
    if transactional:
        producer.init_transactions(60)
    say("startup_complete")
    work = _in_transactions if transactional else _one_by_one
    handed_over = work(producer, wanted)
    if _stopping and wanted["on_stop"] == "drop":
        return  # As a program that forgets to flush: nobody hears of what was queued.
    if _stopping and wanted["on_stop"] == "purge":
        producer.purge()
    producer.flush()
    if "audit" in wanted:
        producer.close()
    say("shutdown_complete")
    say("tool_data", sent=handed_over)


def audited_clients() -> Any:
    """The package of the audited clients: the installed one, else the one beside the lab."""
    try:
        import acktrail_client
    except ImportError:
        sys.path.insert(0, str(_CLIENTS))
        import acktrail_client
    return acktrail_client


def _producer(wanted: Mapping[str, Any]) -> Producer:
    settings = wanted["settings"] | _statistics(wanted)
    if "audit" not in wanted:
        return Producer(settings)
    library = audited_clients()
    made: Producer = library.AuditedProducer(settings, audit=library.Audit(**wanted["audit"]))
    return made


def _statistics(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that write librdkafka's statistics to a file, one JSON document to a line."""
    if not wanted.get("statistics_ms"):
        return {}
    file = Path(wanted["statistics"]).open("a", buffering=1)  # noqa: SIM115 - open to the end
    return {
        "statistics.interval.ms": wanted["statistics_ms"],
        "stats_cb": lambda document: file.write(document + "\n"),
    }


def _one_by_one(producer: Producer, wanted: Mapping[str, Any]) -> int:
    """Hand over messages until all are, or SIGTERM comes; returns how many."""
    handed_over = 0
    began = time.monotonic()
    while handed_over < wanted["messages"] and not _stopping:
        try:
            if not _hand_over(producer, wanted, handed_over):
                continue
            handed_over += 1
            _pace(producer, began, handed_over, wanted["per_second"])
        except (KafkaException, SystemError) as error:
            problem = _fatal(error)
            if problem is None:
                raise
            say("producer_fatal", error=problem.name(), message=problem.str())
            break
    return handed_over


def _in_transactions(producer: Producer, wanted: Mapping[str, Any]) -> int:
    """The same in transactions; those that are to be aborted are, with everything in the log."""
    handed_over = ended = 0
    began = time.monotonic()
    while handed_over < wanted["messages"] and not _stopping:
        first = handed_over
        last = min(first + wanted["transaction_messages"], wanted["messages"]) - 1
        ended += 1
        aborts = bool(wanted["aborts_every"]) and ended % wanted["aborts_every"] == 0
        try:
            producer.begin_transaction()
            while handed_over <= last:
                if _hand_over(producer, wanted, handed_over):
                    handed_over += 1
                    _pace(producer, began, handed_over, wanted["per_second"])
            producer.flush()
            outcome = _end_transaction(producer, aborts)
        except (KafkaException, SystemError) as error:
            problem = _fatal(error)
            if problem is None:
                raise
            say("producer_fenced", error=problem.name())
            break
        place = {"topic": wanted["topic"], "first": f"{wanted['prefix']}.{first}"}
        say("transaction_ended", outcome=outcome, **place, last=f"{wanted['prefix']}.{last}")
    return handed_over


def _fatal(error: Exception) -> KafkaError | None:
    """What ended the client for good; None: nothing has.

    It is thrown into whatever callback runs just then, which turns it into the cause of another.
    """
    thrown = error if isinstance(error, KafkaException) else error.__cause__
    if not isinstance(thrown, KafkaException):
        return None
    problem: KafkaError = thrown.args[0]
    return problem if problem.fatal() else None


def _end_transaction(producer: Producer, aborts: bool) -> str:
    """Commit or abort, asking again while that may help; returns what was done."""
    end: Callable[[float], None] = (
        producer.abort_transaction if aborts else producer.commit_transaction
    )
    while True:
        try:
            end(10)
        except KafkaException as error:
            problem: KafkaError = error.args[0]
            if problem.txn_requires_abort():
                aborts, end = True, producer.abort_transaction
            elif not problem.retriable():
                raise
        else:
            return "aborted" if aborts else "committed"


def _hand_over(producer: Producer, wanted: Mapping[str, Any], number: int) -> bool:
    """Give one message to the client; False where its queue is full just now."""
    topic, value = wanted["topic"], f"{wanted['prefix']}.{number}"
    large = bool(wanted["large_every"]) and (number + 1) % wanted["large_every"] == 0
    headers = {"padding": b"x" * wanted["large_bytes"]} if large else None
    key = str(number % wanted["repeating_keys"]) if wanted["repeating_keys"] else None
    try:
        producer.produce(topic, value, key, headers=headers, on_delivery=report)
    except BufferError:
        say("producer_send_refused", value=value, topic=topic)
        producer.poll(0.1)
        return False
    say("handed_over", value=value, topic=topic)
    return True


def _pace(producer: Producer, began: float, handed_over: int, per_second: int) -> None:
    """Serve callbacks until the next message is due."""
    producer.poll(0)
    while (ahead := handed_over / per_second - (time.monotonic() - began)) > 0:
        if _stopping:
            return
        producer.poll(min(ahead, 0.1))


def _stop(*_: object) -> None:
    global _stopping  # noqa: PLW0603 (a signal handler has nowhere else to write)
    _stopping = True


if __name__ == "__main__":
    main(Path(sys.argv[1]))
