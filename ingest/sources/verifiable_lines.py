"""JSON lines of VerifiableProducer and VerifiableConsumer as audit reports.

A piece of a file becomes reports of its own parts (the part is the byte where the piece begins),
so a restart anywhere needs no memory: parts are OR-ed. The producer's counter is contiguous, so
everything up to the highest id seen was sent. A value `prefix.counter` belongs to the session
`vp-prefix`; a bare counter (no --value-prefix) to `vp:topic`, which two runs on one topic share:
give every run a prefix.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from acktrail.audit.send_errors import error_name, tier_of_error
from acktrail.audit.wire import BLOCK_BITS, BLOCK_IDS, Report, Runs, Sighting, encode_runs
from acktrail.audit.wire import encode_sightings as encode
from acktrail.contracts.vocabulary import Tier

_VALUE = re.compile(r"(?:(\d+)\.)?(\d{1,18})\Z")
Event = Mapping[str, Any]


def message_of(value: str | None, topic: str) -> tuple[str, int] | None:
    """(session, seq) of a value that VerifiableProducer wrote; None where it is not one."""
    found = _VALUE.match(value or "")
    if found is None:
        return None
    prefix, counter = found.groups()
    return (f"vp-{prefix}" if prefix is not None else f"vp:{topic}"), int(counter)


@dataclass
class Piece:
    """What one piece of a file said."""

    reports: list[Report]
    dropped: Counter[str]


@dataclass
class _Session:
    """What a producer's file has said of one session and topic so far."""

    highest: int = -1
    minute: int = -1
    sent_from: int = 0


@dataclass
class _Gathered:
    sightings: list[Sighting] = field(default_factory=list)
    consumed: list[Report] = field(default_factory=list)
    received: list[Report] = field(default_factory=list)
    """The range of one of every record_data."""
    minutes: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    dropped: Counter[str] = field(default_factory=Counter)
    last_ms: int = 0
    closed: bool = False
    exited: bool = False


class VerifiableReader:
    """Reads one file of one client, piece after piece."""

    def __init__(
        self, reporter: str, group: str = "", settings: Mapping[str, str] | None = None
    ) -> None:
        self._reporter = reporter
        self._group = group
        self._settings = dict(settings or {})
        self._sessions: dict[tuple[str, str], _Session] = {}
        self._assignments: dict[tuple[str, int], int] = {}
        self._line = 0
        self._topics: dict[str, None] = {}
        self._counts_ranges = False
        self._has_offsets = False
        self._joined_at = -1
        self._take: dict[str, Callable[[Event, _Gathered], None]] = {
            "producer_send_success": self._acked,
            "producer_send_error": self._failed,
            "handed_over": self._handed_over,
            "tool_data": self._sums,
            "record_data": self._received,
            "records_consumed": self._consumed,
            "partitions_assigned": self._assigned,
            "shutdown_complete": self._shut_down,
            "process_exited": self._exited,
        }

    def read(self, text: bytes, position: int) -> Piece:
        """The reports in *text*: whole lines that begin at byte *position* of the file."""
        got = _Gathered()
        if self._joined_at < 0:
            self._joined_at = position
        # A line has a byte at least, so that these numbers grow through the file, piece by piece.
        for self._line, line in enumerate(text.splitlines(), position):
            event = _event(line)
            if event is None:
                got.dropped["not_json" if line.strip() else "blank"] += 1
                continue
            take = self._take.get(str(event.get("name")))
            if take is None:
                got.dropped["says_nothing_of_messages"] += 1
                continue
            try:
                got.last_ms = max(got.last_ms, _time(event))
                take(event, got)
            except (KeyError, TypeError, ValueError):
                got.dropped["unreadable"] += 1
        return Piece(list(self._reports(got, position)), got.dropped)

    # One method per event.

    def _acked(self, event: Event, got: _Gathered) -> None:
        message = self._sent(event, got)
        if message is None:
            return
        offset = int(event.get("offset", -1))
        tier = Tier.ACKED
        if offset >= 0:
            self._has_offsets = True
        elif self._settings.get("acks", "") == "0" or not (
            self._has_offsets or self._settings.get("acks")
        ):
            tier = Tier.SENT_UNACKED
        else:
            tier = Tier.ACKED_NO_OFFSET
        partition = int(event.get("partition", -1))
        got.sightings.append(
            Sighting(
                session=message[0],
                topic=str(event["topic"]),
                seq=message[1],
                tier=tier,
                at_ms=_time(event),
                partition=max(-1, partition),
                offset=offset if offset >= 0 else None,
            )
        )

    def _failed(self, event: Event, got: _Gathered) -> None:
        message = self._sent(event, got)
        if message is None:
            return
        error = error_name(str(event.get("exception") or "unknown"), event.get("message"))
        got.sightings.append(
            Sighting(
                session=message[0],
                topic=str(event["topic"]),
                seq=message[1],
                tier=tier_of_error(error),
                at_ms=_time(event),
                error=error,
            )
        )

    def _handed_over(self, event: Event, got: _Gathered) -> None:
        self._sent(event, got)

    def _sent(self, event: Event, got: _Gathered) -> tuple[str, int] | None:
        """The message of a producer's event; everything up to it was sent."""
        topic = str(event["topic"])
        message = message_of(event["value"], topic)
        if message is None:
            got.dropped["not_audited"] += 1
            return None
        self._extend((message[0], topic), message[1], _time(event), got)
        return message

    def _extend(self, key: tuple[str, str], seq: int, at_ms: int, got: _Gathered) -> None:
        session = self._sessions.setdefault(key, _Session())
        minutes = got.minutes.setdefault(key, [])
        if seq <= session.highest:
            return
        if at_ms // 60_000 > session.minute:
            session.minute = at_ms // 60_000
            unknown_past = session.highest < 0 and self._joined_at > 0
            minutes += [session.minute, seq if unknown_past else session.highest + 1]
        session.highest = seq

    def _sums(self, event: Event, got: _Gathered) -> None:
        """The last line: how many were sent, whatever became of them."""
        if len(self._sessions) == 1:
            (key,) = self._sessions
            self._extend(key, int(event["sent"]) - 1, _time(event), got)

    def _received(self, event: Event, got: _Gathered) -> None:
        topic, partition = str(event["topic"]), int(event["partition"])
        offset, at_ms = int(event["offset"]), _time(event)
        if not self._counts_ranges:
            got.received.append(self._range(topic, partition, (offset, offset), 1, at_ms))
        message = message_of(event["value"], topic)
        if message is None:
            got.dropped["not_audited"] += 1
            return
        got.sightings.append(
            Sighting(
                session=message[0],
                topic=topic,
                seq=message[1],
                tier=Tier.DELIVERED,
                at_ms=at_ms,
                partition=partition,
                offset=offset,
                group=self._group,
            )
        )

    def _consumed(self, event: Event, got: _Gathered) -> None:
        self._counts_ranges = True
        for place in event["partitions"]:
            if int(place["count"]) > 0:
                topic, partition = str(place["topic"]), int(place["partition"])
                bounds = int(place["minOffset"]), int(place["maxOffset"])
                got.consumed.append(
                    self._range(topic, partition, bounds, int(place["count"]), _time(event))
                )

    def _assigned(self, event: Event, _got: _Gathered) -> None:
        """A new assignment, numbered by its line: the number never comes again in the file."""
        for place in event["partitions"]:
            self._assignments[str(place["topic"]), int(place["partition"])] = self._line
            self._topics[str(place["topic"])] = None

    def _shut_down(self, _event: Event, got: _Gathered) -> None:
        got.closed = True

    def _exited(self, event: Event, got: _Gathered) -> None:
        """Written by whoever supervises the tool: its process has ended, with this exit code."""
        int(event["code"])
        got.exited = True

    # From what was gathered to reports.

    def _reports(self, got: _Gathered, position: int) -> Iterator[Report]:
        part = position
        yield from encode(got.sightings, self._reporter, position, got.last_ms, part)
        part += len(got.sightings)
        for key in got.minutes:
            for report in self._sent_reports(key, got, position):
                yield report
        for report in self._ranges(got):
            yield _numbered(report, part, position, got.last_ms)
            part += 1
        yield from self._heartbeats(got, position)

    def _sent_reports(
        self, key: tuple[str, str], got: _Gathered, position: int
    ) -> Iterator[Report]:
        """The ids from the last highest of an earlier piece (unknown: 0) to the highest."""
        session = self._sessions[key]
        first, last = session.sent_from, session.highest
        session.sent_from = last + 1
        for block in range(first >> BLOCK_BITS, (last >> BLOCK_BITS) + 1) if last >= first else ():
            begin = max(first, block << BLOCK_BITS)
            end = min(last, ((block + 1) << BLOCK_BITS) - 1)
            runs = Runs(np.array([begin & (BLOCK_IDS - 1)]), np.array([end - begin + 1]))
            yield Report(
                reporter=self._reporter,
                tier=Tier.SENT,
                topic=key[1],
                session=key[0],
                number=position,
                reported_ms=got.last_ms,
                block=block,
                part=position,
                records=end - begin + 1,
                ids=encode_runs(runs),
                ended_ms=got.last_ms,
            )

    def _ranges(self, got: _Gathered) -> Iterator[Report]:
        """What was read, by the client's own account, else by the records it printed."""
        yield from _joined(got.consumed if self._counts_ranges else got.received)

    def _range(
        self, topic: str, partition: int, bounds: tuple[int, int], count: int, at_ms: int
    ) -> Report:
        self._topics[topic] = None
        return Report(
            reporter=self._reporter,
            tier=Tier.CONSUMED,
            topic=topic,
            partition=partition,
            group=self._group,
            number=0,
            reported_ms=at_ms,
            first_offset=bounds[0],
            last_offset=bounds[1],
            records=count,
            assignment=self._assignments.get((topic, partition)),
            began_ms=at_ms,
            ended_ms=at_ms,
        )

    def _heartbeats(self, got: _Gathered, position: int) -> Iterator[Report]:
        """The client lives; its settings, when ids were first seen, and whether it has ended."""
        if not got.last_ms:
            return
        keys = [*self._sessions] or [("", topic) for topic in self._topics]
        for session, topic in keys:
            yield Report(
                reporter=self._reporter,
                tier=Tier.HEARTBEAT,
                topic=topic,
                session=session,
                group="" if session else self._group,
                number=position,
                part=position,
                reported_ms=got.last_ms,
                settings=self._settings,
                minutes=tuple(got.minutes.get((session, topic), ())),
                ended_ms=got.last_ms,
                closed=got.closed,
                exited=got.exited,
            )


def _joined(ranges: list[Report]) -> Iterator[Report]:
    """Ranges of one partition that follow each other as one; a jump begins another."""
    latest: dict[tuple[str, int], Report] = {}
    for one in ranges:
        key = (one.topic, one.partition)
        before = latest.get(key)
        if (
            before is not None
            and before.last_offset is not None
            and one.first_offset == before.last_offset + 1
            and one.assignment == before.assignment
        ):
            latest[key] = replace(
                before,
                last_offset=one.last_offset,
                records=before.records + one.records,
                ended_ms=one.ended_ms,
            )
            continue
        if before is not None:
            yield before
        latest[key] = one
    yield from latest.values()


def _numbered(report: Report, part: int, number: int, reported_ms: int) -> Report:
    return replace(report, part=part, number=number, reported_ms=reported_ms)


def _event(line: bytes) -> Event | None:
    if not line.startswith(b"{"):
        return None
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) else None


def _time(event: Event) -> int:
    """Milliseconds: `timestamp`, or `time_ms` up to 0.10."""
    return int(event["timestamp"] if "timestamp" in event else event["time_ms"])
