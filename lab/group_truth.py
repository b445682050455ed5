"""The truth about each group: what it was owed, and what it really missed, id by id.

Owed: in the log, at or above the group's start, before its end of reading; to a group that reads
what is committed, nothing of an aborted transaction.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lab.events import Event
from lab.removed import Place, TopicLog

if TYPE_CHECKING:
    from lab.truth import Message

MISSED = ("skipped", "expired")


@dataclass
class GroupSums:
    """What became of a topic's messages for one group."""

    topic: str
    isolation: str
    states: dict[str, int] = field(default_factory=dict)
    starts: dict[int, int] = field(default_factory=dict)
    """By partition: the first offset the group was owed; none where it was never given one."""
    ends: dict[int, int] = field(default_factory=dict)
    """By partition: the first offset it has not passed."""


@dataclass
class _Moves:
    """Where a group was in one partition, by what its members printed and an admin did."""

    reads: list[tuple[int, int]] = field(default_factory=list)
    """(time, offset) of every record received."""
    positions: list[tuple[int, int]] = field(default_factory=list)
    """(time, next offset) of every commit and reset."""

    def end(self, before_ms: int | None = None) -> int:
        """The first offset it had not passed (before a time)."""
        passed = [at + 1 for when, at in self.reads if before_ms is None or when < before_ms]
        passed += [at for when, at in self.positions if before_ms is None or when < before_ms]
        return max(passed, default=0)


class GroupReading:
    """One group on one topic: all its members, over the whole run."""

    def __init__(
        self,
        members: Sequence[Mapping[str, Any]],
        events: Iterable[Event],
        actions: Iterable[Mapping[str, Any]],
        log: TopicLog,
    ) -> None:
        self.group = str(members[0]["group"])
        self.topic = str(members[0]["topic"])
        self.isolation = str(members[0].get("isolation", "read_uncommitted"))
        self._latest = members[0].get("reset", "earliest") == "latest"
        self._log = log
        self._moves: dict[int, _Moves] = defaultdict(_Moves)
        self._began: dict[int, int] = {}
        for event in events:
            self._take(event)
        for action in actions:
            if action["action"] == "reset_group" and action["group"] == self.group:
                moves = self._moves[action["partition"]]
                moves.positions.append((action["at_ms"], action["offset"]))

    def sums(self) -> GroupSums:
        """An empty account with its bounds."""
        starts = {number: self._start(number) for number in sorted(self._began)}
        known = {number: start for number, start in starts.items() if start is not None}
        ends = {number: self._moves[number].end() for number in sorted(self._began)}
        return GroupSums(self.topic, self.isolation, starts=known, ends=ends)

    def judge(self, message: Message) -> str:
        """What became of *message* for this group."""
        if message.received.get(self.group):
            return "received"
        if message.aborted and (self.isolation == "read_committed" or not message.in_log):
            return "aborted"
        if message.in_log:
            found = {self._judge_place(place) for place in message.in_log}
            return next(s for s in ("skipped", "not_read", "before_start") if s in found)
        return "lost" if message.lost else self._judge_taken(message)

    def _judge_place(self, place: Place) -> str:
        number, offset = place
        start = self._start(number)
        if start is None or offset < start:
            return "before_start" if self._latest or start is not None else "not_read"
        return "skipped" if offset < self._moves[number].end() else "not_read"

    def _judge_taken(self, message: Message) -> str:
        if message.taken_by == "topic_deleted":
            return "deleted"
        if message.told_partition is None or message.told_offset is None:
            return "unplaced"
        number, offset = message.told_partition, message.told_offset
        start = self._start(number)
        if start is None or offset < start:
            return "before_start"
        if message.taken_by == "compaction":
            return "compacted"
        removal = self._log.removal((number, offset))
        passed = self._moves[number].end(removal.at_ms if removal else None)
        return "skipped" if offset < passed else "expired"

    def _start(self, number: int) -> int | None:
        """The first offset it was owed: the log's start when it came, or what `latest` gave it."""
        began = self._began.get(number)
        if began is None:
            return None
        if self._latest:
            return min((offset for _, offset in self._moves[number].reads), default=None)
        return self._log.start_at(number, began)

    def _take(self, event: Event) -> None:
        """Of a topic that was made again, only what was read since."""
        at_ms = event["timestamp"]
        if at_ms < self._log.created_ms:
            return
        if event["name"] == "record_data":
            self._began.setdefault(event["partition"], at_ms)
            self._moves[event["partition"]].reads.append((at_ms, event["offset"]))
        elif event["name"] == "partitions_assigned":
            for each in event["partitions"]:
                if each["topic"] == self.topic:
                    self._began.setdefault(each["partition"], at_ms)
        elif event["name"] == "offsets_committed" and event.get("success"):
            for each in event["offsets"]:
                if each["topic"] == self.topic and each["offset"] >= 0:
                    place = (at_ms, each["offset"])
                    self._moves[each["partition"]].positions.append(place)


def judge_groups(
    groups: Iterable[GroupReading],
    messages: Iterable[Message],
    owed: Mapping[str, Mapping[str, Any]],
) -> dict[str, GroupSums]:
    """Give every message its state for every group of its topic; return the sums by group."""
    readings = list(groups)
    totals = {each.group: each.sums() for each in readings}
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for message in messages:
        for reading in readings:
            if reading.topic != message.topic:
                continue
            state = reading.judge(message)
            message.groups[reading.group] = state
            counts[reading.group][state] += 1
            if state in MISSED:
                message.group_causes[reading.group] = _causes(state, owed.get(reading.group, {}))
    for group, total in totals.items():
        total.states = dict(counts[group])
    return totals


def _causes(state: str, expected: Mapping[str, Any]) -> list[str]:
    if state == "expired":
        return ["retention"]
    cause = expected.get("cause", "none")
    return [] if cause == "none" else [cause, *expected.get("also", ())]
