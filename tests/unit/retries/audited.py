"""Audit reports for tests: what two kinds of reporters say of messages whose truth is known."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from acktrail.audit.wire import Report, Sighting, encode_sightings
from acktrail.contracts.vocabulary import Tier
from ingest.sources.verifiable_lines import VerifiableReader
from tests.unit.retries.retry_lines import NOON

NOON_MS = int(NOON.timestamp() * 1000)
SETTINGS = {"client_id": "pay-1", "host": "app1", "acks": "all"}


@dataclass(frozen=True)
class Message:
    """One message: when it was handed over, and what its producer was told when; seconds."""

    seq: int
    created: float
    fate: str = ""
    """acked, failed, indeterminate, or empty: not told yet."""
    told: float = 0.0
    partition: int = 3


def ms(second: float) -> int:
    return NOON_MS + round(second * 1000)


def seen(
    messages: Sequence[Message],
    until: float,
    every: float = 5,
    session: str = "s",
    settings: dict[str, str] | None = None,
    topic: str = "orders",
) -> list[Report]:
    """Reports, every few seconds until then, of a reporter that sees messages handed over."""
    found: list[Report] = []
    minutes: dict[int, int] = {}
    for m in sorted(messages, key=lambda m: m.seq):
        minutes.setdefault(ms(m.created) // 60_000, m.seq)
    start = min(m.created for m in messages)
    number = 0
    while start < until:
        end = min(start + every, until)
        sightings = [
            Sighting(session, topic, m.seq, Tier.SENT, ms(m.created))
            for m in messages
            if start <= m.created < end
        ]
        sightings += [
            Sighting(session, topic, m.seq, Tier(m.fate), ms(m.told),
                     m.partition if m.fate == "acked" else -1,
                     m.seq if m.fate == "acked" else None)
            for m in messages
            if m.fate and start <= m.told < end
        ]  # fmt: skip
        found += encode_sightings(sightings, "seen", number, ms(end), number)
        pairs = [p for p in minutes.items() if p[0] <= ms(end) // 60_000]
        found.append(
            Report("seen", Tier.HEARTBEAT, topic, number, ms(end), session, part=number,
                   settings=SETTINGS if settings is None else settings,
                   minutes=[n for pair in pairs for n in pair])
        )  # fmt: skip
        number += len(sightings) + 1
        start = end
    return found


def verifiable(
    messages: Iterable[Message],
    until: float,
    piece: int = 2000,
    closed: bool = False,
    settings: dict[str, str] | None = None,
    topic: str = "orders",
) -> list[Report]:
    """What is read of a VerifiableProducer's lines until then: it tells of answers only."""
    told = sorted((m for m in messages if m.fate and m.told < until), key=lambda m: m.told)
    lines = [_line(m, topic) for m in told]
    if closed:
        lines.append({"timestamp": ms(until), "name": "shutdown_complete"})
    text = "".join(json.dumps(line) + "\n" for line in lines).encode()
    reader = VerifiableReader("vp", settings=SETTINGS if settings is None else settings)
    reports, at = [], 0
    while at < len(text):
        block = text[at : at + piece]
        block = block[: block.rfind(b"\n") + 1]
        reports += reader.read(block, at).reports
        at += len(block)
    return reports


def _line(message: Message, topic: str) -> dict[str, object]:
    value = {"topic": topic, "value": f"7.{message.seq}", "timestamp": ms(message.told)}
    if message.fate == "acked":
        place = {"offset": message.seq, "partition": message.partition}
        return {"name": "producer_send_success", **place, **value}
    error = {"failed": "NotEnoughReplicasException", "indeterminate": "TimeoutException"}
    exception = f"class org.apache.kafka.common.errors.{error[message.fate]}"
    return {"name": "producer_send_error", "exception": exception, "message": "", **value}
