"""One partition as it really is: a log on each replica, leaders with epochs, a high watermark.

Every stored record is a `Copy`, which knows when it was in the log and what took it out.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

FOREVER = 1 << 62
BENIGN = ("retention", "deleted", "compaction", "recreated")
"""What takes records without losing them."""
CONTROLLER = 0
"""The broker id under which the controller's lines are."""
_ELECTIONS = {
    "unclean_election": "unclean_election",
    "wiped": "last_known_leader",
    "unchanged": "last_known_leader",
}


@dataclass(eq=False)
class Transaction:
    """Open until it is committed or aborted."""

    committed_at: int = FOREVER
    aborted_at: int = FOREVER


@dataclass
class Span:
    """A time in which a copy was in the log; *why*: what took it out."""

    since: int
    until: int = FOREVER
    why: str = ""


@dataclass(eq=False)
class Copy:
    """One record at one offset. Without a session it is nobody's: a marker or unaudited."""

    session: str
    seq: int
    epoch: int
    named: bool = True
    marker: bool = False
    transaction: Transaction | None = None
    partition: int = -1
    topic_id: str = ""
    offset: int = -1
    stored: list[Span] = field(default_factory=list)
    """When it was in the leader's log."""
    visible: list[Span] = field(default_factory=list)
    """When it was there below the high watermark."""

    def stored_at(self, now: int) -> bool:
        return any(s.since <= now < s.until for s in self.stored)

    def visible_at(self, now: int) -> bool:
        return any(s.since <= now < s.until for s in self.visible)


@dataclass
class Replica:
    """A broker's own log; *end* is the offset after the last record."""

    records: dict[int, Copy] = field(default_factory=dict)
    start: int = 0
    end: int = 0

    def cut(self, end: int) -> None:
        self.end = max(end, self.start)
        for offset in [o for o in self.records if o >= self.end]:
            del self.records[offset]


@dataclass(frozen=True)
class BrokerEvent:
    """What a broker's own log says."""

    kind: str
    broker: int
    partition: int
    epoch: int | None = None
    offset: int | None = None
    high_watermark: int | None = None
    leader: int | None = None


class Partition:
    """Replicas, who leads, and what is in the log."""

    def __init__(self, number: int, topic_id: str, brokers: list[int], chance: random.Random):
        self.number, self.topic_id, self.chance = number, topic_id, chance
        self.replicas = {b: Replica() for b in brokers}
        self.live = set(brokers)
        self.isr = list(brokers)
        self.stalled: set[int] = set()
        self.leader: int | None = brokers[0]
        self.epoch = 0
        self.epoch_start = 0
        self.watermark = 0
        self.zombie: tuple[int, int, int] | None = None
        """An isolated former leader, its epoch and its watermark."""
        self.events: list[BrokerEvent] = []
        self.cuts: list[tuple[int, int, str]] = []
        """Time, offset and reason of every cut of the log."""
        for broker in brokers:
            self._say("log_created", broker)
        self._say("leader_start", brokers[0], epoch=0, offset=0)
        self._caught_up: dict[int, int] = {}
        self._stored: set[Copy] = set()
        self._visible: set[Copy] = set()

    # -- what is in it ---------------------------------------------------------------------------

    @property
    def stable_end(self) -> int:
        """Where the first open transaction begins; the high watermark where none is open."""
        for offset in sorted(self.log.records):
            t = self.log.records[offset].transaction
            if t is not None and offset < self.watermark and t.committed_at == t.aborted_at:
                return offset
        return self.watermark

    @property
    def log(self) -> Replica:
        """The leader's log; without a leader nobody can read it."""
        assert self.leader is not None
        return self.replicas[self.leader]

    @property
    def readable(self) -> bool:
        """Whether the leader answers: only once its watermark has reached its own epoch."""
        return self.leader is not None and self.watermark >= self.epoch_start

    def has(self, copy: Copy) -> bool:
        """Whether *copy* is in the leader's log."""
        return copy in self._stored

    def has_visible(self, copy: Copy) -> bool:
        """Whether *copy* is there below the high watermark."""
        return copy in self._visible

    def _note(self, now: int, why: str = "") -> None:
        """Open and close the spans of the copies that came and went."""
        if self.leader is None:
            return
        stored = set(self.log.records.values())
        mark = self.watermark
        visible = {c for c in stored if c.offset < mark}
        for had, has, name in (
            (self._stored, stored, "stored"),
            (self._visible, visible, "visible"),
        ):
            for copy in had - has:
                span = getattr(copy, name)[-1]
                span.until, span.why = now, why
            for copy in has - had:
                getattr(copy, name).append(Span(now))
        self._stored, self._visible = stored, visible

    def append(self, copy: Copy, now: int, *, to_zombie: bool = False) -> Copy:
        """The leader stores *copy*; an isolated one does so for nobody but itself."""
        if to_zombie:
            assert self.zombie is not None
            broker, copy.epoch, _ = self.zombie
        else:
            assert self.leader is not None
            broker, copy.epoch = self.leader, self.epoch
        replica = self.replicas[broker]
        copy.partition, copy.topic_id, copy.offset = self.number, self.topic_id, replica.end
        replica.records[replica.end] = copy
        replica.end += 1
        if not to_zombie:
            copy.stored.append(Span(now))
            self._stored.add(copy)
            self._advance(now)
        return copy

    def _advance(self, now: int) -> None:
        """The high watermark follows the slowest replica in sync."""
        if self.leader is None:
            return
        slowest = min(self.replicas[b].end for b in self.isr)
        if slowest <= self.watermark:
            return
        records = self.log.records
        for offset in range(self.watermark, slowest):
            copy = records.get(offset)
            if copy is not None and copy not in self._visible:
                copy.visible.append(Span(now))
                self._visible.add(copy)
        self.watermark = slowest

    # -- replication -----------------------------------------------------------------------------

    def replicate(self, now: int) -> None:
        """Followers that can fetch have what the leader has."""
        if self.leader is None:
            return
        for broker in sorted(self.live - self.stalled - {self.leader}):
            if self.zombie is None or broker != self.zombie[0]:
                self._follow(broker)
                if broker not in self.isr:
                    self.isr.append(broker)
        self._advance(now)

    def _follow(self, broker: int) -> None:
        """Cut what the leader has not, then copy what it has."""
        log, own = self.log, self.replicas[broker]
        shared = min(own.end, log.end)
        theirs = sorted(o for o in own.records if o >= log.start)
        for offset in theirs:
            mine, other = own.records[offset], log.records.get(offset)
            if other is not mine and (other is not None or offset >= log.end):
                shared = min(shared, offset)
                break
        if shared < own.end:
            self._say(
                "truncation", broker, offset=shared, high_watermark=min(self.watermark, shared)
            )
            own.cut(shared)
        for offset in range(max(own.end, log.start), log.end):
            if offset in log.records:
                own.records[offset] = log.records[offset]
        own.end = log.end
        if own.start < log.start:
            own.start = log.start
            own.records = {o: c for o, c in own.records.items() if o >= own.start}

    def stall(self, broker: int) -> None:
        """The follower fetches no more; it is in sync until the leader gives it up."""
        if broker != self.leader:
            self.stalled.add(broker)

    def resume(self, broker: int) -> None:
        self.stalled.discard(broker)

    def give_up_stalled(self, now: int, lag_ms: int) -> None:
        """The leader takes followers that have not caught up for too long off the ISR."""
        if self.leader is None:
            return
        end = self.log.end
        for broker in self.isr:
            if self.replicas[broker].end >= end and broker in self.live:
                self._caught_up[broker] = now
        kept = [
            b
            for b in self.isr
            if b == self.leader or now - self._caught_up.setdefault(b, now) <= lag_ms
        ]
        if self.zombie is not None:
            kept = [b for b in kept if b != self.zombie[0]]
        if kept != self.isr:
            self.isr = kept
            self._say("isr_shrink", self.leader)
            self._advance(now)

    # -- elections -------------------------------------------------------------------------------

    def kill(self, broker: int, now: int, *, unclean: bool) -> None:
        """The broker's process ends; if it led, another replica in sync leads, or none.

        With *unclean*, any live replica may lead then.
        """
        self.live.discard(broker)
        if self.zombie is not None and self.zombie[0] == broker:
            self.zombie = None
        if broker == self.leader:
            self._elect(now, unclean=unclean)

    def isolate_leader(self, now: int) -> bool:
        """The controller loses the leader and elects another; the old one does not know it yet."""
        others = [b for b in self.isr if b != self.leader and b in self.live]
        if not others or self.leader is None or self.zombie is not None:
            return False
        old = self.leader
        self.zombie = (old, self.epoch, self.watermark)
        self._lead(self.chance.choice(others), now, "acks_1_leader_change")
        self.isr = [b for b in self.isr if b != old]
        return True

    def heal(self) -> None:
        self.zombie = None

    def _elect(self, now: int, *, unclean: bool) -> None:
        left = self.leader
        fit = [b for b in self.isr if b in self.live and b != left]
        if self.zombie is not None:
            fit = [b for b in fit if b != self.zombie[0]]
        if fit:
            self._lead(self.chance.choice(fit), now, "acks_1_leader_change")
            return
        rest = sorted(self.live - ({self.zombie[0]} if self.zombie else set()))
        if unclean and rest:
            self.elect_unclean(self.chance.choice(rest), now)
            return
        self.isr = [left] if left is not None else self.isr
        self.leader = None

    def elect_unclean(self, broker: int, now: int) -> None:
        """A replica that may lack committed records leads."""
        self.isr = [broker]
        self._lead(broker, now, "unclean_election")

    def _lead(self, broker: int, now: int, why: str) -> None:
        end = self.replicas[broker].end
        self.cuts.append((now, end, why))
        self.leader, self.epoch = broker, self.epoch + 1
        kind = _ELECTIONS.get(why, "leader_change")
        self._say(kind, CONTROLLER, epoch=self.epoch, leader=broker)
        self._say("leader_start", broker, epoch=self.epoch, offset=end)
        self.epoch_start = end
        self.isr = [b for b in self.isr if b in self.live and b != broker] + [broker]
        self.watermark = min(self.watermark, end)
        if self.isr == [broker]:
            self.watermark = end
        self.stalled.discard(broker)
        self._note(now, why)
        self._advance(now)
        self._note(now, why)

    def restart(self, broker: int, now: int, *, wiped: bool = False) -> None:
        """The broker is back; with *wiped*, its disk is empty."""
        if wiped:
            self.replicas[broker] = Replica()
            self._say("log_created", broker)
        self.live.add(broker)
        if self.leader is None:
            if broker in self.isr:
                self.isr = [broker]
                why = "wiped" if wiped else "unchanged"
                self._lead(broker, now, why)
        elif wiped and broker in self.isr and broker != self.leader:
            self.isr.remove(broker)
            self._advance(now)

    # -- what the cluster deletes ----------------------------------------------------------------

    def delete_before(self, offset: int, now: int, why: str) -> None:
        """Retention or an admin takes what is below *offset* (and below the watermark)."""
        if self.leader is None:
            return
        log = self.log
        log.start = max(log.start, min(offset, self.watermark))
        log.records = {o: c for o, c in log.records.items() if o >= log.start}
        self._note(now, why)

    def compact(self, now: int) -> None:
        """Some records below the watermark are superseded, on the leader."""
        if self.leader is None:
            return
        log = self.log
        for offset in sorted(o for o in log.records if o < self.watermark - 1):
            if not log.records[offset].marker and self.chance.random() < 0.4:
                del log.records[offset]
        self._note(now, "compaction")

    def end_for_ever(self, now: int) -> None:
        """The topic is deleted."""
        for copies, name in ((self._stored, "stored"), (self._visible, "visible")):
            for copy in copies:
                span = getattr(copy, name)[-1]
                span.until, span.why = now, "recreated"

    def _say(self, kind: str, broker: int, **more: int | None) -> None:
        self.events.append(BrokerEvent(kind, broker, self.number, **more))
