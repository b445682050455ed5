"""`python -m bench.lab_lines DIR…`: the reader against a second count, on what the lab recorded.

The second count shares nothing with the reader: it looks at physical lines, one after the other,
with plain words and no expressions, and knows only Kafka's stock layout and librdkafka's. Every
event must stand where it says one does, of that kind, and nowhere else. (At DEBUG a client's
`Connection with ... disconnected` stands beside its `Node ... disconnected.`: only the second
counts.) A directory is one run, or
holds runs by Kafka version; the counts are printed by kind and version, the differences line by
line, and the exit code is 1 if there is any.
"""

from __future__ import annotations

import gzip
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from acktrail.logs.event import Event, UnreadRecord
from acktrail.logs.prefilter import may_be_evidence
from acktrail.logs.reader import read_record
from acktrail.logs.records import join_records
from acktrail.terminal.output import write_rows

PRODUCER = "[Producer clientId="
CONSUMER = "[Consumer clientId="
ANYBODY = {
    # words of a line: kind. Whoever prints them.
    "splitting and retrying (": "split_retry",
    "Got error produce response": "retry",
    "Received invalid metadata error in produce request": "invalid_metadata",
    "Received unknown topic or partition error in produce request": "invalid_metadata",
    "Error processing append operation on partition": "broker_append_error",
    "Closing connection due to error during produce request": "acks0_close",
    "Shrinking ISR from": "isr_shrink",
    "Expanding ISR from": "isr_expand",
    "ISR updated to": "isr_updated",
    "below high watermark": "truncation",
    "Truncating partition ": "truncation",
    "] Truncating to offset ": "truncation",
    "Non-monotonic update of high watermark": "high_watermark_back",
    "to current leader's latest offset": "truncation",
    " -> -1, leaderEpoch: ": "leader_change",
    ": elr: [": "leader_change",
    ", lastKnownElr: [": "last_known_leader",
    "UNCLEAN partition change for": "unclean_election",
    "] Leader ": "leader_start",
    "Created log for partition ": "log_created",
    "Triggering unclean leader election for offline partition": "unclean_election",
    "was marked as RECOVERING": "leader_recovering",
    "ProducerConfig values:": "config_block",
    "ConsumerConfig values:": "consumer_config_block",
    "Kafka version: ": "client_version",
    "Idempotence will be disabled because": "idempotence_disabled",
    "ProduceResponse returned SUCCEEDED": "late_success",
}
OF_PRODUCERS = {
    "No inflight batches remaining for": "sequence_reset",
    "The broker returned org.": "fatal_sequence",
    "Exception occurred during message send": "send_failed",
    "Proceeding to force close the producer": "dropped_at_close",
    "Reordered incoming batch": "reordered",
    "could not be established": "connection_failure",
    "Cancelled in-flight": "connection_failure",
    "due to request timeout": "connection_failure",
    "due to socket connection setup timeout": "connection_failure",
    " disconnected. (": "connection_failure",
    "Bootstrap broker ": "connection_failure",
    "reported a recoverable issue": "metadata_error",
    "Error while fetching metadata": "metadata_error",
}
OF_CONSUMERS = {
    "poll timeout has expired": "poll_timeout",
    "sending LeaveGroup request": "leave_group",
    "Resetting offset for partition": "offset_reset",
    "is out of range for partition": "offset_reset",
    "Offset commit failed on partition": "commit_failed",
    "uto-commit of offsets": "commit_failed",
    "previously assigned partitions": "rebalance",
    "Adding newly assigned partitions": "rebalance",
    "since group is rebalancing": "rebalance",
}
FACILITIES = {
    "|FAIL|": "connection_failure",
    "|REQTMOUT|": "connection_failure",
    "|ERROR|": "connection_failure",
    "|TERMINATE|": "dropped_at_close",
    "|FATAL|": "fatal_sequence",
}
Place = tuple[str, int, str]
"""File, line, kind."""


@dataclass
class Counted:
    """What was found in the logs of one Kafka version."""

    files: int = 0
    lines: int = 0
    records: int = 0
    unread: list[Place] = field(default_factory=list)
    events: Counter[str] = field(default_factory=Counter)
    missing: list[Place] = field(default_factory=list)
    false: list[Place] = field(default_factory=list)


def main(directories: list[str]) -> int:
    counted: dict[str, Counted] = {}
    for directory in directories:
        for path in _logs(Path(directory)):
            _count(path, counted.setdefault(_version(path), Counted()))
    kinds = sorted({kind for each in counted.values() for kind in each.events})
    rows = [{"kind": name, **_figures(counted, name)} for name in ("files", "lines", "records")]
    rows += [{"kind": k, **{v: c.events[k] for v, c in counted.items()}} for k in kinds]
    write_rows(rows, ("kind", *counted))
    wrong = 0
    for title in ("missing", "false", "unread"):
        for version, each in counted.items():
            for place in getattr(each, title):
                wrong += 1
                print(f"{title} in {version}: {place[0]}:{place[1]} {place[2]}", file=sys.stderr)
    print(f"{wrong} differences", file=sys.stderr)
    return 1 if wrong else 0


def _figures(counted: dict[str, Counted], name: str) -> dict[str, int]:
    return {version: getattr(each, name) for version, each in counted.items()}


def _logs(directory: Path) -> Iterator[Path]:
    yield from sorted(p for p in directory.rglob("logs/**/*") if p.name.endswith((".log", ".gz")))


def _version(path: Path) -> str:
    return next((v for v in ("3.9.2", "4.3.1") if v in str(path)), "4.3.1")


def _count(path: Path, counted: Counted) -> None:
    raw = path.read_bytes()
    text = gzip.decompress(raw) if path.suffix == ".gz" else raw
    lines = text.splitlines(keepends=True)
    counted.files += 1
    counted.lines += len(lines)
    read: set[Place] = set()
    for record in join_records(lines):
        counted.records += 1
        if not may_be_evidence(record.text):
            continue
        event = read_record(record.text.decode("utf-8", "replace"))
        if isinstance(event, Event):
            read.add((str(path), record.line, event.kind))
            counted.events[event.kind] += 1
        elif isinstance(event, UnreadRecord):
            counted.unread.append((str(path), record.line, event.reason))
    expected = set(_second_count(str(path), text.decode("utf-8", "replace").splitlines()))
    counted.missing += sorted(expected - read)
    counted.false += sorted(read - expected)


def _second_count(path: str, lines: Iterable[str]) -> Iterator[Place]:
    for number, line in enumerate(lines, 1):
        kind = _kind(line)
        if kind is not None:
            yield path, number, kind


def _kind(line: str) -> str | None:
    if line.startswith("%"):
        if "#producer-" not in line:
            return None
        return next((kind for words, kind in FACILITIES.items() if words in line), None)
    tables = [ANYBODY]
    if PRODUCER in line:
        tables.append(OF_PRODUCERS)
    if CONSUMER in line:
        tables.append(OF_CONSUMERS)
    for table in tables:
        for words, kind in table.items():
            if words in line:
                return kind
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
