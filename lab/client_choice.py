"""Which clients a scenario runs with: those it names, or audited ones in their place.

`verifiable`: as the scenario says; what clients print is read as their audit. `python`: audited
clients on confluent-kafka, whose reports come by the audit topic. Settings mean the same: a default
that differs between Java's clients and librdkafka is set to what the scenario's client would have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from acktrail.errors import UsageError
from acktrail.kafka_defaults import DELIVERY_TIMEOUT_MS
from lab.scenario import Consumer, Producer, Scenario

VERIFIABLE = "verifiable"
_NOT_IN_LIBRDKAFKA = ("max.block.ms",)


def with_clients(scenario: Scenario, choice: str) -> Scenario:
    """*scenario* with the clients of that name."""
    if choice == VERIFIABLE:
        return scenario
    if choice not in _AUDITED:
        raise UsageError(f"clients {choice!r}: expected one of {', '.join(CHOICES)}.")
    producer, consumer = _AUDITED[choice]
    return replace(
        scenario,
        clients=choice,
        producers=tuple(map(producer, scenario.producers)),
        consumers=tuple(map(consumer, scenario.consumers)),
    )


def _python_producer(wanted: Producer) -> Producer:
    if wanted.kind == "python":
        return replace(wanted, audited="python")
    settings = {n: v for n, v in wanted.settings.items() if n not in _NOT_IN_LIBRDKAFKA}
    if "buffer.memory" in settings:
        kilobytes = max(1, int(settings.pop("buffer.memory")) // 1024)
        settings["queue.buffering.max.kbytes"] = str(kilobytes)
    if "request.timeout.ms" in settings:  # in librdkafka this is how long the broker may take
        settings["socket.timeout.ms"] = settings["request.timeout.ms"]
    settings.setdefault("delivery.timeout.ms", str(DELIVERY_TIMEOUT_MS))
    if wanted.acks == "all" and wanted.retries > 0:
        settings.setdefault("enable.idempotence", "true")
    return replace(wanted, kind="python", audited="python", settings=settings)


def _python_consumer(wanted: Consumer) -> Consumer:
    settings = {"isolation.level": wanted.isolation, **wanted.settings}
    return replace(wanted, kind="python", audited="python", settings=settings)


_AUDITED: Mapping[str, tuple[Callable[[Producer], Producer], Callable[[Consumer], Consumer]]] = {
    "python": (_python_producer, _python_consumer)
}
CHOICES = (VERIFIABLE, *_AUDITED)
