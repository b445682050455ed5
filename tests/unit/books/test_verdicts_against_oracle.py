"""The rules agree with a naive judge on random histories, and never call lost what is there."""

from __future__ import annotations

import pytest

from tests.worlds.judged import judge
from tests.worlds.oracle import Oracle
from tests.worlds.world import World

QUIET = ("delivered", "not_owed")


def compare(seed: int) -> None:
    world = World(seed)
    for producer in world.producers:
        oracle = Oracle(world.evidence, producer.session)
        got = judge(world.evidence, producer.session)
        wanted = {"": {seq: oracle.log_state(seq) for seq in oracle.ids()}}
        for group in sorted(oracle.readers()):
            wanted[group] = {seq: oracle.group_state(seq, group) for seq in oracle.ids()}
        for group, states in wanted.items():
            loud = {seq: s for seq, s in states.items() if s not in QUIET}
            assert got.get(group, {}) == loud, (seed, producer.session, group)
        for seq, state in got.get("", {}).items():
            if state.startswith("lost") or state == "unaccounted":
                there = any(log.holds(producer.session, seq) for log in world.logs.values())
                assert not there, (seed, producer.session, seq, state)


@pytest.mark.parametrize("decade", range(3))
def test_random_histories(decade):
    for seed in range(decade * 100, decade * 100 + 100):
        compare(seed)
