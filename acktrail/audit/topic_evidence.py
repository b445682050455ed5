"""What is known of a topic, its groups and a session, when a block's ids are judged."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from acktrail.audit.intervals import Coverage, Longs
from acktrail.audit.reasons import Reason
from acktrail.audit.wire.identity import topic_id_text
from acktrail.audit.wire.run_lists import decode_runs
from acktrail.kafka_defaults import LONGEST_DELIVERY_MS, REPLICA_LAG_MS

REPORT_DELAY_MS = 3_600_000
"""Where a search of the log may begin: a report reaches the lake within this time of what it
reports, or its producer's clock is right."""
BEFORE_MS = 3 * REPORT_DELAY_MS
"""Commits and answers from so long before the first event and receipt of a block bear on it."""
_PROCESSED = re.compile(r"acktrail:processed=(\d+)")


@dataclass(frozen=True)
class LogScan:
    """A range of offsets that a scan has read, whatever it found; *closed*: up to its end."""

    first: int
    last: int
    after_ms: int | None
    """Receipts up to this one were in the lake when the scan began; None: not known."""
    closed: bool = False
    reporter: str = ""
    number: int = 0
    """With the reporter: which scan it was."""
    records: int = 0
    began_ms: int | None = None
    """By the clock of the agent that scanned."""
    topic_id: str = ""
    unnamed: bytes | None = None
    """Run list of the offsets, counted from the first, of records without an id."""
    epoch: int | None = None
    """The leader epoch under which it read; None: not known."""

    def waited(self, received_ms: int, ms: int) -> bool:
        """Whether it began *ms* after what was received then, as far as its clock can tell.

        A clock that is behind the receipts which the scan knew of cannot tell.
        """
        if self.after_ms is None or self.began_ms is None or self.began_ms < self.after_ms:
            return True
        return self.began_ms >= received_ms + ms

    def may_name_topic(self, received_ms: int) -> bool:
        """Whether it tells which topic there was not long before something was received."""
        return self.after_ms is not None and (
            not self.after_ms or self.after_ms >= received_ms - BEFORE_MS
        )

    @property
    def is_dense(self) -> bool:
        """Whether every offset held a record: then nothing in the range was compacted away."""
        return self.records == self.last - self.first + 1

    @cached_property
    def without_id(self) -> Longs:
        """Offsets of records without an id, in order."""
        if not self.unnamed:
            return _NO_OFFSETS
        found, _ = decode_runs(self.unnamed).listed()
        return found + self.first

    @property
    def named(self) -> list[tuple[int, int]]:
        """What was read, without the offsets of records that have no id."""
        holes = self.without_id
        firsts = [self.first, *(holes + 1).tolist()]
        lasts = [*(holes - 1).tolist(), self.last]
        return list(zip(firsts, lasts, strict=True))


_NO_OFFSETS: Longs = np.zeros(0, np.int64)


@dataclass(frozen=True)
class StateAt:
    """What the cluster answered for a partition at one time."""

    at_ms: int
    earliest: int | None = None
    latest: int | None = None
    epoch: int | None = None
    topic_id: str = ""
    after_ms: int | None = None
    """Receipts up to this one were in the lake when the cluster was asked; None: not known."""

    @property
    def when_ms(self) -> int:
        """Not asked before this: by the clock of who asked, or by what it knew if that is later."""
        return max(self.at_ms, self.after_ms or self.at_ms)


@dataclass(frozen=True)
class Consumed:
    """A range of offsets that a group's member has read."""

    reporter: str
    assignment: int | None
    """How many times the partition had been assigned to the reporter; None: not known."""
    part: int
    first: int
    last: int
    began_ms: int
    ended_ms: int
    records: int = 0
    """Records that were read; as many as there are offsets where none was passed over."""
    leader_epoch: int | None = None
    """The highest leader epoch of these records, where the member reports it."""
    topic_id: str = ""
    received_ms: int | None = None
    """When an agent received the report; None: not known."""
    heard_ms: int | None = None
    """When an agent received the first report of the same reporter; None: not known."""

    @property
    def dense(self) -> bool:
        """Whether every offset of the range held a record that the member was given."""
        return self.records == self.last - self.first + 1


@dataclass(frozen=True)
class GroupCommit:
    """What a group had committed at one time, as the cluster answered."""

    at_ms: int
    offset: int
    metadata: str = ""
    topic_id: str = ""
    members: int | None = None
    group_state: str = ""
    after_ms: int | None = None
    """Receipts up to this one were in the lake when it was asked; None: not known."""

    @property
    def empty(self) -> bool:
        """Whether the group had no member."""
        return self.members == 0 or (self.members is None and self.group_state.upper() == "EMPTY")

    @property
    def processed(self) -> int | None:
        """The next offset the group had still to process, where an audited consumer wrote it."""
        found = _PROCESSED.search(self.metadata)
        return int(found.group(1)) if found else None


@dataclass(frozen=True)
class PartitionEvidence:
    """All scans of a partition and all answers about it."""

    scans: tuple[LogScan, ...] = ()
    states: tuple[StateAt, ...] = ()
    # What was found before; a copy made by replace() begins without it.
    _ends: dict[str, Ends] = field(init=False, default_factory=dict, repr=False, compare=False)
    _after: dict[tuple[object, ...], ScansAfter] = field(
        init=False, default_factory=dict, repr=False, compare=False
    )

    @cached_property
    def ordered(self) -> tuple[StateAt, ...]:
        """The states in the order of their time."""
        return tuple(
            sorted(
                self.states,
                key=lambda s: (
                    s.at_ms,
                    s.epoch or -1,
                    s.latest or -1,
                    s.topic_id,
                    s.after_ms or -1,
                ),
            )
        )

    @cached_property
    def scan_epochs(self) -> dict[tuple[str, int], int]:
        """The leader epoch under which each report of a scan was read, where it is known."""
        return {(s.reporter, s.number): s.epoch for s in self.scans if s.epoch is not None}

    @cached_property
    def topic_ids(self) -> frozenset[str]:
        """The ids of all topics of this name that were met."""
        met = {s.topic_id for s in self.states} | {s.topic_id for s in self.scans}
        return frozenset(met - {""})

    @cached_property
    def earliest(self) -> int:
        """Retention has taken everything below this offset."""
        return max((s.earliest for s in self.states if s.earliest is not None), default=0)

    def ends(self, topic_id: str = "") -> Ends:
        """The answers that have a leader epoch and a log end.

        With *topic_id*, without those that are about another topic of the same name.
        """
        found = self._ends.get(topic_id)
        if found is None:
            known = [
                (-1 if s.after_ms is None else s.after_ms, s.epoch, s.latest)
                for s in self.ordered
                if s.latest is not None
                and s.epoch is not None
                and (not topic_id or s.topic_id in ("", topic_id))
            ]
            found = self._ends[topic_id] = Ends(*np.array(known, np.int64).reshape(-1, 3).T)
        return found

    @cached_property
    def _by_start(self) -> tuple[list[int], tuple[LogScan, ...]]:
        """When the scans began, and the scans, in that order; only those of which it is known."""
        known = sorted(
            (s for s in self.scans if s.after_ms is not None), key=lambda s: s.after_ms or 0
        )
        return [s.after_ms or 0 for s in known], tuple(known)

    def scans_after(
        self,
        received_ms: int,
        topic_id: str = "",
        compactable: bool = False,
        wait_ms: int | None = None,
        above_epoch: int | None = None,
        epoch_known: bool = False,
    ) -> ScansAfter:
        """The scans that began after *received_ms*; without those of another topic.

        *compactable*: records may be missing from the log for another reason than loss, so that
        only scans count in which no offset is missing. *wait_ms*: only scans begun so much later.
        *above_epoch*: only scans under a higher leader epoch; *epoch_known*: and none whose epoch
        is not known.
        """
        starts, scans = self._by_start
        at = bisect_left(starts, received_ms)
        waiting = None if wait_ms is None else received_ms
        key = (at, topic_id, compactable, waiting, above_epoch, epoch_known)
        found = self._after.get(key)
        if found is None:
            found = ScansAfter(
                tuple(
                    s
                    for s in scans[at:]
                    if (not topic_id or s.topic_id in ("", topic_id))
                    and (not compactable or s.is_dense)
                    and (wait_ms is None or s.waited(received_ms, wait_ms))
                    and (above_epoch is None or s.epoch is None or s.epoch > above_epoch)
                    and not (epoch_known and s.epoch is None)
                )
            )
            self._after[key] = found
        return found


@dataclass(frozen=True)
class Ends:
    """Answers about one partition, as columns, in the order of their time."""

    after: Longs
    """-1 where it is not known."""
    epoch: Longs
    end: Longs


@dataclass(frozen=True)
class ScansAfter:
    """Scans of one partition that began after a certain receipt."""

    scans: tuple[LogScan, ...]

    @cached_property
    def covered(self) -> Coverage:
        """What they have read."""
        return Coverage((s.first, s.last) for s in self.scans)

    @cached_property
    def named(self) -> Coverage:
        """What they have read, without the offsets of records that have no id."""
        return Coverage(part for scan in self.scans for part in scan.named)

    @cached_property
    def under_first_leader(self) -> Coverage:
        """The same of those under the first leader of the partition: no other had led before."""
        return Coverage(part for scan in self.scans if scan.epoch == 0 for part in scan.named)

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """The last offsets of those that read to the end of the log."""
        return tuple(s.last for s in self.scans if s.closed)

    def touching(self, first: int, last: int) -> list[LogScan]:
        """Those that have read an offset from *first* to *last*."""
        firsts, lasts = self._bounds
        return [self.scans[i] for i in np.flatnonzero((firsts <= last) & (lasts >= first))]

    @cached_property
    def _bounds(self) -> tuple[Longs, Longs]:
        bounds = np.array([(s.first, s.last) for s in self.scans], np.int64).reshape(-1, 2)
        return bounds[:, 0], bounds[:, 1]


@dataclass(frozen=True)
class GroupEvidence:
    """What a group's members have read and what it has committed, per partition."""

    consumed: Mapping[int, tuple[Consumed, ...]] = field(default_factory=dict)
    commits: Mapping[int, tuple[GroupCommit, ...]] = field(default_factory=dict)
    first_committed: Mapping[int, int] = field(default_factory=dict)
    """The lowest offset that was ever committed."""
    closed: frozenset[str] = frozenset()
    """Members that ended in good order: they have reported all that they read."""


@dataclass(frozen=True)
class TopicEvidence:
    """All that is known of one topic, whoever produces to it."""

    partitions: Mapping[int, PartitionEvidence] = field(default_factory=dict)
    groups: Mapping[str, GroupEvidence] = field(default_factory=dict)
    compacted: bool | None = None
    """Whether the topic is or was compacted; None: its cleanup.policy is not known."""
    policy_since_ms: int | None = None
    """The newest receipt there was when its cleanup.policy was first known."""
    met: frozenset[str] | None = None
    """The ids of all topics of this name that were met, where they are not those of the rest."""
    replica_lag_ms: int = REPLICA_LAG_MS
    _views: dict[tuple[int, int], TopicEvidence] = field(
        init=False, default_factory=dict, repr=False, compare=False
    )

    @cached_property
    def topic_ids(self) -> frozenset[str]:
        """The ids of all topics of this name that were met."""
        if self.met is not None:
            return self.met
        return frozenset().union(*(p.topic_ids for p in self.partitions.values()))

    @cached_property
    def first_asked_ms(self) -> int | None:
        """The newest receipt there was when the cluster was first asked about the topic."""
        asked = (s.after_ms for p in self.partitions.values() for s in p.states)
        return min((ms for ms in asked if ms is not None), default=None)

    def since(self, begun_ms: int, received_ms: int) -> TopicEvidence:
        """The same without what is too old for a session that began at *begun_ms*.

        Commits and answers matter from some time before it began, scans that began before its
        first report was received decide nothing.
        """
        found = self._views.get((begun_ms, received_ms))
        if found is None:
            first = begun_ms - 2 * REPORT_DELAY_MS
            recent = {
                number: PartitionEvidence(
                    tuple(s for s in p.scans if s.may_name_topic(received_ms)),
                    tuple(s for s in p.states if s.when_ms >= first),
                )
                for number, p in self.partitions.items()
            }
            groups = {
                name: replace(
                    group,
                    commits={
                        number: tuple(c for c in commits if c.at_ms >= first)
                        for number, commits in group.commits.items()
                    },
                )
                for name, group in self.groups.items()
            }
            partitions = {
                number: replace(
                    p, scans=tuple(s for s in p.scans if (s.after_ms or 0) >= received_ms)
                )
                for number, p in recent.items()
            }
            met = frozenset().union(*(p.topic_ids for p in recent.values()))
            found = replace(self, partitions=partitions, groups=groups, met=met)
            known = self.policy_since_ms is not None and self.policy_since_ms <= received_ms
            if self.compacted is False and not known:  # it may have been another one before
                found = replace(found, compacted=None)
            self._views[begun_ms, received_ms] = found
        return found


@dataclass(frozen=True)
class SessionEvidence:
    """What is known of one producer instance.

    Times in `received_ms` are receipts; `first_ms` and `last_ms` are by the producer's clock.
    """

    settings: Mapping[str, str] = field(default_factory=dict)
    closed: bool = False
    """The producer was closed in good order."""
    ended_ms: int | None = None
    """The first receipt of a proof that the process ended; None: nothing proves it."""
    first_ms: int | None = None
    """Earliest event of the session on this topic."""
    last_ms: int | None = None
    """Latest event or report of the session."""
    first_received_ms: int | None = None
    last_received_ms: int | None = None
    minutes: tuple[tuple[int, int], ...] = ()
    """Epoch minute and the first seq created in it, in order."""
    has_transactions: bool = False
    """Some of its ids belong to transactions that were committed or aborted."""
    outcomes_unknown: Reason | None = None
    """Why ids without an outcome may have had one; None: as far as is known, they had none."""

    @property
    def longest_send_ms(self) -> int:
        """How long a record of the session may be under way."""
        names = ("delivery.timeout.ms", "message.timeout.ms")  # Java's name, librdkafka's
        text = next((self.settings[name] for name in names if name in self.settings), "")
        return int(text) if text.isdigit() else LONGEST_DELIVERY_MS

    @property
    def waits_for_all(self) -> bool:
        """Whether its acks are known to come only when all replicas in sync have a record.

        Clients refuse a transactional.id with other acks.
        """
        return self.transactional or self.settings.get("acks") in ("all", "-1")

    @property
    def stores_once(self) -> bool:
        """Whether no retry of its can have stored a record a second time."""
        return self.transactional or self.settings.get("enable.idempotence") == "true"

    @property
    def transactional(self) -> bool:
        """Whether the session's sends belong to transactions."""
        return self.has_transactions or self.settings.get("transactional.id", "") not in (
            "",
            "null",
        )

    @property
    def begun_ms(self) -> int | None:
        """No record of the session is older than this, as far as receipts and its clock say."""
        known = [ms for ms in (self.first_ms, self.first_received_ms) if ms is not None]
        return min(known) - min(self.longest_send_ms, REPORT_DELAY_MS) if known else None


def topic_of(rows: Iterable[Mapping[str, Any]]) -> TopicEvidence:
    """The evidence of a topic in rows of the ledger's job; in any order, repeated or not."""
    scans: dict[int, set[LogScan]] = {}
    states: dict[int, set[StateAt]] = {}
    consumed: dict[str, dict[int, list[tuple[int, Consumed]]]] = {}
    commits: dict[str, dict[int, set[GroupCommit]]] = {}
    first_committed: dict[str, dict[int, int]] = {}
    closed: dict[str, set[str]] = {}
    known: set[int] = set()
    compacted: bool | None = None
    policy_since: int | None = None
    lag = REPLICA_LAG_MS
    for row in rows:
        kind, partition = row["kind"], row["partition"]
        if kind == "scanned":
            scan = LogScan(
                first=row["first_offset"],
                last=row["last_offset"],
                after_ms=row["after_ms"],
                closed=bool(row["closed"]),
                reporter=row["reporter"],
                number=row["number"],
                records=row["records"],
                began_ms=row["began_ms"],
                topic_id=topic_id_text(row["topic_id"]),
                unnamed=row["unnamed"],
                epoch=row.get("leader_epoch"),
            )
            scans.setdefault(partition, set()).add(scan)
        elif kind == "state":
            state = StateAt(
                row["at_ms"],
                row["earliest_offset"],
                row["latest_offset"],
                row["leader_epoch"],
                topic_id_text(row["topic_id"]),
                row["after_ms"],
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
                row.get("records") or 0,
                row.get("leader_epoch"),
                topic_id_text(row.get("topic_id")),
                row.get("received_ms"),
            )
            at = consumed.setdefault(row["group"], {}).setdefault(partition, [])
            at.append((row["number"], read))
        elif kind == "commit":
            commit = GroupCommit(
                row["at_ms"],
                row["committed_offset"],
                row["metadata"] or "",
                topic_id_text(row.get("topic_id")),
                row.get("members"),
                row.get("group_state") or "",
                row.get("after_ms"),
            )
            commits.setdefault(row["group"], {}).setdefault(partition, set()).add(commit)
        elif kind == "member_closed":
            closed.setdefault(row["group"], set()).add(row["reporter"])
        elif kind == "scanned_partition":
            known.add(partition)
        if kind in ("commit", "first_commit"):
            lowest = first_committed.setdefault(row["group"], {})
            offset = row["committed_offset"]
            lowest[partition] = min(offset, lowest.get(partition, offset))
        elif kind == "policy":
            compacted, policy_since = row["compacted"], row["at_ms"]
        elif kind == "replica_lag" and row["replica_lag_ms"] is not None:
            lag = row["replica_lag_ms"]
    return TopicEvidence(
        partitions={
            p: PartitionEvidence(
                tuple(sorted(scans.get(p, ()), key=_scan_order)),
                tuple(states.get(p, ())),
            )
            for p in sorted({*known, *scans, *states})
        },
        groups={
            g: GroupEvidence(
                {p: _newest(found) for p, found in consumed.get(g, {}).items()},
                {p: tuple(found) for p, found in commits.get(g, {}).items()},
                first_committed.get(g, {}),
                frozenset(closed.get(g, ())),
            )
            for g in sorted({*consumed, *commits, *first_committed})
        },
        compacted=compacted,
        policy_since_ms=policy_since,
        replica_lag_ms=lag,
    )


def _scan_order(scan: LogScan) -> tuple[Any, ...]:
    return (scan.after_ms or -1, scan.first, scan.last, scan.reporter, scan.number, scan.closed)


def _newest(found: list[tuple[int, Consumed]]) -> tuple[Consumed, ...]:
    """The newest report of each part of each member; of one that came twice, the first receipt."""
    kept: dict[tuple[str, int], tuple[tuple[int, int, int], Consumed]] = {}
    heard: dict[str, int | None] = {}
    for number, read in found:
        key = (read.reporter, read.part)
        age = (number, read.last, -(read.received_ms or 0))
        if key not in kept or age > kept[key][0]:
            kept[key] = (age, read)
        first, now = heard.get(read.reporter, read.received_ms), read.received_ms
        heard[read.reporter] = None if first is None or now is None else min(first, now)
    return tuple(replace(read, heard_ms=heard[read.reporter]) for _, read in kept.values())
