"""A history of a cluster and its clients, made from a seed: one true timeline."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from acktrail.audit.loss_evidence import Fact
from tests.worlds.agents import AuditTopic, LakeLog, Scan, answer_commits, answer_states
from tests.worlds.evidence import LAG_MS, START_MS, TOPIC, ConfigRow, Evidence, evidence_of
from tests.worlds.groups import Group, Member
from tests.worlds.partition import Copy, Partition
from tests.worlds.producers import DEFAULT_MS, FIRST_SEND, Fate, Host, Producer, named_session

TRAITS = (
    "slow_followers", "unclean", "zombies", "wipes", "recreated", "retention", "compaction",
    "transactions", "unnamed", "unaudited", "late_requests", "crashes", "refused", "silence",
    "groups", "resets", "missing_answers", "partial_scans", "one_replica", "retries",
    "stuck_controller",
)  # fmt: skip
WITH_TOPIC_ID = ("leader_start", "unclean_election", "last_known_leader", "leader_change")
"""Of these, brokers and controllers print the topic's id."""
SKEWS = (0, 0, 3_000, -3_000, 90_000, -90_000, 3_600_000, -3_600_000, 86_400_000, -3 * 86_400_000)


class World:
    """One history. *skewed*: whether the hosts' clocks are wrong; all else is the same."""

    def __init__(self, seed: int, *, skewed: bool = True, steps: int | None = None) -> None:
        self.seed, self.skewed = seed, skewed
        chance = self.chance = random.Random(seed)
        self.now = START_MS
        quiet = chance.random() < 0.1
        likely = chance.choice([0.15, 0.3, 0.5])
        self.traits = {t for t in TRAITS if chance.random() < likely and not quiet}
        self.steps = steps or chance.choice([25, 40, 60])
        self.lake = LakeLog()
        self.audit_topic = AuditTopic(self.lake, self._host("agent-1"))
        self.scanner, self.asker = self._host("agent-2"), self._host("agent-3")
        brokers = [1] if self._has("one_replica") else [1, 2, 3]
        self.brokers = brokers
        self.broker_hosts = {b: self._host(f"broker-{b}") for b in (0, *brokers)}
        self.printed = 0
        self.generation = 1
        self.partitions = [
            Partition(n, "t1", brokers, chance) for n in range(chance.choice([1, 1, 2]))
        ]
        self.policy = "compact" if self._has("compaction") else "delete"
        self.policy_changed = False
        self.policy_known = chance.random() < 0.85
        self.min_isr = chance.choice([1, 2, 2]) if len(brokers) > 1 else 1
        self.unclean = self._has("unclean")
        self.stuck = self._has("stuck_controller")
        """The controller does not answer: in-sync replicas stay as they are."""
        self.state_every = chance.choice([4_000, 30_000, 300_000])
        self.next_state = self.now
        self.scans: list[Scan] = []
        self.scan_number = 0
        self.index = 0
        self.compares = random.Random(f"compares-{seed}").random() < 0.6
        """The scanner says how transactions ended. Drawn apart: seeds stay what they were."""
        self.calm = False
        self.producers: list[Producer] = []
        for number in range(chance.choice([1, 2, 2, 3])):
            self._start_producer(f"app-{number if chance.random() < 0.7 else 0}")
        self.groups = [self._group(n) for n in range(chance.choice([1, 1, 2]))]
        if not self._has("groups"):
            self.groups = self.groups if chance.random() < 0.4 else []
        self._say_configs()
        if chance.random() < 0.8:  # the lake is not new
            self.scan()
            self._everything_moves()
            self.ask()
        for _ in range(self.steps):
            self._pass_time()
            chance.choices(*self._choices())[0]()
        self._end()

    def _has(self, trait: str) -> bool:
        return trait in self.traits

    def _host(self, name: str) -> Host:
        skew = self.chance.choice(SKEWS)
        return Host(name, skew if self.skewed else 0)

    # -- who there is ----------------------------------------------------------------------------

    def _start_producer(self, client_id: str, like: Producer | None = None) -> Producer:
        chance = self.chance
        lib = chance.choice(["java", "librdkafka"])
        default = chance.random() < 0.4
        transactional = self._has("transactions") and chance.random() < 0.6
        acks = "all" if transactional else chance.choice(["all", "all", "1", "1", "0"])
        idempotent = transactional or (acks == "all" and chance.random() < 0.4)
        retries = chance.choice([0, 2]) if not idempotent and chance.random() < 0.3 else 2147483647
        strips = chance.choice([0.05, 0.3]) if self._has("unnamed") else 0.0
        made = Producer(
            session=named_session(self.seed, self.index),
            client_id=client_id,
            host=self._host(f"host-{self.index}"),
            lib=lib,
            acks=acks,
            chance=chance,
            timeout_ms=DEFAULT_MS[lib] if default else chance.choice([8_000, 30_000]),
            retries=retries,
            idempotent=idempotent,
            transactional=transactional,
            shows=chance.choice(["settings", "settings", "settings", "names", "nothing"]),
            strips=strips,
            notes_sends=chance.random() < 0.8,
            offsets=chance.random() < 0.85,
            reporter=f"r{self.index}",
        )
        if like is not None:
            made.host, made.lib, made.acks = like.host, like.lib, like.acks
            made.transactional, made.idempotent = like.transactional, like.idempotent
            made.timeout_ms, made.shows, made.offsets = like.timeout_ms, like.shows, like.offsets
            made.retries = like.retries
        self.index += 1
        self.producers.append(made)
        return made

    def _group(self, index: int) -> Group:
        chance = self.chance
        group = Group(
            name=f"g{index}",
            committed_only=chance.random() < 0.5,
            from_end=chance.random() < 0.3,
            ahead=chance.random() < 0.3,
            writes_processed=chance.random() < 0.4,
            tracks_epochs=chance.random() < 0.5,
            tells_epochs=chance.random() < 0.5,
            tells_topic=chance.random() < 0.3,
        )
        ranges, counts = chance.random() < 0.8, chance.random() < 0.8
        mixed = chance.random() < 0.2
        for n in range(chance.choice([1, 2])):
            audited = not mixed or n == 0
            host = self._host(f"consumer-{index}-{n}")
            group.members.append(Member(group, host, f"m{index}{n}", audited, ranges, counts))
        return group

    def _say_configs(self) -> None:
        at, known = self.asker.clock(self.now), self.lake.newest
        rows = [
            ConfigRow("broker", str(b), at, (("replica.lag.time.max.ms", str(LAG_MS)),), known)
            for b in self.brokers
        ]
        if self.policy_known:
            policy = (("cleanup.policy", self.policy),)
            rows.append(ConfigRow("topic", TOPIC, at, policy, known))
        self.lake.commit(self.now, "config", "agent-3", rows, 0)

    # -- time ------------------------------------------------------------------------------------

    def _pass_time(self) -> None:
        self.now += self.chance.choice([100, 500, 1_000, 4_000, 4_000, 15_000])
        if self.chance.random() < 0.04:
            self.now += self.chance.choice([60_000, 150_000, 400_000])
        self._everything_moves()

    def _everything_moves(self) -> None:
        for move in (self._brokers_move, self._clients_move, self._agents_move):
            move()
            self.now += 1

    def _brokers_move(self) -> None:
        self._print_events()
        for partition in self.partitions:
            if self.chance.random() < 0.7 or self.calm:
                partition.replicate(self.now)
            if not self.stuck or self.calm:
                partition.give_up_stalled(self.now, 0 if self.calm else LAG_MS)

    def _print_events(self) -> None:
        """What the brokers' logs say of what happened since."""
        for partition in self.partitions:
            for event in partition.events:
                self.printed += 1
                host = self.broker_hosts[event.broker]
                fact = Fact(
                    event.kind, f"broker_events:{self.printed}", host.clock(self.now),
                    partition=event.partition, host=host.name, offset=event.offset,
                    high_watermark=event.high_watermark, broker=event.broker,
                    leader=event.leader, epoch=event.epoch,
                    topic_id=partition.topic_id if event.kind in WITH_TOPIC_ID else None,
                )  # fmt: skip
                self.lake.commit(self.now, "fact", host.name, [fact], 0)
            partition.events.clear()

    def _clients_move(self) -> None:
        for producer in self.producers:
            if producer.alive:
                producer.advance(self.partitions, self.now, self.min_isr, self.calm)
            if self._has("late_requests") or self.calm:
                producer.late(self.partitions, self.now)
            else:
                producer.on_wire.clear()

    def _agents_move(self) -> None:
        self.audit_topic.deliver(self.now)
        self.now += 1
        if self.now >= self.next_state:
            self.next_state = self.now + self.state_every
            if not self._has("missing_answers") or self.chance.random() < 0.6:
                self.ask()
        for scan in list(self.scans):
            self.now += 1
            slow = not self.calm and self.chance.random() < 0.3
            if not slow and scan.step(self.chance.choice([3, 10, 100]), self.now):
                self.scans.remove(scan)

    def _choices(self) -> tuple[list[Callable[[], None]], list[int]]:
        steps = [
            (self.produce, 14), (self.report, 6), (self.scan, 2), (self.ask, 1),
        ]  # fmt: skip
        if self.groups:
            steps += [
                (self.consume, 8), (self.commit, 4), (self.report_reads, 4), (self.rebalance, 1),
            ]  # fmt: skip
        more = {
            "slow_followers": [(self.stall, 3), (self.fail_broker, 2), (self.restart, 2)],
            "unclean": [(self.stall, 2), (self.fail_leader, 2), (self.restart, 1)],
            "zombies": [(self.isolate, 3), (self.heal, 1)],
            "wipes": [(self.wipe, 1)],
            "one_replica": [(self.fail_leader, 1), (self.restart, 2)],
            "recreated": [(self.recreate, 1)],
            "retention": [(self.expire, 2)],
            "compaction": [(self.compact, 2), (self.change_policy, 1)],
            "transactions": [(self.end_transactions, 5)],
            "unaudited": [(self.produce_foreign, 3)],
            "crashes": [(self.crash, 1), (self.close, 1)],
            "refused": [(self.refuse, 3)],
            "silence": [(self.fall_silent, 2)],
            "resets": [(self.reset, 2), (self.jump, 1), (self.rewind, 1), (self.kill_member, 2),
                (self.close_member, 1)],
            "partial_scans": [(self.scan_part, 4)],
        }  # fmt: skip
        for trait in sorted(self.traits & set(more)):
            steps += more[trait]
        return [s for s, _ in steps], [w for _, w in steps]

    def _any_partition(self) -> Partition | None:
        partition = self.chance.choice(self.partitions)
        return partition if partition.readable else None

    # -- producers -------------------------------------------------------------------------------

    def produce(self) -> None:
        alive = [p for p in self.producers if p.alive]
        if not alive:
            if self.chance.random() < 0.5:
                self._start_producer("app-0")
            return
        producer = self.chance.choice(alive)
        number = self.chance.randrange(len(self.partitions))
        for _ in range(self.chance.choice([1, 2, 4, 6])):
            producer.send(number, self.now)
        if self.chance.random() < 0.7:
            producer.advance(self.partitions, self.now + 1, self.min_isr, False)
            self.now += 2

    def refuse(self) -> None:
        for producer in self.producers:
            if producer.alive and not producer.transactional and self.chance.random() < 0.6:
                producer.send(0, self.now, self.chance.choice(FIRST_SEND[producer.lib]))

    def produce_foreign(self) -> None:
        """Records of producers that are not audited."""
        partition = self._any_partition()
        if partition is not None:
            for _ in range(self.chance.choice([1, 3])):
                partition.append(Copy("", -1, 0, False), self.now)

    def end_transactions(self) -> None:
        for producer in self.producers:
            if producer.alive and producer.transactional:
                commit = self.chance.random() < 0.6
                producer.end_transaction(self.partitions, self.now, commit)

    def crash(self) -> None:
        producer = self.chance.choice(self.producers)
        if not producer.alive:
            return
        ended = producer.transaction
        producer.die()
        if self.chance.random() < 0.5:
            rows = producer.beat(self.now, exited=True, reporter=f"{producer.reporter}-host")
            self._send_rows("heartbeat", producer.session, rows)
        if self.chance.random() < 0.5:
            self._start_producer(producer.client_id, like=producer)
        if ended is not None:
            producer.transaction = ended
            producer.end_transaction(self.partitions, self.now, False)
            producer.seen.clear()

    def close(self) -> None:
        producer = self.chance.choice(self.producers)
        if producer.alive:
            producer.close(self.partitions, self.now)
            producer.silent = False
            self._report(producer)

    def fall_silent(self) -> None:
        """It lives, and cannot report; or it can again."""
        producer = self.chance.choice(self.producers)
        producer.silent = not producer.silent

    def report(self) -> None:
        for producer in self.producers:
            if producer.alive and not producer.silent:
                self._report(producer)

    def _report(self, producer: Producer) -> None:
        self._send_rows("report", producer.session, producer.report(self.now))
        if self.chance.random() < 0.6 or self.calm or producer.closed:
            self._send_rows("heartbeat", producer.session, producer.beat(self.now))

    def _send_rows(self, kind: str, source: str, rows) -> None:
        delay = self.chance.choice([0, 0, 0, 500, 5_000, 60_000, 200_000])
        self.audit_topic.put(self.now + (0 if self.calm else delay), kind, source, rows)

    # -- brokers ---------------------------------------------------------------------------------

    def stall(self) -> None:
        for partition in self.partitions:
            for broker in partition.replicas:
                if self.chance.random() < 0.5:
                    partition.stall(broker)

    def fail_leader(self) -> None:
        leader = self.chance.choice(self.partitions).leader
        if leader is not None:
            self._fail(leader)

    def fail_broker(self) -> None:
        self._fail(self.chance.choice(self.brokers))

    def _fail(self, broker: int) -> None:
        for partition in self.partitions:
            if broker in partition.live:
                partition.kill(broker, self.now, unclean=self.unclean)

    def restart(self) -> None:
        dead = [b for b in self.brokers if b not in self.partitions[0].live]
        if dead:
            broker = self.chance.choice(dead)
            for partition in self.partitions:
                partition.restart(broker, self.now)
                partition.resume(broker)
        elif self.chance.random() < 0.5:
            for partition in self.partitions:
                partition.stalled.clear()

    def wipe(self) -> None:
        """A broker comes back with an empty disk."""
        broker = self.chance.choice(self.brokers)
        self._fail(broker)
        self.now += 1
        for partition in self.partitions:
            partition.restart(broker, self.now, wiped=True)

    def isolate(self) -> None:
        for partition in self.partitions:
            if partition.isolate_leader(self.now):
                for producer in self.producers:
                    producer.zombie_fan = self.chance.random() < 0.6

    def heal(self) -> None:
        for partition in self.partitions:
            partition.heal()

    def recreate(self) -> None:
        """The topic is deleted and created again."""
        self._print_events()
        self.generation += 1
        topic_id = f"t{self.generation}"
        for number, partition in enumerate(self.partitions):
            partition.end_for_ever(self.now)
            self.partitions[number] = Partition(number, topic_id, self.brokers, self.chance)
            self.partitions[number].live = set(partition.live) or {self.brokers[0]}
        for partition in self.partitions:
            partition.leader = sorted(partition.live)[0]
            partition.isr = sorted(partition.live)
        self.scans.clear()
        for group in self.groups:
            group.owners.clear()
            group.committed.clear()
            for member in group.members:
                member.position.clear()
                member.processed.clear()
                member.open_range.clear()
                member.polled.clear()
        for producer in self.producers:
            for flight in producer.flights:
                flight.copy = None

    def expire(self) -> None:
        partition = self._any_partition()
        if partition is not None:
            to = self.chance.randint(partition.log.start, partition.watermark)
            why = self.chance.choice(["retention", "deleted"])
            self._expire_unread(partition, to)
            partition.delete_before(to, self.now, why)

    def _expire_unread(self, partition: Partition, to: int) -> None:
        """Remember what groups had still to read."""
        for group in self.groups:
            number = partition.number
            owner = group.owners.get(number)
            first = group.committed.get(number, (None, ""))[0]
            if owner is not None:
                first = owner.processed[number]
            if first is not None and first < to:
                group.resets.append((self.now, number, first, to - 1, "expired"))
                for offset in range(first, to):
                    copy = partition.log.records.get(offset)
                    if copy is not None and offset < partition.watermark:
                        group.expired.setdefault(copy, self.now)

    def compact(self) -> None:
        partition = self._any_partition()
        if partition is not None and self.policy != "delete":
            partition.compact(self.now)

    def change_policy(self) -> None:
        if self.chance.random() < 0.5:
            self.policy = self.chance.choice(["delete", "compact", "compact,delete"])
            self.policy_changed = True
            if self.policy_known or self.chance.random() < 0.3:
                self.policy_known = True
                self._say_configs()

    # -- groups ----------------------------------------------------------------------------------

    def consume(self) -> None:
        group = self.chance.choice(self.groups)
        partition = self._any_partition()
        if partition is None:
            return
        number = partition.number
        group.finish(number, self.now)
        self.now += 1
        group.read(number, partition, self.chance.choice([2, 5, 20]), self.now, self.chance)
        if group.ahead and self.chance.random() < 0.6:
            group.poll_ahead(number, partition, self.chance.choice([2, 5]), self.now)
            group.commit(number)

    def commit(self) -> None:
        for group in self.groups:
            for number in list(group.owners):
                group.commit(number)

    def report_reads(self) -> None:
        for group in self.groups:
            for member in group.members:
                self._send_rows("read", member.reporter, member.made)
                member.made = []

    def rebalance(self) -> None:
        for group in self.groups:
            for number in list(group.owners):
                if self.partitions[number].readable:
                    group.finish(number, self.now)
                    if self.chance.random() < 0.7:
                        group.commit(number)
                    member = self.chance.choice(group.members)
                    group.assign(member, number, self.partitions[number], self.now)

    def kill_member(self) -> None:
        for group in self.groups:
            group.kill(self.chance.choice(group.members), self.partitions, self.now)

    def close_member(self) -> None:
        for group in self.groups:
            member = self.chance.choice(group.members)
            self._send_rows("read", member.reporter, group.close(member, self.now))

    def reset(self) -> None:
        for group in self.groups:
            partition = self._any_partition()
            if partition is not None and partition.number in group.committed:
                group.finish(partition.number, self.now)
                if self.chance.random() < 0.8:
                    group.commit(partition.number)
                to = self.chance.randint(partition.log.start, partition.watermark)
                group.reset(partition.number, partition, to, self.now)

    def jump(self) -> None:
        for group in self.groups:
            partition = self._any_partition()
            if partition is not None:
                group.finish(partition.number, self.now)
                group.jump(partition.number, partition, self.now)

    def rewind(self) -> None:
        for group in self.groups:
            partition = self._any_partition()
            if partition is not None:
                group.finish(partition.number, self.now)
                group.rewind(partition.number, partition, self.chance)

    # -- agents ----------------------------------------------------------------------------------

    def ask(self) -> None:
        self.now += 1
        answer_states(self.lake, self.asker, self.partitions, self.now, self.chance)
        answer_commits(self.lake, self.asker, self.groups, self.partitions[0].topic_id, self.now)

    def scan(self) -> None:
        self.scan_number += 1
        for partition in self.partitions:
            if partition.readable:
                self.scans.append(
                    Scan.begin(
                        self.lake,
                        self.scanner,
                        partition,
                        self.scan_number,
                        self.now,
                        transactional=self._known_transactional(),
                    )
                )

    def scan_part(self) -> None:
        partition = self._any_partition()
        if partition is not None:
            self.scan_number += 1
            ends = [self.chance.randint(0, partition.watermark) for _ in range(2)]
            if self.chance.random() < 0.5:
                ends[1] = partition.watermark
            span = (min(ends), max(ends))
            self.scans.append(
                Scan.begin(
                    self.lake,
                    self.scanner,
                    partition,
                    self.scan_number,
                    self.now,
                    span,
                    self._known_transactional(),
                )
            )

    def _known_transactional(self) -> frozenset[str] | None:
        """The sessions whose settings say so, where the scanner compares the two readings."""
        if not self.compares:
            return None
        return frozenset(
            p.session for p in self.producers if p.transactional and p.shows == "settings"
        )

    # -- the end ---------------------------------------------------------------------------------

    def _end(self) -> None:
        """All brokers are back, everybody reports, and the log is scanned whole, late enough."""
        self.calm = True
        self.ask()
        self._heal_all()
        self.end_transactions()
        closing = self.chance.random()
        for producer in [p for p in self.producers if p.alive]:
            producer.silent = False
            if closing < 0.5:
                producer.close(self.partitions, self.now)
            self._report(producer)
        self.now += 2_000
        self._read_the_rest()
        self.now += 300_000
        self._everything_moves()
        self.ask()
        self._scan_twice()
        self.now += 20_000
        self.ask()

    def _heal_all(self) -> None:
        for partition in self.partitions:
            partition.heal()
            partition.stalled.clear()
            for broker in sorted(set(self.brokers) - partition.live):
                partition.restart(broker, self.now)
        for pause in (2_000, 2_000, 2_000, self.chance.choice([1_000, 400_000])):
            self.now += pause
            self._everything_moves()

    def _read_the_rest(self) -> None:
        if self.groups:
            for _ in range(3 * len(self.partitions) * len(self.groups)):
                self.consume()
                self.now += 1
            self.commit()
            self.report_reads()

    def _scan_twice(self) -> None:
        """While heartbeats go on."""
        observer = self._start_producer("observer")
        observer.shows, observer.host.skew_ms = "settings", 0
        for _ in range(2):
            for _ in range(3):
                self._send_rows("heartbeat", observer.session, observer.beat(self.now))
                self.now += 10_000
                self._everything_moves()
            self.scan()
            while self.scans:
                self._everything_moves()
        self.ended_scan = self.scan_number

    @property
    def evidence(self) -> Evidence:
        """All that was said."""
        return evidence_of(self.lake.units)

    def fates(self) -> Iterator[Fate]:
        """What is true of every id."""
        for producer in self.producers:
            yield from producer.fates.values()
