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
    starts_later: bool = False
    """Started by a step instead of at the beginning."""
    unfinished: bool = False
    """Still at work when the evidence ends: it is killed after the last sample was taken."""

    @property
    def host(self) -> str:
        """The name that stands for its machine in the evidence."""
        return f"{self.name}-1"


@dataclass(frozen=True)
class Consumer:
    """A consumer process, alone in its group."""

    name: str
    topic: str
    group: str
    settings: Mapping[str, str] = field(default_factory=dict)
    kind: Literal["java", "python"] = "java"
    starts_later: bool = False

    @property
    def host(self) -> str:
        """The name that stands for its machine in the evidence."""
        return f"{self.name}-1"


class Step(Protocol):
    """Something that a scenario does or waits for."""

    def do(self, run: Run) -> None:
        """Do it, or wait for it; LabError when it cannot be had."""


@dataclass(frozen=True)
class Expect:
    """What should become of one producer's messages; each a range of counts."""

    cause: str = "none"
    """Why messages are lost: a name of the vocabulary of causes, or `none`."""
    lost_after_ack: range = NONE
    lost_told: range = NONE
    """The application heard that they failed, and they are in no log."""
    lost_silent: range = NONE
    """Nobody was told anything, or nothing that means something (acks=0)."""
    duplicated: range = NONE
    out_of_order: range = NONE
    ghosts: range = NONE
    """Reported failed, and in the log all the same."""


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
    """By group: messages in the log that it never received. None where a group is not named."""
