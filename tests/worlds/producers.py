"""Producers as they really are: records in flight, retries, what the application was told."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from acktrail.audit.send_errors import tier_of_error
from acktrail.audit.wire import Report, Sighting, bucket_of, encode_sightings
from acktrail.contracts.vocabulary import Tier
from tests.worlds.evidence import TOPIC
from tests.worlds.partition import BENIGN, Copy, Partition, Transaction

FIRST_SEND = {
    "java": ("TimeoutException(metadata)", "RecordTooLargeException", "BufferExhaustedException"),
    "librdkafka": ("_QUEUE_FULL", "MSG_SIZE_TOO_LARGE", "_UNKNOWN_TOPIC"),
}
EXPIRED = {"java": "TimeoutException(expired)", "librdkafka": "_MSG_TIMED_OUT"}
REFUSED = {"java": "NotEnoughReplicasException", "librdkafka": "NOT_ENOUGH_REPLICAS"}
PURGED = {"java": "KafkaException(closed)", "librdkafka": "_PURGE_QUEUE"}
DEFAULT_MS = {"java": 120_000, "librdkafka": 300_000}


@dataclass
class Host:
    """A machine with a clock of its own."""

    name: str
    skew_ms: int = 0

    def clock(self, now: int) -> int:
        return now + self.skew_ms


@dataclass(eq=False)
class Fate:
    """What is true of one id."""

    session: str
    seq: int
    sent: int
    copies: list[Copy] = field(default_factory=list)
    told: str = ""
    """acked, acked_no_offset, unacked, failed, indeterminate, aborted; empty: nothing."""
    told_at: int = -1
    error: str = ""
    before_send: bool = False
    """The error came before anything was sent."""
    transaction: Transaction | None = None
    partition: int = -1


@dataclass(eq=False)
class Flight:
    """A record that has been handed over and not been decided."""

    fate: Fate
    partition: int
    deadline: int
    copy: Copy | None = None
    attempts: int = 0


@dataclass(eq=False)
class Producer:
    """One session."""

    session: str
    client_id: str
    host: Host
    lib: str
    acks: str
    chance: random.Random
    timeout_ms: int
    retries: int
    idempotent: bool
    transactional: bool
    shows: str
    """How much its heartbeats show: settings, names (not the time-out), nothing (no heartbeats)."""
    strips: float
    """How often something on the way takes the header off."""
    notes_sends: bool
    offsets: bool
    """Whether acks are reported with their offsets."""
    alive: bool = True
    silent: bool = False
    ended: bool = False
    closed: bool = False
    reporter: str = ""
    next_seq: int = 0
    part: int = 0
    number: int = 0
    zombie_fan: bool = False
    """Its metadata still names an isolated former leader."""
    fates: dict[int, Fate] = field(default_factory=dict)
    flights: list[Flight] = field(default_factory=list)
    on_wire: list[Flight] = field(default_factory=list)
    """Requests that brokers may still read, after the client gave up."""
    minutes: dict[int, int] = field(default_factory=dict)
    seen: list[Sighting] = field(default_factory=list)
    transaction: Transaction | None = None
    in_transaction: list[Fate] = field(default_factory=list)

    # -- sending ---------------------------------------------------------------------------------

    def send(self, partition: int, now: int, error: str = "") -> None:
        """Hand over the next id; *error*: the client refuses it at once."""
        seq, self.next_seq = self.next_seq, self.next_seq + 1
        self.minutes.setdefault(self.host.clock(now) // 60_000, seq)
        fate = self.fates[seq] = Fate(self.session, seq, now)
        if self.notes_sends:
            self._note(fate, Tier.SENT, now, -1)
        if error:
            fate.before_send = True
            self._tell(fate, now, error=error)
            return
        fate.partition = partition
        if self.transactional:
            if self.transaction is None:
                self.transaction = Transaction()
            fate.transaction = self.transaction
            self.in_transaction.append(fate)
        self.flights.append(Flight(fate, partition, now + self.timeout_ms))

    def advance(self, partitions: list[Partition], now: int, min_isr: int, calm: bool) -> None:
        """Requests go out, answers come in, time runs out."""
        for flight in list(self.flights):
            partition = partitions[flight.partition]
            if self._attempt(flight, partition, now, min_isr, calm):
                self.flights.remove(flight)
            elif now >= flight.deadline:
                self.flights.remove(flight)
                if self.chance.random() < 0.5:
                    self.on_wire.append(flight)
                self._tell(flight.fate, now, error=EXPIRED[self.lib])

    def _attempt(
        self, flight: Flight, partition: Partition, now: int, min_isr: int, calm: bool
    ) -> bool:
        """Whether the flight is over."""
        zombie = self.zombie_fan and partition.zombie is not None
        if flight.copy is not None:
            return self._await_followers(flight, partition, now)
        if not calm and self.chance.random() < 0.25:
            return False  # the request waits
        reached = zombie or partition.leader is not None
        if self.acks == "0":
            self._fire(flight, partition, now, reached, zombie, calm)
            return True
        if not reached or (self.acks == "all" and zombie):
            return False
        flight.attempts += 1
        lost = not calm and self.chance.random() < 0.08  # the answer, so it will be sent again
        if self.acks == "all":
            return self._send_to_all(flight, partition, now, min_isr, lost)
        copy = self._store(flight, partition, now, zombie)
        if not lost:
            self._acked(flight.fate, copy, now)
        return not lost

    def _await_followers(self, flight: Flight, partition: Partition, now: int) -> bool:
        """With acks=all, the leader answers once its followers have the record."""
        copy = flight.copy
        assert copy is not None
        if partition.has_visible(copy):
            self._acked(flight.fate, copy, now)
            return True
        if not partition.has(copy):
            flight.copy = None
        return False

    def _fire(
        self, flight: Flight, partition: Partition, now: int, reached: bool, zombie: bool,
        calm: bool,
    ) -> None:  # fmt: skip
        """With acks=0, nobody answers."""
        if reached and (calm or self.chance.random() < 0.85):
            self._store(flight, partition, now, zombie)
        elif reached and self.chance.random() < 0.5:
            self.on_wire.append(flight)
        self._tell(flight.fate, now, tier=Tier.SENT_UNACKED)

    def _send_to_all(
        self, flight: Flight, partition: Partition, now: int, min_isr: int, lost: bool
    ) -> bool:
        """With acks=all, the leader stores it if enough replicas are in sync."""
        over = flight.attempts > self.retries
        if len(partition.isr) < min_isr:
            if over:
                self._tell(flight.fate, now, error=REFUSED[self.lib])
            return over
        before = flight.fate.copies[-1] if self.idempotent and flight.fate.copies else None
        if before is not None and before.stored and before.stored[-1].why in BENIGN:
            self._acked(flight.fate, before, now)  # the leader remembers its number
            return True
        if before is not None and partition.has(before):
            flight.copy = before
            return False
        copy = self._store(flight, partition, now, False)
        if lost and over:
            self._tell(flight.fate, now, error="_TRANSPORT")
            return True
        flight.copy = None if lost else copy
        return False

    def _store(self, flight: Flight, partition: Partition, now: int, zombie: bool) -> Copy:
        named = self.chance.random() >= self.strips
        copy = Copy(self.session, flight.fate.seq, 0, named, transaction=flight.fate.transaction)
        partition.append(copy, now, to_zombie=zombie)
        flight.fate.copies.append(copy)
        return copy

    def late(self, partitions: list[Partition], now: int) -> None:
        """A broker reads at last what was sent long ago."""
        for flight in list(self.on_wire):
            partition = partitions[flight.partition]
            if partition.leader is not None and self.chance.random() < 0.3:
                self.on_wire.remove(flight)
                open_one = flight.fate.transaction
                if open_one is None:  # a coordinator fences what comes after the transaction
                    self._store(flight, partition, now, False)

    def end_transaction(self, partitions: list[Partition], now: int, commit: bool) -> None:
        """Commit or abort: a marker in every partition that it wrote to."""
        ended, mine = self.transaction, self.in_transaction
        if ended is None:
            return
        if commit and any(f.transaction is ended for f in (fl.fate for fl in self.flights)):
            return  # a producer flushes first
        self.transaction, self.in_transaction = None, []
        places = {f.partition for f in mine if f.copies}
        if any(partitions[p].leader is None for p in places):
            commit = False
        for flight in [f for f in self.flights if f.fate.transaction is ended]:
            self.flights.remove(flight)
            self._tell(flight.fate, now, error="_PURGE_QUEUE")
        for number in places:
            if partitions[number].leader is not None:
                partitions[number].append(Copy("", -1, 0, False, marker=True), now)
        if commit:
            ended.committed_at = now
            return
        ended.aborted_at = now
        for fate in mine:
            if self.chance.random() < 0.7:
                self._note(fate, Tier.ABORTED, now, fate.partition)

    # -- what the application is told ------------------------------------------------------------

    def _acked(self, fate: Fate, copy: Copy, now: int) -> None:
        tier = Tier.ACKED if self.offsets else Tier.ACKED_NO_OFFSET
        fate.told, fate.told_at, fate.partition = tier.value, now, copy.partition
        self._note(fate, tier, now, copy.partition, copy.offset if self.offsets else None)

    def _tell(self, fate: Fate, now: int, error: str = "", tier: Tier | None = None) -> None:
        tier = tier or tier_of_error(error)
        fate.told, fate.told_at, fate.error = tier.value, now, error
        known = fate.partition if error == "" or self.chance.random() < 0.5 else -1
        self._note(fate, tier, now, known, None, error)

    def _note(
        self, fate: Fate, tier: Tier, now: int, partition: int, offset=None, error=""
    ) -> None:
        self.seen.append(
            Sighting(
                self.session, TOPIC, fate.seq, tier, self.host.clock(now), partition, offset,
                error=error or None,
            )
        )  # fmt: skip

    # -- reports ---------------------------------------------------------------------------------

    def report(self, now: int) -> list[Report]:
        """What was seen since the last report."""
        self.number += 1
        at = self.host.clock(now)
        made = encode_sightings(self.seen, self.reporter, self.number, at, self.part)
        self.part += len(made)
        self.seen = []
        return made

    def beat(self, now: int, *, exited: bool = False, reporter: str = "") -> list[Report]:
        if self.shows == "nothing":
            return []
        self.number += 1
        return [
            Report(
                reporter=reporter or self.reporter,
                tier=Tier.HEARTBEAT,
                topic=TOPIC,
                number=self.number,
                reported_ms=self.host.clock(now),
                session=self.session,
                settings=self.settings(),
                minutes=tuple(n for pair in sorted(self.minutes.items()) for n in pair),
                closed=self.closed and not exited,
                exited=exited,
            )
        ]

    def settings(self) -> dict[str, str]:
        found = {"client_id": self.client_id, "host": self.host.name}
        if self.transactional:
            found["transactional.id"] = f"tx-{self.client_id}"
        if self.shows == "settings":
            name = "delivery.timeout.ms" if self.lib == "java" else "message.timeout.ms"
            found |= {"acks": self.acks, "retries": str(self.retries), name: str(self.timeout_ms)}
        return found

    # -- the end ---------------------------------------------------------------------------------

    def die(self) -> None:
        """The process ends; what it had not reported is gone, and what is on the wire is not."""
        self.alive, self.ended = False, True
        self.seen.clear()
        self.on_wire += [f for f in self.flights if self.chance.random() < 0.4]
        self.flights.clear()

    def close(self, partitions: list[Partition], now: int) -> None:
        """In good order: what cannot be sent is told as failed."""
        self.end_transaction(partitions, now, commit=False)
        for flight in self.flights:
            self._tell(flight.fate, now, error=PURGED[self.lib])
            if self.chance.random() < 0.3:
                self.on_wire.append(flight)
        self.flights.clear()
        self.alive, self.ended, self.closed = False, True, True


def named_session(seed: int, index: int) -> str:
    """A name that no other world has, and that shares one of a few buckets."""
    names = (f"s{index}-{seed}-{attempt}" for attempt in range(10_000))
    return next(name for name in names if bucket_of(name, 0) < "x04")
