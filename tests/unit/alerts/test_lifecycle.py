"""Which alerts open, go on and are resolved."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from acktrail.alerts.alert import OPEN, RESOLVED, fingerprint_of, newest
from acktrail.alerts.finding import UNDECIDED, Finding
from acktrail.alerts.lifecycle import NothingKnown, acknowledged, alerts_due
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


def loss(topic="t", *, count=3, **facts):
    known = {"state": "lost_after_ack", "cause": "unclean_election", "loss": True}
    return finding(topic, **{**known, "check": "b", "count": count, **facts})


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

    @property
    def alerts(self):
        return list(newest(self.rows).values())


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
    assert after.annotations["summary"] == "later."


def test_two_losses_far_apart_are_two_pages_and_each_stays_until_its_verdict_is_withdrawn():
    world = World()
    early, late = loss(start=0, end=1), loss(start=60, end=61)
    assert world.ask(early, late) == [(OPEN, "t"), (OPEN, "t")]
    assert world.ask(early, late) == []
    assert world.ask(late) == [(RESOLVED, "t")]
    assert world.ask() == [(RESOLVED, "t")]


def test_late_evidence_that_moves_the_start_pages_nobody_anew():
    world = World()
    world.ask(loss(start=10, end=12))
    assert world.ask(loss(start=8, end=15)) == []
    assert world.ask(loss(start=100, end=101)) == [(OPEN, "t"), (RESOLVED, "t")]


def test_the_fingerprint_is_that_of_the_design():
    world = World()
    world.ask(finding())
    identity = ("east", "s:t/c", "me", "page")
    assert world.open["t"].fingerprint == fingerprint_of(identity, T0)
    assert fingerprint_of(identity, T0) != fingerprint_of(("west", *identity[1:]), T0)


def test_what_was_over_when_it_was_found_is_told_once():
    world = World()
    assert world.ask(finding(start=0, end=1)) == [(OPEN, "t")]
    assert world.ask(finding(start=0, end=1)) == [(RESOLVED, "t")]
    assert world.ask(finding(start=0, end=1)) == []


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
    assert alert.annotations["summary"] == "it is so."


def test_a_muted_finding_opens_nothing_and_resolves_nothing():
    world = World()
    assert world.ask(finding("new", muted_by="restart")) == []
    world.ask(finding("old"))
    assert world.ask(finding("old", muted_by="restart")) == []
    assert set(world.open) == {"old"}


def test_an_acknowledged_loss_is_resolved_and_opens_again_only_when_more_is_lost():
    world = World()
    world.ask(loss(start=0, end=1))
    assert world.ask(loss(start=0, end=1)) == []
    (alert,) = world.alerts
    seen = acknowledged(alert, "maria", "sent again", minutes(5), NothingKnown())
    assert (seen.status, seen.number, seen.delivered) == (RESOLVED, 2, ())
    assert "Acknowledged by maria: sent again" in seen.summary
    world.rows.append(seen.row())
    assert world.ask(loss(start=0, end=1)) == []
    assert world.ask(loss(start=0, end=1, count=5)) == [(OPEN, "t")]
    (alert,) = world.alerts
    assert alert.fingerprint == seen.fingerprint
    assert "5 messages are lost, and 3 were acknowledged by maria" in alert.summary
    assert alert.acknowledged is None


def test_an_acknowledgement_does_not_end_what_goes_on():
    world = World()
    burning = finding("t", state="retries_running_out", cause="NOT_ENOUGH_REPLICAS")
    world.ask(burning, loss(start=0, end=1))
    (alert,) = world.alerts
    seen = acknowledged(alert, "maria", "sent again", minutes(5), NothingKnown())
    assert (seen.status, seen.number) == (OPEN, 1)
    world.rows.append(seen.row())
    assert world.ask(loss(start=0, end=1)) == [(RESOLVED, "t")]
    (alert,) = world.alerts
    assert "Acknowledged by maria" in alert.summary


def test_a_loss_found_after_the_recovery_opens_the_same_page_again():
    world = World()
    burning = finding("t", state="retries_running_out", cause="NOT_ENOUGH_REPLICAS")
    assert world.ask(burning) == [(OPEN, "t")]
    assert world.ask() == [(RESOLVED, "t")]
    world.clock += timedelta(minutes=20)
    assert world.ask(loss("u", start=0.5, end=1)) == [(OPEN, "t")]
    (alert,) = world.alerts
    assert "Opened again: 3 messages were found to be lost." in alert.summary


def test_a_ticket_is_closed_by_the_page_about_the_same_fault():
    world = World()
    ticket = finding("", state="under_replicated", cause="broker 3", grade=Grade.WARN)
    world.ask(ticket)
    (first,) = world.alerts
    assert first.severity == "ticket"
    burning = finding("t", state="retries_running_out", cause="NOT_ENOUGH_REPLICAS")
    world.ask(ticket, burning)
    page = world.open["t"]
    assert (len(world.open), page.severity) == (1, "page")
    (closed,) = [a for a in world.alerts if a.status == RESOLVED]
    assert closed.annotations["resolution"] == f"It is part of {page.fingerprint} now."
    assert world.ask(ticket, burning) == []
    assert world.ask(ticket) == [(RESOLVED, "t")], "the page is over, the replica still missing"
    assert world.ask(ticket) == [(OPEN, "")]
    assert [a.severity for a in world.open.values()] == ["ticket"]
    assert world.ask() == [(RESOLVED, "")]


def test_a_sign_that_a_page_has_told_makes_no_ticket_when_it_is_asked_alone_later():
    world = World()
    rate = {"state": "retry_rate_high", "cause": "pay", "check": "b", "grade": Grade.WARN}
    world.ask(finding(state="retries_running_out"), finding(**rate))
    past = finding(**rate, start=0, end=2)
    world.ask(finding(state="retries_running_out"), past)
    assert world.ask(past) == [(RESOLVED, "t")]
    assert world.ask(past, checks={"b"}) == []
    assert world.ask(past, finding(**rate, start=30), checks={"b"}) == [(OPEN, "t")], "this is new"


def test_a_page_that_is_over_says_when_and_how_as_its_own_signs_do():
    world = World()
    warned = finding(state="failed_produce_unexplained", check="b", grade=Grade.WARN, count=7)
    said = {"state": "failed_produce_requests", "past": "12 were refused", "runbook": "r"}
    world.ask(finding(**said), warned)
    world.ask(finding(**said, end=1.5), warned)
    (page,) = world.alerts
    assert page.status == RESOLVED
    assert page.until_at == minutes(1.5), "not when somebody looked"
    assert page.summary.startswith("Over: 2026-01-31T12:00:00Z to 2026-01-31T12:01:30Z (90 s). 12")
    assert page.annotations["description"].startswith("- 12 were refused.")
    assert (page.annotations["runbook_url"], page.annotations["count"]) == ("r", "1")


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
