"""The truth about every message, from what clients printed and what whole scans of the log found.

Nothing here is taken from acktrail's pipeline, and nothing is guessed: where a killed Java producer
took its knowledge with it, `complete` is false and the sums say "at least".
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from lab.events import Event, read_events

# A time-out says so in its text; a broker's refusal reaches the callback when no retry is left.
_CAUSES = {
    "not present in metadata": "metadata_timeout",
    "ms has passed since batch creation": "delivery_timeout",
    "_MSG_TIMED_OUT": "delivery_timeout",
    "NotEnoughReplicas": "retries_exhausted",
    "Disconnected from node": "retries_exhausted",
}

Told = Literal["acked", "acked_no_offset", "failed", "nothing"]


@dataclass
class Message:
    """One message of one producer."""

    producer: str
    topic: str
    seq: int
    told: Told = "nothing"
    told_at_ms: int | None = None
    told_partition: int | None = None
    told_offset: int | None = None
    error: str | None = None
    error_message: str | None = None
    in_log: list[tuple[int, int]] = field(default_factory=list)
    """(partition, offset) of every copy."""
    received: dict[str, int] = field(default_factory=dict)
    """Times received, by group."""
    lost: bool = False
    """In no log at the end."""
    cause: str | None = None
    """Why it is lost: what the application was told, else what the scenario did to it."""


@dataclass
class Sums:
    """What became of one producer's messages."""

    producer: str
    topic: str
    complete: bool
    """Every message handed over is known; false: at least these."""
    handed_over: int = 0
    acked: int = 0
    failed: int = 0
    untold: int = 0
    records: int = 0
    """Copies in the log."""
    in_log: int = 0
    """Messages in the log."""
    lost_after_ack: int = 0
    lost_told: int = 0
    lost_silent: int = 0
    duplicated: int = 0
    """Messages with more than one copy."""
    out_of_order: int = 0
    """Steps back of the id, in offset order, over all partitions."""
    ghosts: int = 0
    """Reported failed, and in the log."""
    errors: dict[str, int] = field(default_factory=dict)
    """Failed messages by what the application was told."""
    missed: dict[str, int] = field(default_factory=dict)
    """By group: messages in the log that it never received."""
    silence_s: float | None = None
    """The longest time without an ack after the first fault began; None: no ack came any more."""


@dataclass
class Truth:
    """The truth of one run."""

    name: str
    sums: dict[str, Sums]
    resumed_s: dict[str, float | None]
    """By group: the longest time without a record after the first fault began."""


def establish(evidence: Path) -> Truth:
    """Establish the truth of the run in *evidence* and write it to `truth/`."""
    scenario = json.loads((evidence / "scenario.json").read_text())
    faults = json.loads((evidence / "faults.json").read_text())
    began = min((entry["at_ms"] for entry in faults), default=scenario["began_at_ms"])
    scans = {
        t["name"]: read_scan(evidence / "scan" / f"{t['name']}.jsonl") for t in scenario["topics"]
    }
    received = {c["name"]: _received(evidence, c) for c in scenario["consumers"]}
    messages: list[Message] = []
    sums = {}
    for producer in scenario["producers"]:
        events = list(read_events(_printed(evidence, "producer", producer)))
        own, complete = _messages(producer, events)
        _add_log(own, producer, scans[producer["topic"]])
        groups = [c for c in scenario["consumers"] if c["topic"] == producer["topic"]]
        for consumer in groups:
            _add_received(own, producer, consumer["group"], received[consumer["name"]])
        in_order = [own[seq] for seq in sorted(own)]
        _add_causes(in_order, scenario["expect"].get(producer["name"], {}).get("cause"))
        total = _sum(producer, in_order, complete)
        total.out_of_order = steps_back(producer["prefix"], scans[producer["topic"]])
        total.missed = {c["group"]: _missed(in_order, c["group"]) for c in groups}
        total.silence_s = _producer_silence(events, began)
        sums[producer["name"]] = total
        messages += in_order
    resumed = {
        c["group"]: silence([e["timestamp"] for e in received[c["name"]]], began)
        for c in scenario["consumers"]
    }
    truth = Truth(scenario["name"], sums, resumed)
    _write(evidence / "truth", truth, messages)
    return truth


def read_scan(path: Path) -> list[Event]:
    """The records of a scan, in the order of partition and offset."""
    records = [event for event in read_events(path) if "offset" in event]
    return sorted(records, key=lambda record: (record["partition"], record["offset"]))


def steps_back(prefix: str, records: list[Event]) -> int:
    """How often an id is lower than the one before it, per partition in offset order."""
    last: dict[int, int] = {}
    steps = 0
    for record in records:
        seq = seq_of(prefix, record["value"])
        if seq is None:
            continue
        if seq < last.get(record["partition"], -1):
            steps += 1
        last[record["partition"]] = seq
    return steps


def seq_of(prefix: str, value: str | None) -> int | None:
    """The id in a message's value `prefix.id`, if it is that producer's."""
    head, dot, tail = (value or "").partition(".")
    return int(tail) if dot and head == prefix and tail.isdigit() else None


def silence(times_ms: list[int], began_ms: int) -> float | None:
    """The longest gap between two events, of those that end after *began_ms*; None: none came."""
    ordered = sorted(times_ms)
    gaps = [
        after - max(before, began_ms)
        for before, after in zip([began_ms, *ordered], ordered, strict=False)
        if after > began_ms
    ]
    return max(gaps) / 1000 if gaps else None


def _printed(evidence: Path, role: str, client: dict[str, Any]) -> Path:
    if client["kind"] == "python":
        return evidence / "python" / f"{client['name']}.jsonl"
    return evidence / "verifiable" / f"{role}-{client['name']}.jsonl"


def _producer_silence(events: list[Event], began_ms: int) -> float | None:
    """The longest time without an ack; None where the last word was a failure."""
    told = [e for e in events if e["name"] in ("producer_send_success", "producer_send_error")]
    if not told or told[-1]["name"] == "producer_send_error":
        return None
    acks = [e["timestamp"] for e in told if e["name"] == "producer_send_success"]
    return silence(acks, began_ms)


def _messages(producer: dict[str, Any], events: list[Event]) -> tuple[dict[int, Message], bool]:
    """Every message the producer is known to have been handed, and whether that is all."""
    own: dict[int, Message] = {}
    complete = producer["kind"] == "python"
    for event in events:
        name = event["name"]
        if name == "tool_data":
            complete = True
            for seq in range(event["sent"]):
                _of(own, producer, seq)
        elif name in ("handed_over", "producer_send_success", "producer_send_error"):
            known = seq_of(producer["prefix"], event["value"])
            if known is not None:
                _tell(_of(own, producer, known), event)
    return own, complete


def _of(own: dict[int, Message], producer: dict[str, Any], seq: int) -> Message:
    return own.setdefault(seq, Message(producer["name"], producer["topic"], seq))


def _tell(message: Message, event: Event) -> None:
    if event["name"] == "producer_send_success":
        message.told = "acked" if event["offset"] >= 0 else "acked_no_offset"
        message.told_partition = event["partition"]
        message.told_offset = event["offset"] if event["offset"] >= 0 else None
    elif event["name"] == "producer_send_error":
        message.told = "failed"
        message.error = event["exception"].removeprefix("class ")
        message.error_message = event["message"]
    else:
        return
    message.told_at_ms = event["timestamp"]


def _add_log(own: dict[int, Message], producer: dict[str, Any], records: list[Event]) -> None:
    for record in records:
        seq = seq_of(producer["prefix"], record["value"])
        if seq is not None:
            place = (record["partition"], record["offset"])
            _of(own, producer, seq).in_log.append(place)


def _received(evidence: Path, consumer: dict[str, Any]) -> list[Event]:
    printed = read_events(_printed(evidence, "consumer", consumer))
    return [event for event in printed if event["name"] == "record_data"]


def _add_received(
    own: dict[int, Message], producer: dict[str, Any], group: str, records: list[Event]
) -> None:
    counts: dict[int, int] = defaultdict(int)
    for record in records:
        seq = seq_of(producer["prefix"], record["value"])
        if seq is not None:
            counts[seq] += 1
    for seq, count in counts.items():
        _of(own, producer, seq).received[group] = count


def _add_causes(messages: list[Message], done_to_them: str | None) -> None:
    for message in messages:
        if not message.in_log:
            message.lost = True
            message.cause = cause_of_error(message.error, message.error_message) or done_to_them


def cause_of_error(error: str | None, text: str | None) -> str | None:
    """What a client's error says of the cause; None where the error leaves it open."""
    said = f"{error}: {text}"
    for part, cause in _CAUSES.items():
        if part in said:
            return cause
    return None


def _missed(messages: list[Message], group: str) -> int:
    return sum(bool(m.in_log) and group not in m.received for m in messages)


def _sum(producer: dict[str, Any], messages: list[Message], complete: bool) -> Sums:
    total = Sums(producer["name"], producer["topic"], complete, handed_over=len(messages))
    for message in messages:
        total.acked += message.told in ("acked", "acked_no_offset")
        total.failed += message.told == "failed"
        total.untold += message.told == "nothing"
        total.records += len(message.in_log)
        total.in_log += bool(message.in_log)
        total.duplicated += len(message.in_log) > 1
        total.ghosts += message.told == "failed" and bool(message.in_log)
        if message.error is not None:
            total.errors[message.error] = total.errors.get(message.error, 0) + 1
        if not message.in_log:
            _add_loss(total, message, producer["acks"])
    return total


def _add_loss(total: Sums, message: Message, acks: str) -> None:
    """With acks=0 the client's "success" says only that the bytes were handed to the kernel."""
    if message.told == "failed":
        total.lost_told += 1
    elif message.told == "nothing" or acks == "0":
        total.lost_silent += 1
    else:
        total.lost_after_ack += 1


def _write(directory: Path, truth: Truth, messages: list[Message]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "truth.json").write_text(json.dumps(asdict(truth), indent=1) + "\n")
    with (directory / "truth.jsonl").open("w") as file:
        for message in messages:
            file.write(json.dumps(asdict(message)) + "\n")
