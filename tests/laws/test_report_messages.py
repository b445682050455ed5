"""Whatever becomes of report messages, verdicts stay as they are or are left open.

A producer's reports are lost, doubled, late and out of order; then a scan reads the whole log. Each
id has the verdict that it has with all reports in order, or is pending or inconclusive.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from acktrail.audit.wire import Report, Sighting, encode_ids, encode_sightings
from acktrail.contracts.gold import DELIVERY_LEDGER
from acktrail.contracts.vocabulary import State, Tier
from acktrail.lake import Lake
from pipelines import runner
from pipelines.registry import JOBS
from tests.laws.incident import AS_OF
from tests.worlds.bronze import TABLES, bronze, put_rows
from tests.worlds.evidence import TOPIC, ConfigRow, Evidence, StateRow
from tests.worlds.judged import Row, accounts, said

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SESSION = "0194b8a3c80070008000000000000001"
AT = 1_800_000_000_000
PARTITIONS = 2
NAMED = {"client_id": "shop", "host": "shop-1"}
OPEN = (State.PENDING, State.INCONCLUSIVE)
LOST = (
    *(State.LOST_AFTER_ACK, State.LOST_UNACKED, State.LOST_INDETERMINATE),
    *(State.REJECTED, State.UNACCOUNTED),
)
ERRORS = {Tier.FAILED: "NOT_ENOUGH_REPLICAS", Tier.INDETERMINATE: "_MSG_TIMED_OUT"}


@dataclass
class Told:
    """One producer that reports in rounds: what it was told, and what is really in the log."""

    seed: int
    ids: bool
    """Whether it is told which id was acked."""
    messages: list[list[Report]] = field(default_factory=list)
    log: list[list[int]] = field(default_factory=lambda: [[] for _ in range(PARTITIONS)])
    """Per partition the seq at each offset; -1 where the record is gone."""
    closes: bool = True
    part: int = 0
    dropped: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        chance = random.Random(self.seed)
        self.closes = chance.random() < 0.8
        drops = chance.random() < 0.2
        next_seq, flying, settled = 0, [], set()
        rounds = chance.randint(2, 8)
        for number in range(1, rounds + 1):
            last = number == rounds
            handed = chance.randint(0 if number > 1 else 1, 6)
            seen = [self._seen(seq, Tier.SENT) for seq in range(next_seq, next_seq + handed)]
            flying += range(next_seq, next_seq + handed)
            next_seq += handed
            silent = last and chance.random() < 0.2  # a client that never calls back for some
            for seq in list(flying):
                if chance.random() < 0.6 or (last and self.closes and not silent):
                    flying.remove(seq)
                    settled.add(seq)
                    seen.append(self._outcome(seq, chance))
            if drops and seen and chance.random() < 0.5:
                gone = seen.pop()
                self.dropped[gone.tier] = self.dropped.get(gone.tier, 0) + 1
            self._report(number, seen, next_seq, len(settled), last and self.closes)

    def _outcome(self, seq: int, chance: random.Random) -> Sighting:
        tier = chance.choices(
            [Tier.ACKED, Tier.FAILED, Tier.INDETERMINATE, Tier.ACKED_NO_OFFSET], [6, 1, 1, 0.5]
        )[0]
        place, gone = chance.randrange(PARTITIONS), chance.random() < 0.3
        acked = tier in (Tier.ACKED, Tier.ACKED_NO_OFFSET)
        if acked or chance.random() < 0.3:
            self.log[place].append(-1 if gone else seq)
        offset = len(self.log[place]) - 1 if tier is Tier.ACKED else None
        return self._seen(seq, tier, place if acked else -1, offset)

    def _seen(self, seq: int, tier: Tier, partition: int = -1, offset: int | None = None):
        return Sighting(SESSION, TOPIC, seq, tier, AT, partition, offset, error=ERRORS.get(tier))

    def _report(self, number: int, seen, handed: int, settled: int, closed: bool) -> None:
        beat = Report(
            "r", Tier.HEARTBEAT, TOPIC, number, AT + number, SESSION,
            records=handed, closed=closed, dropped=dict(self.dropped),
            settings=NAMED if self.ids else {**NAMED, "audit_mode": "acked_offsets"},
            outcomes={"0": settled} if self.ids else {},
        )  # fmt: skip
        rows = []
        if not self.ids:
            acks = [s for s in seen if s.tier in (Tier.ACKED, Tier.ACKED_NO_OFFSET)]
            seen = [s for s in seen if s not in acks]
            rows = [self._acks(number, p, acks) for p in range(PARTITIONS)]
        rows += encode_sightings(seen, "r", number, AT + number, self.part)
        self.part += len(rows) + PARTITIONS
        self.messages.append([beat, *(row for row in rows if row is not None)])

    def _acks(self, number: int, partition: int, acks) -> Report | None:
        here = [s for s in acks if s.partition == partition]
        if not here:
            return None
        return Report(
            "r", Tier.ACKED_OFFSETS, TOPIC, number, AT + number, SESSION, partition=partition,
            block=0, part=self.part + 100_000 + partition, records=len(here),
            ids=encode_ids([s.offset for s in here if s.offset is not None]),
        )  # fmt: skip


def verdicts(told: Told, messages: list[list[Report]], successor: bool) -> dict[int, str]:
    """The state of every id after *messages* came in this order and the log was scanned."""
    made = accounts(evidence_after(told, messages, successor))
    return {seq: state for seq, (state, _) in said(made.get((SESSION, ""), [])).items()}


def evidence_after(told: Told, messages: list[list[Report]], successor: bool) -> Evidence:
    """What the lake has once *messages* came in this order and the log was scanned."""
    reports, at = [], AT
    for rows in messages:
        at += 1
        reports += [replace(row, received_ms=at) for row in rows]
    if successor:
        at += 1
        reports.append(
            Report("q", Tier.HEARTBEAT, TOPIC, 1, at, "other", settings=NAMED, received_ms=at)
        )
    after, at = at, at + 60_000
    for partition, seqs in enumerate(told.log):
        found = [
            Sighting(SESSION, TOPIC, seq, Tier.IN_LOG, at, partition, offset, leader_epoch=0)
            for offset, seq in enumerate(seqs)
            if seq >= 0
        ]
        scanned = Report(
            "scan", Tier.SCANNED, TOPIC, partition + 1, at, partition=partition, part=partition,
            first_offset=0, last_offset=len(seqs) - 1, records=len(seqs), closed=True,
            began_ms=at, topic_id="t1", leader_epoch=1,
        )  # fmt: skip
        rows = [scanned, *encode_sightings(found, "scan", partition + 1, at, 10 * partition)]
        reports += [replace(row, after_ms=after, received_ms=at + 1) for row in rows]
    states = [
        StateRow(p, ms, 0, end, 0, "t1", 1, (1,), knew)
        for p, seqs in enumerate(told.log)
        for ms, end, knew in ((AT - 6_000_000, 0, 0), (at, len(seqs), after))
    ]
    configs = [ConfigRow("topic", TOPIC, AT - 6_000_000, (("cleanup.policy", "delete"),))]
    return Evidence(reports, states, configs=configs)


def mistreated(messages: list[list[Report]], chance: random.Random) -> list[list[Report]]:
    """The messages as an unreliable way delivers them."""
    kept = [m for m in messages if chance.random() < 0.7]
    kept += [m for m in kept if chance.random() < 0.3]
    if chance.random() < 0.6:
        chance.shuffle(kept)
    return kept


@pytest.mark.parametrize("ids", [True, False], ids=["acked ids", "acked offsets"])
def test_lost_doubled_and_late_reports_change_no_verdict(ids):
    met: Counter[str] = Counter()
    for seed in range(150):
        told = Told(seed, ids)
        chance = random.Random(seed)
        successor = seed % 2 == 0
        whole = verdicts(told, told.messages, successor)
        met.update(whole.values())
        for _ in range(6):
            came = mistreated(told.messages, chance)
            tail_is_lost = not came or max(r.number for m in came for r in m) < len(told.messages)
            for seq, state in verdicts(told, came, successor).items():
                as_killed = tail_is_lost and state == State.LOST_IN_CRASH and whole[seq] in LOST
                same = state == whole[seq] or state in OPEN
                assert same or as_killed, (seed, seq, state, whole[seq], came)
    decided = {State.DELIVERED, State.LOST_AFTER_ACK, State.REJECTED, State.LOST_INDETERMINATE}
    assert decided <= set(met)
    assert {State.UNACCOUNTED, State.INCONCLUSIVE} & set(met)
    assert met[State.LOST_AFTER_ACK] > 50


def transactions(seed: int) -> tuple[Told, dict[int, str]]:
    """A transactional producer, and the state that each of its ids must have."""
    chance = random.Random(seed)
    told = Told(seed, ids=True)
    told.messages, told.log, told.part = [], [[] for _ in range(PARTITIONS)], 0
    wanted: dict[int, str] = {}
    settings = {**NAMED, "transactional.id": "tx"}
    rounds, next_seq = chance.randint(1, 6), 0
    for number in range(1, rounds + 1):
        seqs = range(next_seq, next_seq + chance.randint(1, 5))
        next_seq = seqs.stop
        seen = [told._seen(seq, Tier.SENT) for seq in seqs]
        end = chance.choice([Tier.COMMITTED, Tier.COMMITTED, Tier.ABORTED, None])
        for seq in seqs:
            place, gone = chance.randrange(PARTITIONS), chance.random() < 0.3
            told.log[place].append(-1 if gone else seq)
            seen.append(told._seen(seq, Tier.ACKED, place, len(told.log[place]) - 1))
            wanted[seq] = State.LOST_AFTER_ACK if gone else State.DELIVERED
            if end is not Tier.COMMITTED:
                wanted[seq] = State.ABORTED if end else State.INCONCLUSIVE
        for place in told.log:
            place.append(-1)  # the marker
        seen += [told._seen(seq, end) for seq in seqs] if end else []
        told._report(number, seen, next_seq, next_seq, number == rounds)
        told.messages[-1][0] = replace(told.messages[-1][0], settings=settings)
    return told, wanted


def test_aborted_messages_are_never_losses_and_committed_ones_that_are_gone_always_are():
    met: Counter[str] = Counter()
    for seed in range(80):
        told, wanted = transactions(seed)
        assert verdicts(told, told.messages, successor=False) == wanted, seed
        met.update(wanted.values())
        chance = random.Random(seed)
        for _ in range(5):
            came = mistreated(told.messages, chance)
            if not came:  # nothing says that the session is transactional
                continue
            for seq, state in verdicts(told, came, successor=seed % 2 == 0).items():
                assert state == wanted[seq] or state in OPEN, (seed, seq, state, wanted[seq])
    assert min(met[s] for s in (State.LOST_AFTER_ACK, State.ABORTED, State.INCONCLUSIVE)) > 20


def test_spark_and_pure_python_agree(spark: SparkSession, tmp_path: Path) -> None:
    evidence = {}
    for seed in range(40):
        told = Told(seed, ids=seed % 4 == 0)
        came = told.messages if seed % 2 else mistreated(told.messages, random.Random(seed))
        evidence[f"w{seed}"] = evidence_after(told, came, successor=seed % 3 == 0)
    lake = Lake(tmp_path)
    for table, found in zip(TABLES, bronze(evidence).values(), strict=True):
        put_rows(lake, table, found)
    for job in JOBS:
        if job.name in ("audit_parts", "audit_blocks", "client_sightings", "delivery_ledger"):
            runner.run(job, lake, lambda: spark, AS_OF)
    made: dict[str, list[Row]] = {}
    for account in lake.read(DELIVERY_LEDGER).to_pylist():
        if account["session"] == SESSION and not account["group"]:
            made.setdefault(account["cluster"], []).append(account)
    for cluster, one in evidence.items():
        plain = said(accounts(one).get((SESSION, ""), []))
        assert said(made.get(cluster, [])) == plain, cluster
    reasons = {reason for found in made.values() for _, reason in said(found).values()}
    assert {"acks_without_ids", "reports_missing", "complete_scan"} <= reasons


def test_equal_counts_before_the_close_decide_nothing():
    told = next(t for s in range(100) if (t := Told(s, ids=False)).closes and not t.dropped)
    unclosed = [[replace(row, closed=False) for row in m] for m in told.messages]
    assert State.LOST_AFTER_ACK not in verdicts(told, unclosed, False).values()
