"""The rules agree with a naive judge on random histories, and never call lost what is there."""

from __future__ import annotations

import pytest

from tests.worlds.judged import judge, jumped_over
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
        skips = any("skipped_by_consumer" in states.values() for states in got.values())
        for group, seq in jumped_over(world.evidence, producer.session) if skips else ():
            received = world.groups[group].received
            assert (producer.session, seq) not in received, (seed, producer.session, group, seq)


@pytest.mark.parametrize("seed", [6381, 7669, 7707])
def test_ids_that_nobody_reported_may_be_older_than_what_was_reported(seed):
    """Where a session's first reports are lost, its first sighting does not say when it began."""
    compare(seed)


@pytest.mark.parametrize("decade", range(3))
def test_random_histories(decade):
    for seed in range(decade * 100, decade * 100 + 100):
        compare(seed)
