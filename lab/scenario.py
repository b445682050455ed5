"""What a scenario is made of: topics, clients, steps, and the outcome that is expected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from acktrail.kafka_defaults import RETRIES

if TYPE_CHECKING:
    from lab.run import Run

NONE = range(1)
SOME = range(1, 1 << 40)
ANY = range(1 << 40)


@dataclass(frozen=True)
class Topic:
    """A topic with its replicas laid out by hand: the first of each tuple is the leader."""

    name: str
    replicas: tuple[tuple[int, ...], ...] = ((1, 2, 3),)
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Producer:
    """A producer process. Its messages are `prefix.0`, `prefix.1`, … with a prefix per run."""

    name: str
    topic: str
    messages: int
    per_second: int
    acks: Literal["0", "1", "all"] = "all"
    retries: int = RETRIES
    settings: Mapping[str, str] = field(default_factory=dict)
    kind: Literal["java", "python"] = "java"
    audited: str = ""
    """Which audited client it is (`lab/client_choice.py`); empty: what it prints is its audit."""
    starts_later: bool = False
    """Started by a step instead of at the beginning."""
    unfinished: bool = False
    """Still at work when the evidence ends: it is killed after the last sample was taken."""
    client_id: str = ""
    """What it calls itself to Kafka; its name where empty. Several producers may share one."""
    on_host: str = ""
    """The name of its machine, where it has to share one with another client."""
    repeating_keys: int = 0
    """Message n has the key n modulo this; 0: no keys."""
    transaction_messages: int = 0
    """Python, with a `transactional.id`: messages per transaction; 0: no transactions."""
    aborts_every: int = 0
    """Python: every so many transactions, one is aborted; 0: none."""
    large_every: int = 0
    """Python: every so many messages, one carries a header of `large_bytes`."""
    large_bytes: int = 0
    statistics_ms: int = 0
    """Python: how often librdkafka's statistics are written to a file beside the log; 0: never."""
    on_stop: Literal["flush", "purge", "drop"] = "flush"
    """Python, at SIGTERM: wait for all reports, purge what is queued, or simply end."""

    @property
    def host(self) -> str:
        """The name that stands for its machine in the evidence."""
        return self.on_host or f"{self.name}-1"

    @property
    def called(self) -> str:
        """Its client id."""
        return self.client_id or self.name


@dataclass(frozen=True)
class Consumer:
    """A consumer process, a member of its group. Several consumers may share a group."""

    name: str
    topic: str
    group: str
    settings: Mapping[str, str] = field(default_factory=dict)
    kind: Literal["java", "python"] = "java"
    audited: str = ""
    """As of a producer."""
    starts_later: bool = False
    reset: Literal["earliest", "latest"] = "earliest"
    """Where it begins without a commit."""
    commits: Literal["after", "ahead"] = "after"
    """Python: commits what it has processed, or a whole batch before it processes it."""
    processing_ms: int = 0
    """Python: how long it takes for each message."""

    @property
    def host(self) -> str:
        """The name that stands for its machine in the evidence."""
        return f"{self.name}-1"

    @property
    def isolation(self) -> str:
        """Which records it is given, by its settings and the default of its client."""
        default = "read_committed" if self.kind == "python" else "read_uncommitted"
        return self.settings.get("isolation.level", default)


class Step(Protocol):
    """Something that a scenario does or waits for."""

    def do(self, run: Run) -> None:
        """Do it, or wait for it; LabError when it cannot be had."""


@dataclass(frozen=True)
class Blame:
    """Why some of a producer's lost messages are lost; the first that fits a message holds."""

    cause: str
    also: tuple[str, ...] = ()
    """Other causes that were necessary too: none of them alone would have lost it."""
    partition: int | None = None
    """Only what was stored there."""
    since: str | None = None
    """Only what the application was told after this mark (see `Milestone`)."""
    until: str | None = None
    """Only what it was told before this mark."""


@dataclass(frozen=True)
class Expect:
    """What should become of one producer's messages; each a range of counts."""

    cause: str = "none"
    """Why messages are lost: a name of the vocabulary of causes, or `none`."""
    blame: tuple[Blame, ...] = ()
    """Where not all are lost for one reason: more exact than `cause`, which is for the rest."""
    lost_after_ack: range = NONE
    lost_told: range = NONE
    """The application heard that they failed, and they are in no log."""
    lost_silent: range = NONE
    """Nobody was told anything, or nothing that means something (acks=0)."""
    duplicated: range = NONE
    out_of_order: range = NONE
    ghosts: range = NONE
    """Reported failed, and in the log all the same."""
    aborted: range = NONE
    """Of transactions that were aborted: neither lost nor owed to who reads what is committed."""
    taken: range = NONE
    """Removed from the log by its owner: compaction, retention, an admin."""
    cut: range = ANY
    """Lost messages that had been in the log: acked with an offset, or received by a group."""


@dataclass(frozen=True)
class Owed:
    """What a group should have missed of what it was owed; each a range of counts."""

    skipped: range = NONE
    """In the log, passed over and never received."""
    expired: range = NONE
    """Removed from the log before the group read it."""
    cause: str = "none"
    also: tuple[str, ...] = ()


@dataclass(frozen=True)
class Scenario:
    """One experiment."""

    name: str
    question: str
    """What it answers, in one sentence."""
    topics: tuple[Topic, ...]
    producers: tuple[Producer, ...]
    consumers: tuple[Consumer, ...]
    steps: tuple[Step, ...]
    expect: Mapping[str, Expect]
    """By producer."""
    within_s: int = 240
    """The whole run, cluster start not included, ends within this many seconds."""
    ends_broken: bool = False
    """Evidence ends while the last fault lasts."""
    missed: Mapping[str, range] = field(default_factory=dict)
    """By group: messages it was owed and never received. None where a group is not named."""
    owed: Mapping[str, Owed] = field(default_factory=dict)
    """By group: what it misses, and why, where the scenario is about that."""
    clients: str = "verifiable"
    """Which clients it runs with: see `lab/client_choice.py`."""
