"""Which clients a scenario runs with: those it names, or audited ones in their place.

`verifiable`: as the scenario says; what clients print is read as their audit. `python`: audited
clients on confluent-kafka, whose reports come by the audit topic. Settings mean the same: a default
that differs between Java's clients and librdkafka is set to what the scenario's client would have.
`java-interceptor` and `java-wrapper`: the scenario's own clients on the JVM, with the jar of
`clients/java`; consumers have the interceptor in both. Its Python clients are audited Python ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from acktrail.errors import UsageError
from acktrail.kafka_defaults import DELIVERY_TIMEOUT_MS
from lab.scenario import Consumer, Producer, Scenario

VERIFIABLE = "verifiable"
JAVA_INTERCEPTOR = "java-interceptor"
JAVA_WRAPPER = "java-wrapper"
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


def _java_producer(audited: str, wanted: Producer) -> Producer:
    return _python_producer(wanted) if wanted.kind == "python" else replace(wanted, audited=audited)


def _java_consumer(wanted: Consumer) -> Consumer:
    if wanted.kind == "python":
        return _python_consumer(wanted)
    return replace(wanted, audited=JAVA_INTERCEPTOR)


_AUDITED: Mapping[str, tuple[Callable[[Producer], Producer], Callable[[Consumer], Consumer]]] = {
    "python": (_python_producer, _python_consumer),
    JAVA_INTERCEPTOR: (partial(_java_producer, JAVA_INTERCEPTOR), _java_consumer),
    JAVA_WRAPPER: (partial(_java_producer, JAVA_WRAPPER), _java_consumer),
}
CHOICES = (VERIFIABLE, *_AUDITED)
