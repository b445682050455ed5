"""The law over many views of many worlds: what the rules claim of each, and what is wrong in it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from acktrail.contracts.vocabulary import State
from tests.worlds.evidence import evidence_of
from tests.worlds.judged import Row, accounts, explained, facts_of, said
from tests.worlds.truth import CLAIMS, Judge, Violation
from tests.worlds.views import View, view_of
from tests.worlds.world import World

UNDECIDED = (State.PENDING, State.INCONCLUSIVE)
Accounts = Mapping[tuple[str, str], list[Row]]


@dataclass
class Tally:
    """What was found in a number of views."""

    views: int = 0
    wrong: dict[tuple[int, int, str], list[Violation]] = field(default_factory=dict)
    """By seed, number and kind of the view."""
    ids: Counter[str] = field(default_factory=Counter)
    undecided: Counter[str] = field(default_factory=Counter)
    claims: Counter[str] = field(default_factory=Counter)
    """By kind of view."""
    causes: Counter[tuple[str, bool]] = field(default_factory=Counter)
    """With all evidence, of losses that have one cause: their state, and whether it was named."""

    def add(self, other: Tally) -> None:
        self.views += other.views
        self.wrong |= other.wrong
        for name in ("ids", "undecided", "claims", "causes"):
            getattr(self, name).update(getattr(other, name))

    def shown(self) -> str:
        """A line for every kind of view: how much of it is not decided."""
        return "\n".join(
            f"{kind:15} {self.ids[kind]:9} ids  {self.claims[kind]:8} claims"
            f"  {self.undecided[kind] / self.ids[kind]:6.1%} undecided"
            for kind in sorted(self.ids)
        )

    def causes_right(self, state: str) -> float:
        """The share of losses in *state* whose cause was named, of those that have one."""
        right, wrong = self.causes[state, True], self.causes[state, False]
        return right / (right + wrong) if right + wrong else 1.0

    def failures(self) -> str:
        """Every violation, one a line, as `(seed, view): what is wrong`."""
        lines = [
            f"({seed}, {number}) {kind}: id {v.seq} of {v.session} for {v.group or 'the log'}: "
            f"{v.state} ({v.reason}), but: {v.kind}"
            for (seed, number, kind), found in self.wrong.items()
            for v in found[:3]
        ]
        return "\n".join(lines[:40])


def check(world: World, view: View, number: int, made: Accounts) -> Tally:
    """What *made*, the accounts of *view*, claims, against the world."""
    tally = Tally(views=1)
    judge = Judge(world, view.units)
    facts = facts_of(evidence_of(view.units))
    wrong: list[Violation] = []
    for (session, group), found in made.items():
        claimed = said(found)
        wrong += judge.wrong(session, group, claimed)
        if view.kind == "full":
            whys = explained(found, session, facts)
            tally.causes.update(judge.causes(session, group, whys))
        if not group:
            states = Counter(state for state, _ in claimed.values())
            tally.ids[view.kind] += states.total()
            tally.undecided[view.kind] += sum(states[s] for s in UNDECIDED)
            tally.claims[view.kind] += sum(states[s] for s in CLAIMS)
            wrong += judge.miscaused(session, list(explained(found, session, facts)))
            if view.kind == "full":
                wrong += judge.missed(session, claimed)
    if wrong:
        tally.wrong[world.seed, number, view.kind] = wrong
    return tally


def check_views(seed: int, numbers: Iterable[int]) -> Tally:
    """The law for these views of one world, by the rules in pure Python."""
    world, tally = World(seed), Tally()
    for number in numbers:
        view = view_of(world, number)
        made = accounts(evidence_of(view.units))
        tally.add(check(world, view, number, made))
        if number % 8 == 0:
            other = random.Random(number).sample(view.units, len(view.units))
            assert accounts(evidence_of(other)) == made, (seed, number, "another order")
    return tally


def claims_of(world: World) -> set[tuple[str, str, int]]:
    """What is claimed with all of the evidence: session, group and id."""
    return {
        (session, group, seq)
        for (session, group), made in accounts(world.evidence).items()
        for seq, (state, _) in said(made).items()
        if state in CLAIMS
    }


def kept_in_spite_of_skew(seed: int) -> tuple[int, int]:
    """How many claims there are with all clocks right, and how many of them with wrong ones."""
    right = claims_of(World(seed, skewed=False))
    return len(right), len(right & claims_of(World(seed)))
