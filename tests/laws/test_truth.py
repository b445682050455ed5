"""Whatever evidence there is: what is claimed is true, and with all evidence every loss is claimed.

Worlds are made from seeds; a seed that failed once is kept in `tests/worlds/cases.py`.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from acktrail.contracts.gold import DELIVERY_LEDGER
from acktrail.lake import Lake
from pipelines import runner
from pipelines.registry import JOBS
from tests.laws.incident import AS_OF
from tests.worlds.bronze import TABLES, bronze, put_rows
from tests.worlds.cases import CASES, SPARK_CASES
from tests.worlds.evidence import evidence_of
from tests.worlds.judged import Row, accounts, said
from tests.worlds.law import Tally, check, check_views, kept_in_spite_of_skew
from tests.worlds.views import view_of
from tests.worlds.world import World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEEDS = tuple(range(61))  # `make soak PART=truth` makes worlds that nobody has seen
VIEWS = 50
NEEDED = ("client_sightings", "audit_parts", "audit_blocks", "delivery_ledger")
TOLD = ("lost_unacked", "lost_in_crash", "rejected", "lost_indeterminate")
"""States whose cause the producer's own reports decide."""


@pytest.mark.parametrize(("seed", "number"), CASES.values(), ids=CASES)
def test_what_was_wrong_once(seed: int, number: int) -> None:
    found = check_views(seed, [number])
    assert not found.wrong, found.failures()


def test_three_thousand_views_hold_in_pure_python() -> None:
    tally = Tally()
    for seed in SEEDS:
        tally.add(check_views(seed, range(VIEWS)))
    print(tally.shown())
    assert not tally.wrong, tally.failures()
    assert tally.views >= 3_000
    assert tally.causes_right("lost_after_ack") >= 0.95, tally.causes
    assert all(tally.causes_right(state) == 1.0 for state in TOLD), tally.causes
    assert tally.claims["full"] > 100


def test_wrong_clocks_hide_next_to_nothing() -> None:
    right = kept = 0
    for seed in range(200, 260):
        here, still = kept_in_spite_of_skew(seed)
        right, kept = right + here, kept + still
    assert right > 200
    assert kept >= 0.95 * right, (right, kept)


def test_three_hundred_views_hold_through_spark(spark: SparkSession, tmp_path: Path) -> None:
    chance = random.Random(SEEDS[-1])
    worlds = [World(seed) for seed in (*range(1_009, 1_309), 20_066)]
    drawn = {world.seed: chance.choice(range(VIEWS)) for world in worlds} | SPARK_CASES
    views = [(drawn[world.seed], view_of(world, drawn[world.seed])) for world in worlds]
    evidence = {
        f"w{world.seed}": evidence_of(view.units)
        for world, (_, view) in zip(worlds, views, strict=True)
    }
    lake = Lake(tmp_path)
    for table, found in zip(TABLES, bronze(evidence).values(), strict=True):
        put_rows(lake, table, found)
    needed = [job for job in JOBS if job.name in NEEDED]
    assert [job.name for job in needed] == [*NEEDED]
    for job in needed:
        runner.run(job, lake, lambda: spark, AS_OF)
    made: dict[str, dict[tuple[str, str], list[Row]]] = {}
    for account in lake.read(DELIVERY_LEDGER).to_pylist():
        here = made.setdefault(account["cluster"], {})
        here.setdefault((account["session"], account["group"]), []).append(account)
    tally = Tally()
    for world, (number, view) in zip(worlds, views, strict=True):
        cluster = f"w{world.seed}"
        tally.add(check(world, view, number, made.get(cluster, {})))
        plain = {key: said(found) for key, found in accounts(evidence[cluster]).items()}
        through_spark = {key: said(found) for key, found in made.get(cluster, {}).items()}
        assert through_spark == plain, (SEEDS[-1], world.seed, number)
    assert not tally.wrong, f"{SEEDS[-1]}\n{tally.failures()}"
