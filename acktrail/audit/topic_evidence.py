"""What is known of a topic, its groups and a session, when a block's ids are judged."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from acktrail.audit.intervals import Coverage
from acktrail.kafka_defaults import DELIVERY_TIMEOUT_MS, REPLICA_LAG_MS

_PROCESSED = re.compile(r"acktrail:processed=(\d+)")


@dataclass(frozen=True)
class LogScan:
    """A range of offsets that a scan has read, whatever it found; *closed*: up to its end."""

    first: int
    last: int
    began_ms: int
    closed: bool = False


@dataclass(frozen=True)
class StateAt:
    """What the cluster answered for a partition at one time."""

    at_ms: int
    earliest: int | None = None
    latest: int | None = None
    epoch: int | None = None
    topic_id: str = ""


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


@dataclass(frozen=True)
class GroupCommit:
    """What a group had committed at one time."""

    at_ms: int
    offset: int
    metadata: str = ""

    @property
    def processed(self) -> int | None:
        """The next offset the group had still to process, where an audited consumer says so."""
        found = _PROCESSED.search(self.metadata)
        return int(found.group(1)) if found else None


@dataclass(frozen=True)
class PartitionEvidence:
    """All scans of a partition and all answers about it."""

    scans: tuple[LogScan, ...] = ()
    states: tuple[StateAt, ...] = ()

    @cached_property
    def ordered(self) -> tuple[StateAt, ...]:
        """The states in the order of their time."""
        return tuple(
            sorted(self.states, key=lambda s: (s.at_ms, s.epoch or -1, s.latest or -1, s.topic_id))
        )

    @cached_property
    def earliest(self) -> int:
        """Retention has taken everything below this offset."""
        return max((s.earliest for s in self.states if s.earliest is not None), default=0)

    def covered_after(self, ms: int) -> Coverage:
        """What scans that began at *ms* or later have read."""
        key = ("covered", ms)
        found = self._memory.get(key)
        if found is None:
            found = Coverage((s.first, s.last) for s in self.scans if s.began_ms >= ms)
            self._memory[key] = found
        return found

    @cached_property
    def _memory(self) -> dict[tuple[str, int], Coverage]:
        return {}


@dataclass(frozen=True)
class GroupEvidence:
    """What a group's members have read and what it has committed, per partition."""

    consumed: Mapping[int, tuple[Consumed, ...]] = field(default_factory=dict)
    commits: Mapping[int, tuple[GroupCommit, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class TopicEvidence:
    """All that is known of one topic, whoever produces to it."""

    partitions: Mapping[int, PartitionEvidence] = field(default_factory=dict)
    groups: Mapping[str, GroupEvidence] = field(default_factory=dict)
    compacted: bool = False
    replica_lag_ms: int = REPLICA_LAG_MS

    def since(self, ms: int) -> TopicEvidence:
        """The same without the cluster's answers before *ms*: older ones say nothing of a block."""
        found = self._views.get(ms)
        if found is None:
            partitions = {
                number: PartitionEvidence(p.scans, tuple(s for s in p.states if s.at_ms >= ms))
                for number, p in self.partitions.items()
            }
            found = replace(self, partitions=partitions)
            self._views[ms] = found
        return found

    @cached_property
    def _views(self) -> dict[int, TopicEvidence]:
        return {}


@dataclass(frozen=True)
class SessionEvidence:
    """What is known of one producer instance."""

    settings: Mapping[str, str] = field(default_factory=dict)
    closed: bool = False
    first_ms: int | None = None
    """Earliest event of the session on this topic."""
    last_ms: int | None = None
    """Latest event or report of the session."""
    minutes: tuple[tuple[int, int], ...] = ()
    """Epoch minute and the first seq created in it, in order."""

    @property
    def delivery_timeout_ms(self) -> int:
        """How long an open send may still succeed; none once the session is closed."""
        return 0 if self.closed else self.longest_send_ms

    @property
    def longest_send_ms(self) -> int:
        """How long before its first report a record of the session may have been stored."""
        names = ("delivery.timeout.ms", "message.timeout.ms")  # Java's name, librdkafka's
        text = next((self.settings[name] for name in names if name in self.settings), "")
        return int(text) if text.isdigit() else DELIVERY_TIMEOUT_MS

    @property
    def transactional(self) -> bool:
        """Transactional sends are not judged."""
        return self.settings.get("transactional.id", "") not in ("", "null")
