"""What awaits a scan is changed by that scan, and by no other that comes later."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tests.worlds.evidence import Evidence, evidence_of
from tests.worlds.judged import Row, accounts
from tests.worlds.world import World

WORLDS = 400
Account = tuple[str, str, int]


def test_later_scans_and_answers_change_what_awaits_a_scan_only_where_they_reach_it() -> None:
    awaited = changed = 0
    for seed in range(WORLDS):
        world, chance = World(seed, steps=25), random.Random(seed)
        units = world.lake.units
        cut = chance.randint(len(units) // 4, len(units))
        before = [u for u in units[:cut] if u.kind != "scan" or chance.random() < 0.3]
        later = [u for u in units[cut:] if u.kind in ("scan", "state", "commit")]
        early, news = evidence_of(before), evidence_of(later)
        known, found = judged(early), judged(evidence_of([*before, *later]))
        for key, account in known.items():
            if account["open"] or account["awaits_to"] is None or has_offsets(account):
                continue
            awaited += 1
            if found[key] != account:
                changed += 1
                assert reached(account, early, news), (seed, key, account, found[key])
    assert awaited > 20, "too few accounts await a scan"
    assert changed > 3, "nothing came later"


def has_offsets(account: Row) -> bool:
    """Whether news about offsets of its own can change it too."""
    return bool(account["delivered"] or account["acked"])


def judged(evidence: Evidence) -> dict[Account, Row]:
    return {
        (session, group, row["block"]): row
        for (session, group), rows in accounts(evidence).items()
        for row in rows
    }


def reached(account: Row, early: Evidence, news: Evidence) -> bool:
    """Whether *news* are of a kind that `touched_accounts` has the account judged again for."""
    scans = [r.first_offset for r in news.reports if r.first_offset is not None]
    starts = [s.earliest for s in news.states if s.earliest is not None]
    return (
        any(first <= account["awaits_to"] for first in scans)
        or any(start > account["awaits_from"] for start in starts)
        or any(at <= account["settles_ms"] for at in instants(news))
        or len({s.topic_id for s in (*early.states, *news.states)} - {""}) > 1
        or bool({s.partition for s in news.states} - {s.partition for s in early.states})
    )


def instants(news: Evidence) -> Iterator[int]:
    yield from (s.at_ms for s in news.states)
    yield from (c.at_ms for c in news.commits)
    yield from (r.after_ms or r.received_ms or 0 for r in news.reports)
