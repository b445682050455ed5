"""Records that are in no log at the end though nothing was lost: somebody removed them.

By compaction, by retention, by an administrator who deleted records or the whole topic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.events import Event, read_events

Place = tuple[int, int]
"""Partition and offset."""


@dataclass(frozen=True)
class LogStart:
    """From a moment on the log of a partition began at an offset, and by whose doing."""

    at_ms: int
    offset: int
    by: str


@dataclass
class TopicLog:
    """What happened to one topic's log as a whole."""

    created_ms: int = 0
    """When the topic, as it is at the end, was made: after the last deletion."""
    deleted_ms: list[int] = field(default_factory=list)
    """When it was gone, each time that it was deleted."""
    compacted: bool = False
    starts: dict[int, list[LogStart]] = field(default_factory=dict)
    """By partition, in the order of time."""
    latest_of_key: dict[tuple[int, str], int] = field(default_factory=dict)
    """The highest offset of a key in the log at the end."""
    end: dict[int, int] = field(default_factory=dict)

    def which(self, at_ms: int) -> int:
        """How often the topic had been deleted by then: tells its logs apart."""
        return sum(gone_ms <= at_ms for gone_ms in self.deleted_ms)

    def start_at(self, partition: int, at_ms: int) -> int:
        """The log's first offset at a time."""
        return max(
            (s.offset for s in self.starts.get(partition, ()) if s.at_ms <= at_ms), default=0
        )

    def removal(self, place: Place) -> LogStart | None:
        """What moved the log's start past *place*."""
        partition, offset = place
        found = (s for s in self.starts.get(partition, ()) if s.offset > offset)
        return min(found, key=lambda s: s.at_ms, default=None)

    def taken_by(self, place: Place, at_ms: int, key: str | None) -> str | None:
        """Who removed the record that was stored at *place* at a time; None: nobody did."""
        if at_ms < self.created_ms:
            return "topic_deleted"
        removal = self.removal(place)
        if removal is not None:
            return removal.by
        partition, offset = place
        later = self.latest_of_key.get((partition, key), -1) if key is not None else -1
        return "compaction" if self.compacted and later > offset else None


def topic_log(evidence: Path, scenario: Mapping[str, Any], topic: Mapping[str, Any]) -> TopicLog:
    """What became of the log of *topic* in the run that left *evidence*."""
    name = topic["name"]
    log = TopicLog()
    policies = [topic.get("settings", {}).get("cleanup.policy", "")]
    for action in scenario.get("actions", ()):
        if action.get("topic") != name:
            continue
        if action["action"] == "recreate_topic":
            log.created_ms = action["gone_ms"]
            log.deleted_ms.append(action["gone_ms"])
            log.starts.clear()
        elif action["action"] == "delete_records":
            start = LogStart(action["at_ms"], action["offset"], "delete_records")
            log.starts.setdefault(action["partition"], []).append(start)
        elif action["action"] == "alter_topic":
            policies.append(action["settings"].get("cleanup.policy", ""))
    log.compacted = any("compact" in policy for policy in policies)
    _add_states(log, evidence / "cluster" / "states.jsonl", name)
    _add_scan(log, evidence / "scan" / f"{name}.jsonl")
    for starts in log.starts.values():
        starts.sort(key=lambda start: start.at_ms)
    return log


def _add_states(log: TopicLog, path: Path, name: str) -> None:
    """A start that no administrator made was made by retention."""
    for row in read_events(path):
        offset = row.get("earliest_offset")
        if row["topic"] != name or offset is None or row["at_ms"] < log.created_ms:
            continue
        known = log.starts.setdefault(row["partition"], [])
        by_admin = any(start.offset == offset for start in known)
        if not by_admin and offset > log.start_at(row["partition"], row["at_ms"]):
            known.append(LogStart(row["at_ms"], offset, "retention"))


def _add_scan(log: TopicLog, path: Path) -> None:
    ended_ms = 0
    bounds: list[Event] = []
    for event in read_events(path):
        if "offset" in event:
            if event.get("key") is not None:
                place = (event["partition"], event["key"])
                log.latest_of_key[place] = max(log.latest_of_key.get(place, -1), event["offset"])
        elif event.get("scan") == "ended":
            ended_ms, bounds = event.get("at_ms", 0), event["partitions"]
    for each in bounds:
        log.end[each["partition"]] = each["end_offset"]
        known = log.starts.setdefault(each["partition"], [])
        if each["first_offset"] > max((start.offset for start in known), default=0):
            known.append(LogStart(ended_ms, each["first_offset"], "retention"))
