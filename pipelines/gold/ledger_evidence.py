"""From evidence rows to what the rules look at."""

from __future__ import annotations

from collections.abc import Iterable

from acktrail.audit.topic_evidence import (
    Consumed,
    GroupCommit,
    GroupEvidence,
    LogScan,
    PartitionEvidence,
    StateAt,
    TopicEvidence,
)
from acktrail.kafka_defaults import REPLICA_LAG_MS
from pipelines.arrow_rows import Row


def topic_of(rows: Iterable[Row]) -> TopicEvidence:
    """All that is known of a topic; rows in any order, repeated or not."""
    scans: dict[int, set[LogScan]] = {}
    states: dict[int, set[StateAt]] = {}
    consumed: dict[str, dict[int, list[tuple[int, Consumed]]]] = {}
    commits: dict[str, dict[int, set[GroupCommit]]] = {}
    compacted, lag = False, REPLICA_LAG_MS
    for row in rows:
        kind, partition = row["kind"], row["partition"]
        if kind == "scanned":
            scan = LogScan(
                row["first_offset"], row["last_offset"], row["began_ms"], bool(row["closed"])
            )
            scans.setdefault(partition, set()).add(scan)
        elif kind == "state":
            state = StateAt(
                row["at_ms"],
                row["earliest_offset"],
                row["latest_offset"],
                row["leader_epoch"],
                row["topic_id"] or "",
            )
            states.setdefault(partition, set()).add(state)
        elif kind == "consumed":
            read = Consumed(
                row["reporter"],
                row["assignment"],
                row["part"],
                row["first_offset"],
                row["last_offset"],
                row["began_ms"],
                row["ended_ms"],
            )
            at = consumed.setdefault(row["group"], {}).setdefault(partition, [])
            at.append((row["number"], read))
        elif kind == "commit":
            commit = GroupCommit(row["at_ms"], row["committed_offset"], row["metadata"] or "")
            commits.setdefault(row["group"], {}).setdefault(partition, set()).add(commit)
        elif kind == "policy":
            compacted = bool(row["compacted"])
        elif kind == "replica_lag" and row["replica_lag_ms"] is not None:
            lag = row["replica_lag_ms"]
    return TopicEvidence(
        partitions={
            p: PartitionEvidence(
                tuple(sorted(scans.get(p, ()), key=lambda s: (s.began_ms, s.first, s.last))),
                tuple(states.get(p, ())),
            )
            for p in sorted({*scans, *states})
        },
        groups={
            g: GroupEvidence(
                {p: _newest(found) for p, found in consumed.get(g, {}).items()},
                {p: tuple(found) for p, found in commits.get(g, {}).items()},
            )
            for g in sorted({*consumed, *commits})
        },
        compacted=compacted,
        replica_lag_ms=lag,
    )


def _newest(found: list[tuple[int, Consumed]]) -> tuple[Consumed, ...]:
    """The newest report of each part of each member."""
    kept: dict[tuple[str, int], tuple[int, int, Consumed]] = {}
    for number, read in found:
        key = (read.reporter, read.part)
        if key not in kept or (number, read.last) > kept[key][:2]:
            kept[key] = (number, read.last, read)
    return tuple(read for _, _, read in kept.values())
