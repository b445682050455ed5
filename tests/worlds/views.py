"""Views of a world: evidence cut short, missing, thinned, late, doubled or out of order."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from tests.worlds.evidence import Unit
from tests.worlds.world import World

ORDERED = ("report", "heartbeat", "read", "scan")
"""Kinds of units that have a receipt."""


@dataclass(frozen=True)
class View:
    """Part of what a world's hosts said."""

    kind: str
    units: tuple[Unit, ...]


def view_of(world: World, number: int) -> View:
    """The view of *world* with this number; number 0 is all of it."""
    units = tuple(world.lake.units)
    if number == 0:
        return View("full", units)
    chance = random.Random(world.seed * 1_000 + number)
    kind = KINDS[(number - 1) % len(KINDS)]
    units = MAKERS[kind](units, chance)
    if kind != "cut" and chance.random() < 0.3:
        units = cut(units, chance)
    return View(kind, units)


def cut(units: tuple[Unit, ...], chance: random.Random) -> tuple[Unit, ...]:
    """All that was there at one moment."""
    return units[: chance.randint(len(units) // 5, len(units))]


def without_kind(units: tuple[Unit, ...], chance: random.Random) -> tuple[Unit, ...]:
    """One table, or one kind of report, is missing."""
    gone = chance.choice(["report", "heartbeat", "read", "scan", "state", "commit", "config"])
    return tuple(u for u in units if u.kind != gone)


def without_source(units: tuple[Unit, ...], chance: random.Random) -> tuple[Unit, ...]:
    """One reporter is missing."""
    gone = chance.choice(sorted({u.source for u in units}))
    return tuple(u for u in units if u.source != gone)


def thinned(units: tuple[Unit, ...], chance: random.Random) -> tuple[Unit, ...]:
    """Some messages and answers are lost; a change of settings is asked for until it is written."""
    keep = chance.choice([0.95, 0.8, 0.5])
    return tuple(u for u in units if chance.random() < keep or u.kind == "config")


def few_states(units: tuple[Unit, ...], chance: random.Random) -> tuple[Unit, ...]:
    """Only every n-th answer of the cluster."""
    n, seen, kept = chance.choice([2, 5, 20]), 0, []
    for unit in units:
        if unit.kind in ("state", "commit"):
            seen += 1
            if seen % n:
                continue
        kept.append(unit)
    return tuple(kept)


def few_scans(units: tuple[Unit, ...], chance: random.Random) -> tuple[Unit, ...]:
    """Some scans are missing, or pieces of them."""
    whole = chance.random() < 0.5
    drawn = {u.source: chance.random() < 0.5 for u in units if u.kind == "scan"}
    return tuple(
        u
        for u in units
        if u.kind != "scan" or (drawn[u.source] if whole else chance.random() < 0.6)
    )


def late(units: tuple[Unit, ...], chance: random.Random) -> tuple[Unit, ...]:
    """What one reporter said is received last of all, or from some time on."""
    ours = [u for u in units if u.kind in ("report", "heartbeat", "read")]
    if not ours:
        return units
    source = chance.choice(sorted({u.source for u in ours}))
    since = chance.randint(0, len(units))
    moved = [u for u in units[since:] if u.source == source and u.kind in ORDERED]
    out = {id(u) for u in moved}
    rest = [u for u in units if id(u) not in out]
    return (*rest, *received_after(rest, moved))


def doubled(units: tuple[Unit, ...], chance: random.Random) -> tuple[Unit, ...]:
    """Some messages are received twice."""
    again = [u for u in units if u.kind in ORDERED and chance.random() < 0.3]
    return (*units, *received_after(list(units), again))


def received_after(rest: list[Unit], moved: list[Unit]) -> list[Unit]:
    """*moved*, with receipts after all of *rest*."""
    newest = max((r.received_ms for u in rest if u.kind in ORDERED for r in u.rows), default=1_000)
    made = []
    last = max((u.tick for u in rest), default=0)
    for n, unit in enumerate(moved, 1):
        rows = tuple(replace(r, received_ms=newest + n) for r in unit.rows)
        made.append(replace(unit, rows=rows, tick=max(last, unit.tick) + n))
    return made


def shuffled(units: tuple[Unit, ...], chance: random.Random) -> tuple[Unit, ...]:
    """The same in another order."""
    return tuple(chance.sample(units, len(units)))


MAKERS: dict[str, Callable[[tuple[Unit, ...], random.Random], tuple[Unit, ...]]] = {
    "cut": cut,
    "without_kind": without_kind,
    "without_source": without_source,
    "thinned": thinned,
    "few_states": few_states,
    "few_scans": few_scans,
    "late": late,
    "doubled": doubled,
    "shuffled": shuffled,
}
KINDS = tuple(MAKERS)
