"""A loss, and what is known of its topic, client and group: what the rules of its cause look at.

Facts of a partition's leaders are found by partition, offset and epoch, whatever their times. All
other facts are found by time: near the times that the producer reported, or near the receipts of
its reports. The clock of a producer may be wrong by hours; an agent's receipts are not.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from acktrail.audit.block_account import StateRange
from acktrail.audit.wire.identity import topic_id_text

WINDOW_MS = 600_000
"""Evidence this long before or after a loss may explain it."""
REACH_MS = 25 * 3_600_000
"""As long, for what has offsets or epochs: clocks of brokers and consumers may be wrong."""
OF_LEADERS = (
    *("leader_start", "unclean_election", "last_known_leader", "leader_change"),
    *("leader_recovering", "log_created", "truncation"),
)
"""Kinds of facts that name a partition, and an offset or an epoch."""
RESET = "offset_reset"
SETTING = "unclean_setting"
"""The kind of a fact that says what `unclean.leader.election.enable` was set to."""
_LASTING = (*OF_LEADERS, RESET, SETTING)
"""Found by offsets and epochs, or valid until the next one: kept whatever their times."""
_OF_CLIENTS = (
    *("retry", "split_retry", "expired", "send_failed", "connection_failure", "fatal_sequence"),
    "dropped_at_close",
)
_ALIKE = ("state", "reason", "partition", "told", "acked", "error")


@dataclass(frozen=True)
class Fact:
    """One thing that happened, from a log, a metric or the cluster; *key* names its row."""

    kind: str
    key: str
    at_ms: int | None = None
    """By the clock of the host that printed it; of what an agent asked, by the agent's."""
    after_ms: int | None = None
    """Of an answer: receipts up to this one were in the lake when it was asked for."""
    partition: int | None = None
    client_id: str | None = None
    host: str | None = None
    group: str | None = None
    detail: str | None = None
    error: str | None = None
    offset: int | None = None
    high_watermark: int | None = None
    broker: int | None = None
    """The broker that printed it; of an answer of the cluster, the leader."""
    leader: int | None = None
    epoch: int | None = None
    attempts_left: int | None = None
    setting: str | None = None
    isr: tuple[int, ...] = ()
    isr_before: tuple[int, ...] = ()
    topic_id: str | None = None
    """Of which topic of the name it speaks; None where that was not printed."""


@dataclass(frozen=True)
class Loss:
    """A finding with everything that may bear on it: facts of its topic, client and cluster."""

    finding: StateRange
    group: str = ""
    client_id: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    facts: Sequence[Fact] = ()
    host: str | None = None
    account: str = ""
    """Key of the row that names the ids and what was reported of them."""
    topic: str = ""

    @property
    def acks(self) -> str | None:
        """The session's acks, as 0, 1 or all."""
        acks = self.settings.get("acks")
        return "all" if acks == "-1" else acks

    def near(self, *kinds: str) -> list[Fact]:
        """Facts of *kinds* about the loss's partition (or none named), near it in time."""
        return [f for f in self.facts if f.kind in kinds and self._place(f) and self._time(f)]

    def of_partition(self, *kinds: str) -> list[Fact]:
        """Facts of *kinds* that name the loss's partition, whatever their times."""
        wanted = self.finding.partition
        return [
            f
            for f in self.facts
            if f.kind in kinds and f.partition is not None and wanted in (None, f.partition)
        ]

    def _place(self, fact: Fact) -> bool:
        wanted = self.finding.partition
        return wanted is None or fact.partition is None or fact.partition == wanted

    def _time(self, fact: Fact) -> bool:
        spans = spans_of(self.finding)
        if fact.kind in _OF_CLIENTS:  # printed on the producer's own host
            spans = spans[:1] if self.finding.first_ms is not None else ()
        elif fact.at_ms is None:
            return False
        return not spans or any(
            fact.at_ms is not None and first - WINDOW_MS <= fact.at_ms <= last + WINDOW_MS
            for first, last in spans
        )


def spans_of(finding: StateRange) -> tuple[tuple[int, int], ...]:
    """When it happened: by the producer's own clock, then by receipts; those that are known."""
    own = (finding.first_ms, finding.last_ms)
    received = (finding.first_received_ms, finding.last_received_ms)
    return tuple(
        (first, last) for first, last in (own, received) if first is not None and last is not None
    )


def printed_settings(
    printed: Iterable[Mapping[str, Any]], host: str | None, at_ms: int | None
) -> dict[str, str]:
    """What a client had printed of its settings on *host* when it sent at *at_ms*.

    The newest block of that host by then. One client id may run on several hosts with different
    settings: another host's block says nothing of this one. Where a block or the session has no
    host, what the newest blocks of all hosts agree on.
    """
    newest: dict[str | None, Mapping[str, Any]] = {}
    for block in sorted(printed, key=lambda b: (b["started_ms"], b["key"])):
        if at_ms is None or block["started_ms"] <= at_ms:
            newest[block["host"]] = block
    if host is not None and host in newest:
        return dict(newest[host]["settings"])
    if host is not None:
        newest = {name: block for name, block in newest.items() if name is None}
    blocks = [dict(block["settings"]) for block in newest.values()]
    if not blocks:
        return {}
    return {
        name: value
        for name, value in blocks[0].items()
        if all(other.get(name) == value for other in blocks)
    }


def _fact(row: Mapping[str, Any]) -> Fact:
    known: dict[str, Any] = {name: row[name] for name in Fact.__dataclass_fields__}
    lists = {name: tuple(row[name] or ()) for name in ("isr", "isr_before")}
    return Fact(**known | lists | {"topic_id": topic_id_text(row["topic_id"]) or None})


class TopicFacts:
    """The facts of one topic, in the order of time; what has offsets or epochs apart."""

    def __init__(self, rows: Iterable[Mapping[str, Any]] = ()) -> None:
        found = {row["key"]: _fact(row) for row in rows}
        ordered = sorted(found.values(), key=lambda f: (f.at_ms or 0, f.key))
        self._lasting = [f for f in ordered if f.kind in _LASTING]
        self._passing = [f for f in ordered if f.kind not in _LASTING]
        self._times = [f.at_ms or 0 for f in self._passing]

    def near(self, finding: StateRange) -> list[Fact]:
        """What has offsets or epochs, and the rest near *finding* in time (all without one)."""
        spans = spans_of(finding)
        if not spans or finding.first_ms is None:
            return [*self._lasting, *self._passing]
        found: dict[str, Fact] = {}
        for began, ended in spans:
            first = bisect_left(self._times, began - WINDOW_MS)
            last = bisect_right(self._times, ended + WINDOW_MS)
            found |= {f.key: f for f in self._passing[first:last]}
        return [*self._lasting, *found.values()]


def merge_ranges(findings: Iterable[StateRange]) -> Iterator[StateRange]:
    """Ranges that follow each other, across blocks, and are alike in all but their ids, as one."""
    together: list[StateRange] = []
    for finding in sorted(findings, key=lambda f: f.first_seq):
        if together and not _follows(together[-1], finding):
            yield _one_range(together)
            together = []
        together.append(finding)
    if together:
        yield _one_range(together)


def _follows(before: StateRange, after: StateRange) -> bool:
    same = all(getattr(before, name) == getattr(after, name) for name in _ALIKE)
    return same and after.first_seq == before.last_seq + 1


_LOWEST = ("first_offset", "first_ms", "first_received_ms")
_HIGHEST = ("last_offset", "last_ms", "last_received_ms")


def _one_range(together: Sequence[StateRange]) -> StateRange:
    if len(together) == 1:
        return together[0]

    def known(name: str) -> list[int]:
        return [v for f in together if (v := getattr(f, name)) is not None]

    bounds: dict[str, Any] = {name: min(known(name), default=None) for name in _LOWEST}
    bounds |= {name: max(known(name), default=None) for name in _HIGHEST}
    seen = known("seen_epoch")  # of all of them, or of none
    bounds["seen_epoch"] = min(seen) if len(seen) == len(together) else None
    return replace(together[0], last_seq=together[-1].last_seq, **bounds)
