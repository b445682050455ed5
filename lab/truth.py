"""The truth about every message, from what clients printed and what whole scans of the log found.

Nothing here is taken from acktrail's pipeline, and nothing is guessed: where a killed Java producer
took its knowledge with it, `complete` is false and the sums say "at least".

`truth.jsonl` has the fields of `Message`, one line each; `truth.json` those of `Truth`. States of a
message for a group: `received`; `skipped` (owed, passed over, never received); `expired` (owed, and
removed from the log before the group read it); `not_read` (the group has not come so far);
`before_start`, `compacted`, `deleted` (with its topic) and `aborted` (not owed); `lost` (in no log:
no fault of the group).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from lab.events import Event, read_events
from lab.group_truth import MISSED, GroupReading, GroupSums, judge_groups
from lab.removed import TopicLog, topic_log

# A time-out says so in its text; a broker's refusal reaches the callback when no retry is left.
_CAUSES = {
    "not present in metadata": "metadata_timeout",
    "ms has passed since batch creation": "delivery_timeout",
    "_MSG_TIMED_OUT": "delivery_timeout",
    "NotEnoughReplicas": "retries_exhausted",
    "NOT_ENOUGH_REPLICAS": "retries_exhausted",
    "Disconnected from node": "retries_exhausted",
    "RecordTooLarge": "record_too_large",
    "MSG_SIZE_TOO_LARGE": "record_too_large",
    "Failed to allocate": "buffer_exhausted",
    "BufferExhausted": "buffer_exhausted",
    "_PURGE_QUEUE": "dropped_at_close",
    "_PURGE_INFLIGHT": "dropped_at_close",
    "forcefully": "dropped_at_close",
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
    """In no log at the end, and neither aborted nor removed by the owner of the log."""
    cause: str | None = None
    """Why it is lost: what the application was told, else what the scenario did to it."""
    causes: list[str] = field(default_factory=list)
    """All causes that were necessary, that one first."""
    host: str = ""
    client_id: str = ""
    key: str | None = None
    aborted: bool = False
    """Of a transaction that was not committed."""
    taken_by: str | None = None
    """Who removed it: compaction, retention, delete_records, topic_deleted."""
    cut: bool = False
    """Lost, and had been in the log: acked with an offset, or received by a group."""
    groups: dict[str, str] = field(default_factory=dict)
    """What became of it for each group of its topic."""
    group_causes: dict[str, list[str]] = field(default_factory=dict)
    """Where a group missed it: why."""
    received_at: list[tuple[int, int]] = field(default_factory=list)
    """(partition, offset) at which groups received it."""


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
    aborted: int = 0
    taken: dict[str, int] = field(default_factory=dict)
    """Removed from the log by its owner, by whom."""
    cut: int = 0
    """Of the lost ones, those that had been in the log."""
    causes: dict[str, int] = field(default_factory=dict)
    """Lost messages by cause."""
    missed: dict[str, int] = field(default_factory=dict)
    """By group: messages that it was owed, or had still to read, and never received."""
    silence_s: float | None = None
    """The longest time without an ack after the first fault began; None: no ack came any more."""


@dataclass
class Truth:
    """The truth of one run."""

    name: str
    sums: dict[str, Sums]
    resumed_s: dict[str, float | None]
    """By group: the longest time without a record after the first fault began."""
    groups: dict[str, GroupSums] = field(default_factory=dict)
    exits: dict[str, list[int]] = field(default_factory=dict)
    """By client: how its processes ended."""


def establish(evidence: Path) -> Truth:
    """Establish the truth of the run in *evidence* and write it to `truth/`."""
    scenario = json.loads((evidence / "scenario.json").read_text())
    faults = json.loads((evidence / "faults.json").read_text())
    began = min((entry["at_ms"] for entry in faults), default=scenario["began_at_ms"])
    scans = {
        t["name"]: read_scan(evidence / "scan" / f"{t['name']}.jsonl") for t in scenario["topics"]
    }
    logs = {t["name"]: topic_log(evidence, scenario, t) for t in scenario["topics"]}
    events = {
        c["name"]: list(read_events(_printed(evidence, "consumer", c)))
        for c in scenario["consumers"]
    }
    groups = _by_group(scenario["consumers"])
    messages: list[Message] = []
    sums = {}
    for producer in scenario["producers"]:
        printed = list(read_events(_printed(evidence, "producer", producer)))
        own, complete = _messages(producer, printed)
        _add_log(own, producer, scans[producer["topic"]])
        for consumer in scenario["consumers"]:
            if consumer["topic"] == producer["topic"]:
                _add_received(own, producer, consumer["group"], events[consumer["name"]])
        in_order = [own[seq] for seq in sorted(own)]
        _add_fates(in_order, logs[producer["topic"]])
        expected = scenario["expect"].get(producer["name"], {})
        _add_causes(in_order, expected, scenario.get("marks", {}))
        total = _sum(producer, in_order, complete)
        total.out_of_order = steps_back(producer["prefix"], scans[producer["topic"]])
        total.silence_s = _producer_silence(printed, began)
        sums[producer["name"]] = total
        messages += in_order
    readings = [
        GroupReading(
            members,
            sorted(
                (e for m in members for e in events[m["name"]] if "timestamp" in e),
                key=lambda e: int(e["timestamp"]),
            ),
            scenario.get("actions", ()),
            logs[members[0]["topic"]],
        )
        for members in groups.values()
    ]
    judged = judge_groups(readings, messages, scenario.get("owed", {}))
    for message in messages:
        missed = sums[message.producer].missed
        for group, state in message.groups.items():
            missed[group] = missed.get(group, 0) + (state in (*MISSED, "not_read"))
    resumed = {
        group: silence(
            [e["timestamp"] for m in members for e in _received(events[m["name"]])], began
        )
        for group, members in groups.items()
    }
    truth = Truth(scenario["name"], sums, resumed, judged, scenario.get("exits", {}))
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


def _by_group(consumers: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for consumer in consumers:
        groups.setdefault(consumer["group"], []).append(consumer)
    return groups


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
    committed: set[int] = set()
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
        elif name == "transaction_ended" and event["outcome"] == "committed":
            ends = (seq_of(producer["prefix"], event[each]) for each in ("first", "last"))
            first, last = (seq if seq is not None else -1 for seq in ends)
            committed.update(range(first, last + 1))
    if producer.get("transaction_messages"):
        for seq, message in own.items():
            message.aborted = seq not in committed
    return own, complete


def _of(own: dict[int, Message], producer: dict[str, Any], seq: int) -> Message:
    if seq not in own:
        own[seq] = Message(producer["name"], producer["topic"], seq)
        own[seq].host = producer.get("host", "")
        own[seq].client_id = producer.get("client_id") or producer["name"]
    return own[seq]


def _tell(message: Message, event: Event) -> None:
    message.key = event.get("key", message.key)
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


def _received(events: list[Event]) -> list[Event]:
    return [event for event in events if event["name"] == "record_data"]


def _add_received(
    own: dict[int, Message], producer: dict[str, Any], group: str, events: list[Event]
) -> None:
    for record in _received(events):
        seq = seq_of(producer["prefix"], record["value"])
        if seq is not None:
            message = _of(own, producer, seq)
            message.received[group] = message.received.get(group, 0) + 1
            message.received_at.append((record["partition"], record["offset"]))


def _add_fates(messages: list[Message], log: TopicLog) -> None:
    """Of what is in no log: was it removed, or is it lost, and had it been there?

    An offset that was given to another message later was cut off, whatever removed that one.
    """
    told = [m for m in messages if m.told_offset is not None and m.told_at_ms is not None]
    newest: dict[tuple[int, int | None, int | None], int] = {}

    def place_of(message: Message) -> tuple[int, int | None, int | None]:
        which = log.which(message.told_at_ms or 0)
        return which, message.told_partition, message.told_offset

    for message in sorted(told, key=lambda m: m.told_at_ms or 0):
        newest[place_of(message)] = message.seq
    for message in messages:
        if message.in_log or message.aborted:
            continue
        partition, offset = message.told_partition, message.told_offset
        if partition is not None and offset is not None:
            at_ms = message.told_at_ms or 0
            if newest.get(place_of(message)) == message.seq:
                message.taken_by = log.taken_by((partition, offset), at_ms, message.key)
        message.lost = message.taken_by is None
        message.cut = message.lost and (offset is not None or bool(message.received))


def _add_causes(
    messages: list[Message], expected: dict[str, Any], marks: Mapping[str, int]
) -> None:
    for message in messages:
        if message.lost:
            told = cause_of_error(message.error, message.error_message)
            found = [told] if told else _blamed(message, expected, marks)
            message.cause, message.causes = (found[0] if found else None), found


def _blamed(message: Message, expected: dict[str, Any], marks: Mapping[str, int]) -> list[str]:
    """What the scenario did to it."""
    at_ms = message.told_at_ms or 0
    for blame in expected.get("blame", ()):
        if blame["partition"] not in (None, message.told_partition):
            continue
        since, until = blame["since"], blame["until"]
        if since is not None and at_ms < marks[since]:
            continue
        if until is not None and at_ms >= marks[until]:
            continue
        return [blame["cause"], *blame["also"]]
    cause = expected.get("cause")
    return [cause] if cause else []


def cause_of_error(error: str | None, text: str | None) -> str | None:
    """What a client's error says of the cause; None where the error leaves it open."""
    said = f"{error}: {text}"
    for part, cause in _CAUSES.items():
        if part in said:
            return cause
    return None


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
        total.aborted += message.aborted
        total.cut += message.cut
        if message.taken_by is not None:
            total.taken[message.taken_by] = total.taken.get(message.taken_by, 0) + 1
        if message.lost:
            cause = message.cause or "unknown"
            total.causes[cause] = total.causes.get(cause, 0) + 1
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
