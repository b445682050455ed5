"""What the world's hosts say, as it reached the lake: units that are committed whole."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from acktrail.audit.loss_evidence import Fact
from acktrail.audit.wire import Report
from tests.worlds.partition import Copy

TOPIC = "orders"
START_MS = 1_800_000_000_000
LAG_MS = 5_000


@dataclass(frozen=True)
class StateRow:
    """What the cluster answered of a partition."""

    partition: int
    at_ms: int
    earliest: int | None
    latest: int | None
    epoch: int | None
    topic_id: str
    leader: int | None = None
    isr: tuple[int, ...] = ()
    after_ms: int | None = None


@dataclass(frozen=True)
class CommitRow:
    """What the cluster answered of a group's commit in a partition."""

    group: str
    partition: int
    at_ms: int
    offset: int
    metadata: str
    topic_id: str = "t1"
    members: int | None = None
    state: str | None = None
    after_ms: int | None = None


@dataclass(frozen=True)
class ConfigRow:
    """Settings of a topic or a broker."""

    kind: str
    entity: str
    at_ms: int
    settings: tuple[tuple[str, str], ...]
    after_ms: int = 0


@dataclass
class Evidence:
    """All that the rules may look at."""

    reports: list[Report] = field(default_factory=list)
    states: list[StateRow] = field(default_factory=list)
    commits: list[CommitRow] = field(default_factory=list)
    configs: list[ConfigRow] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)


@dataclass(frozen=True)
class Probe:
    """A look at the log: the truth behind a scan's row or a cluster's answer."""

    partition: int
    topic_id: str
    began: int
    read: int
    first: int
    last: int
    found: tuple[Copy, ...] = ()
    complete: bool = False
    """The last piece of a scan of all that the log had when it began."""
    number: int = 0


@dataclass(frozen=True)
class Unit:
    """One commit's worth of one source: it is in the lake whole, or not at all."""

    tick: int
    kind: str
    """report, heartbeat, read, scan, state, commit, config or fact."""
    source: str
    """Who reported: a session, a member, an agent."""
    rows: tuple[object, ...]
    probes: tuple[Probe, ...] = ()


def evidence_of(units: Iterable[Unit]) -> Evidence:
    """The rows of *units*, by table."""
    found = Evidence()
    lists: dict[type, list] = {
        Report: found.reports, StateRow: found.states, CommitRow: found.commits,
        ConfigRow: found.configs, Fact: found.facts,
    }  # fmt: skip
    for unit in units:
        for row in unit.rows:
            lists[type(row)].append(row)
    return found
