"""Which alerts open, go on and are resolved."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from acktrail.alerts.finding import UNDECIDED, Finding
from acktrail.alerts.lifecycle import OPEN, RESOLVED, alerts_due, fingerprint_of, newest
from acktrail.contracts.vocabulary import Grade, Outcome

T0 = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
CHECKS = {"a", "b"}


def minutes(n: float) -> datetime:
    return T0 + timedelta(minutes=n)


def finding(topic="t", *, start=0.0, end=None, check="a", **facts):
    return Finding(
        outcome=facts.pop("outcome", Outcome.FAIL),
        cluster=facts.pop("cluster", "east"),
        topic=topic,
        group="",
        state=facts.pop("state", "s"),
        cause=facts.pop("cause", "c"),
        starts_at=minutes(start),
        ends_at=None if end is None else minutes(end),
        because=facts.pop("because", "it is so"),
        check=check,
        owner=facts.pop("owner", "me"),
        **facts,
    )


class World:
    """The outbox as rows, asked again and again."""

    def __init__(self):
        self.rows = []
        self.clock = T0

    def ask(self, *findings, checks=CHECKS):
        self.clock += timedelta(minutes=1)
        changes = alerts_due(findings, newest(self.rows), checks, self.clock)
        self.rows.extend(c.row() for c in changes)
        return [(c.status, c.topic) for c in changes if c.step == 0]

    @property
    def open(self):
        return {a.topic: a for a in newest(self.rows).values() if a.status == OPEN}


def test_an_alert_opens_once_goes_on_and_is_resolved():
    world = World()
    assert world.ask(finding()) == [(OPEN, "t")]
    assert world.ask(finding()) == []
    assert world.ask() == [(RESOLVED, "t")]
    assert world.ask() == []


def test_what_comes_back_opens_again_under_the_next_number():
    world = World()
    world.ask(finding())
    world.ask()
    world.ask(finding())
    assert [(r["number"], r["status"]) for r in world.rows] == [(1, OPEN), (2, RESOLVED), (3, OPEN)]
    assert len({r["fingerprint"] for r in world.rows}) == 1


def test_a_thing_that_goes_on_keeps_its_fingerprint_whatever_start_is_seen_now():
    world = World()
    world.ask(finding(start=0))
    before = world.open["t"]
    assert world.ask(finding(start=5, because="later")) == []
    after = world.open["t"]
    assert (after.fingerprint, after.labels) == (before.fingerprint, before.labels)
    assert after.annotations["summary"] == "later"


def test_two_incidents_of_one_kind_are_two_alerts():
    world = World()
    world.ask(finding(start=0, end=1), finding(start=60, end=61))
    assert sum(a["status"] == OPEN for a in world.rows) == 2
    assert world.ask(finding(start=60, end=61)) == [(RESOLVED, "t")]


def test_late_evidence_that_moves_the_start_pages_nobody_anew():
    world = World()
    world.ask(finding(start=10, end=12))
    assert world.ask(finding(start=8, end=15)) == []
    assert world.ask(finding(start=100, end=101)) == [(OPEN, "t"), (RESOLVED, "t")]


def test_the_fingerprint_is_that_of_the_design():
    world = World()
    world.ask(finding())
    identity = ("east", "t", "", "s", "c")
    assert world.open["t"].fingerprint == fingerprint_of(identity, T0)
    assert fingerprint_of(identity, T0) != fingerprint_of(("west", "t", "", "s", "c"), T0)


def test_a_check_that_cannot_see_keeps_what_it_had_found():
    world = World()
    world.ask(finding())
    blind = finding("", outcome=Outcome.UNDECIDED, state=UNDECIDED, cluster="", cause="no_logs")
    assert world.ask(blind) == [(OPEN, "")]
    assert set(world.open) == {"t", ""}
    assert sorted(world.ask()) == [(RESOLVED, ""), (RESOLVED, "t")]


def test_blindness_in_one_cluster_does_not_hold_up_another():
    world = World()
    world.ask(finding())
    blind = finding("", outcome=Outcome.UNDECIDED, state=UNDECIDED, cluster="west")
    assert world.ask(blind) == [(OPEN, ""), (RESOLVED, "t")]


def test_a_check_that_did_not_run_says_nothing():
    world = World()
    world.ask(finding(check="b"))
    assert world.ask(checks={"a"}) == []
    assert world.ask() == [(RESOLVED, "t")]


def test_what_many_checks_cannot_see_is_one_alert_that_names_them():
    world = World()
    blind = finding("", outcome=Outcome.UNDECIDED, state=UNDECIDED, grade=Grade.WARN)
    world.ask(replace(blind, check="a", keys=("a",)), replace(blind, check="b", keys=("b",)))
    (alert,) = world.open.values()
    assert alert.annotations["keys"] == "a\nb"
    assert alert.annotations["summary"] == "it is so"


def test_a_muted_finding_opens_nothing_and_resolves_nothing():
    world = World()
    assert world.ask(finding("new", muted_by="restart")) == []
    world.ask(finding("old"))
    assert world.ask(finding("old", muted_by="restart")) == []
    assert set(world.open) == {"old"}


def test_the_same_change_read_twice_counts_once():
    world = World()
    world.ask(finding())
    row = {**world.rows[0], "delivered": ["webhook"]}
    assert newest([*world.rows, row])[row["fingerprint"]].delivered == ("webhook",)


TOPICS = st.sets(st.sampled_from("abcd"))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(TOPICS, TOPICS, st.booleans()), max_size=8))
def test_any_history_leaves_exactly_what_is_wrong_open(history):
    """Against a naive oracle: a set of topics, to which a blind check only adds."""
    world, expected = World(), set()
    for failing, muted, blind in history:
        told = [finding(t, muted_by="m" if t in muted else "") for t in failing]
        if blind:
            told.append(finding("", outcome=Outcome.UNDECIDED, state=UNDECIDED))
        world.ask(*told)
        kept = expected if blind else expected & failing
        expected = kept | (failing - muted)
        assert set(world.open) - {""} == expected
        assert ("" in world.open) is blind
        numbers = {}
        for row in world.rows:
            if row["step"] == 0:
                numbers.setdefault(row["fingerprint"], []).append(row["number"])
        assert all(n == list(range(1, len(n) + 1)) for n in numbers.values())
