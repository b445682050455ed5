"""The ranges that are needed give the accounts that all ranges give, in any history."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from acktrail.audit.needed_ranges import COLUMNS, needed_ranges
from acktrail.audit.session_account import accounts_of
from acktrail.audit.topic_evidence import topic_of
from acktrail.audit.wire import Report, Sighting, encode_sightings
from acktrail.contracts.vocabulary import Tier
from tests.unit.audit.group_scenes import AT, commit, read, state
from tests.worlds.evidence import Evidence, evidence_of
from tests.worlds.judged import rows_by_session, session_rows, topic_rows
from tests.worlds.world import World

Row = dict[str, Any]
SEEN = (Tier.IN_LOG, Tier.DELIVERED)
WHERE = {"cluster": "c", "topic": "t"}
_TYPES = {
    **dict.fromkeys(COLUMNS, pa.int64()),
    **dict.fromkeys(("cluster", "topic", "group", "reporter", "topic_id"), pa.string()),
}


def needed(rows: Iterable[Row], session: Iterable[Row]) -> list[Row]:
    """*rows* of a topic, without the ranges that the blocks of *session* do not need."""
    rows, floors = list(rows), floors_of(session)
    ranges = [row | WHERE for row in rows if row["kind"] == "consumed"]
    table = pa.Table.from_pylist(ranges, pa.schema(list(_TYPES.items())))
    commits: dict[tuple[Any, ...], int] = {}
    for row in rows:
        if row["kind"] == "commit":
            place = ("c", "t", row["partition"], row["group"])
            offset = row["committed_offset"]
            commits[place] = min(offset, commits.get(place, offset))
    closed = [row | WHERE for row in rows if row["kind"] == "member_closed"]
    names = ("cluster", "topic", "group", "reporter")
    members = pa.Table.from_pylist(closed, pa.schema([(name, pa.string()) for name in names]))
    kept = iter(needed_ranges(table, floors, commits, members).tolist())
    return [row for row in rows if row["kind"] != "consumed" or next(kept)]


def floors_of(session: Iterable[Row]) -> Mapping[tuple[Any, ...], int]:
    floors: dict[tuple[Any, ...], int] = {}
    for row in session:
        if row["kind"] == "block" and row["tier"] in SEEN:
            place = ("c", "t", row["partition"])
            for part in row["parts"]:
                if part["first_offset"] is not None:
                    floors[place] = min(part["first_offset"], floors.get(place, 1 << 62))
    return floors


def test_a_group_is_judged_by_the_ranges_that_are_needed():
    before = after = claims = 0
    for seed in range(600):
        chance = random.Random(seed)
        rows = any_rows(chance)
        session = a_session(chance)
        fewer = needed(rows, session)
        expected = list(accounts_of(session, topic_of(rows)))
        assert list(accounts_of(session, topic_of(fewer))) == expected, seed
        before, after = before + len(ranges(rows)), after + len(ranges(fewer))
        claims += sum(a["skipped_by_consumer"] + a["expired_before_read"] > 0 for a in expected)
    assert after < 0.9 * before, (after, before)
    assert claims > 15, "nothing is claimed"


def any_rows(chance: random.Random) -> list[Row]:
    """Evidence of one partition and group that need not be of any real history."""
    members = [f"m{n}" for n in range(chance.choice([1, 1, 1, 2, 3]))]
    epochs, ids = (
        chance.choice([[0], [0], [0, 0, 1], [None, 0, 1, 2]]),
        chance.choice([["t1"], ["t1"], _IDS]),
    )
    clock = chance.choice([0, 0, 0, 0.1])
    made: list[Row] = []
    parts: Counter[str] = Counter()
    steps = {name: chance.randint(0, 3) for name in members}
    kinds = chance.choice([(6, 4, 3, 1), (9, 4, 0, 0), (5, 4, 6, 3)])
    onwards, empty = chance.random() < 0.25, chance.choice([[0, 1], [0, 0, 0, 1], [1]])
    last = chance.randint(6, 28)
    for receipt in range(1, last):
        name, kind = chance.choice(members), chance.choices("rscx", kinds)[0]
        near = max(0, receipt * TOP // last + chance.randint(-4, 4))
        first = min(near, TOP - 1) if onwards else chance.randrange(TOP)
        if kind == "r":
            parts[name] += chance.random() < 0.9
            steps[name] += chance.random() < 0.2
            made.append(
                read(
                    first, min(TOP, first + chance.randint(0, 6)),
                    None if chance.random() < clock else receipt, reporter=name,
                    part=parts[name], number=receipt, leader_epoch=chance.choice(epochs),
                    assignment=None if chance.random() < 0.1 else steps[name],
                    topic_id=chance.choice(ids),
                )
            )  # fmt: skip
        elif kind == "s":
            earliest = chance.choice([0, 0, chance.randrange(first + 1)])
            made.append(state(receipt, first, earliest, chance.choice(epochs)))
        elif kind == "c":
            processed = f"acktrail:processed={chance.randrange(first + 1)}"
            metadata = chance.choice(["", "", processed])
            made.append(commit(receipt, first, chance.choice(empty), metadata=metadata))
        else:
            made.append(
                {"kind": "member_closed", "group": "g", "reporter": name, "partition": None}
            )
    policy = {"kind": "policy", "compacted": False, "partition": None, "at_ms": 0}
    return [*made, *([policy] if chance.random() < 0.9 else [])]


TOP = 40
_IDS = ["t1", "t1", "t1", None, "t2"]


def a_session(chance: random.Random) -> list[Row]:
    """A producer's records, which a scan has seen, and which the group has read in part."""
    first = chance.randint(TOP // 3, TOP - 3)
    offsets = range(first, chance.randint(first + 1, min(first + 8, TOP)))
    beat = Report("p", Tier.HEARTBEAT, "t", 1, AT, session="s", settings={"acks": "all"})
    sent = [Sighting("s", "t", n, Tier.IN_LOG, AT, 0, at) for n, at in enumerate(offsets)]
    scans = encode_sightings(sent, "scan", 1, AT)
    made = [replace(r, received_ms=chance.choice([3, 29]), after_ms=chance.choice([None, 2, 28]),
                    leader_epoch=chance.choice([None, 0, 1])) for r in scans]  # fmt: skip
    got = [replace(s, tier=Tier.DELIVERED, group="g") for s in sent if chance.random() < 0.2]
    more = encode_sightings(got, "m0", 1, AT) if got else []
    made += [replace(r, received_ms=chance.randint(1, 29)) for r in more]
    return session_rows(Evidence([replace(beat, received_ms=1), *made]), "s")


def ranges(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row["kind"] == "consumed"]


def test_a_session_is_judged_by_the_ranges_that_are_needed():
    before = after = 0
    for seed in range(40):
        world = World(seed)
        evidence = evidence_of(world.lake.units)
        rows = topic_rows(evidence)
        for session in rows_by_session(evidence).values():
            fewer = needed(rows, session)
            expected = list(accounts_of(session, topic_of(rows)))
            assert list(accounts_of(session, topic_of(fewer))) == expected, seed
            before, after = before + len(ranges(rows)), after + len(ranges(fewer))
    assert before > after > 0


def test_of_a_long_history_a_few_ranges_are_needed():
    day = [
        {
            **WHERE, "partition": 0, "group": "g", "reporter": f"m{n // 100}", "assignment": 1,
            "part": n, "number": n, "first_offset": 10 * n, "last_offset": 10 * n + 9,
            "leader_epoch": n // 500, "topic_id": "t1", "received_ms": n,
        }
        for n in range(5_000)
    ]  # fmt: skip
    table = pa.Table.from_pylist(day, pa.schema(list(_TYPES.items())))
    closed = table.select(["cluster", "topic", "group", "reporter"])
    floors, commits = {("c", "t", 0): 49_900}, {("c", "t", 0, "g"): 49_000}
    assert needed_ranges(table, floors, commits, closed).sum() < 25
    assert needed_ranges(table, {}, commits, closed).sum() < 5
