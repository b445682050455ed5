"""One page per fault and owner: in any order, in any portions, however its signs grow."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acktrail.alerts.alert import OPEN, RESOLVED, newest
from acktrail.alerts.fault import BROKERS, CONSUMERS, REFUSED, UNEXPLAINED, fault_of
from acktrail.alerts.finding import Finding
from acktrail.alerts.grouping import NEAR, occurrences
from acktrail.alerts.lifecycle import alerts_due
from acktrail.contracts.vocabulary import Cause, Grade, Outcome, State

T0 = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
CHECK = "table.check"


def sign(state, cause="", topic="", *, at=0.0, end=None, owner="me", **facts) -> Finding:
    """A finding *at* seconds after T0."""
    return Finding(
        outcome=Outcome.FAIL, cluster="east", topic=topic, group=facts.pop("group", ""),
        state=state, cause=cause, starts_at=T0 + timedelta(seconds=at),
        ends_at=None if end is None else T0 + timedelta(seconds=end),
        because=f"{state} on {topic}", check="check", owner=owner, found_by=(CHECK,), **facts,
    )  # fmt: skip


FAULTS = {
    # sign -> the fault behind it
    ("retries_running_out", "NOT_ENOUGH_REPLICAS", ""): BROKERS,
    ("lost_after_ack", "unclean_election", ""): BROKERS,
    ("lost_after_ack", "unknown", ""): UNEXPLAINED,
    ("lost_after_ack", "acks_1_leader_change", "billing"): BROKERS,
    ("rejected", "retries_exhausted", ""): BROKERS,
    ("rejected", "record_too_large", ""): f"{REFUSED}:t",
    ("skipped_by_consumer", "consumer_reset", "billing"): f"{CONSUMERS}:billing",
    ("expired_before_read", "retention", "billing"): f"{CONSUMERS}:billing",
    ("non_retriable_error", "TOPIC_AUTHORIZATION_FAILED", ""): f"{REFUSED}:t",
    ("non_retriable_error", "OUT_OF_ORDER_SEQUENCE_NUMBER", ""): UNEXPLAINED,
    ("non_retriable_error", "no such error", ""): UNEXPLAINED,
    ("error_rate_high", "checkout", ""): UNEXPLAINED,
    ("under_min_isr", "", ""): BROKERS,
    ("source_failing", "jmx@h1", ""): "source_failing:t/jmx@h1",
}


@pytest.mark.parametrize("case", FAULTS, ids=lambda c: "-".join(c[:2]))
def test_the_fault_behind_a_sign(case):
    state, cause, group = case
    assert fault_of(sign(state, cause, "t", group=group)).name == FAULTS[case]


def test_every_loss_and_cause_has_a_fault():
    for state in State:
        for cause in Cause:
            assert fault_of(sign(state.value, cause.value, "t")).name


# -- the outage that was seven alerts --------------------------------------------------------------

OUTAGE = (
    sign("retries_running_out", "NOT_ENOUGH_REPLICAS", "orders", at=4),
    sign("retries_running_out", "REQUEST_TIMED_OUT", "orders", at=3),
    sign("retries_running_out", "unknown error", "", at=6),
    sign("retry_rate_high", "orders-api", "orders", at=5, grade=Grade.WARN),
    sign("retry_rate_high", "refunds-api", "refunds", at=5, grade=Grade.WARN),
    sign("error_rate_high", "refunds-api", "refunds", at=20),
    sign("rejected", "retries_exhausted", "refunds", at=8, end=40, loss=True, grade=Grade.WARN),
    sign("lost_after_ack", "acks_1_leader_change", "orders", at=2, end=12, loss=True),
    sign("under_min_isr", "", "orders", at=1, grade=Grade.WARN),
    sign("failed_produce_requests", "NOT_ENOUGH_REPLICAS", "refunds", at=8),
)


class Rounds:
    """The outbox as rows, and rounds that know more and more."""

    def __init__(self):
        self.rows, self.now = [], T0 + timedelta(seconds=60)

    def ask(self, findings):
        self.now += timedelta(seconds=5)
        changes = alerts_due(list(findings), newest(self.rows), {CHECK}, self.now)
        self.rows += [change.row() for change in changes]

    @property
    def alerts(self):
        return list(newest(self.rows).values())

    def pages(self, severity="page"):
        return [a for a in self.alerts if a.severity == severity]


@settings(max_examples=300, deadline=None)
@given(
    st.permutations(OUTAGE), st.lists(st.integers(1, 4), min_size=10, max_size=10), st.booleans()
)
def test_one_outage_is_one_page_in_any_order_and_in_any_portions(order, portions, forgets):
    """Signs come in any order and portions; each stays, or is seen once and recovers."""
    rounds, known, rest = Rounds(), [], list(order)
    fingerprints = set()
    for size in portions:
        fresh, rest = rest[:size], rest[size:]
        known = [k for k in known if k.loss or not forgets] + fresh
        rounds.ask(known)
        fingerprints |= {a.fingerprint for a in rounds.pages()}
    rounds.ask(known)
    assert len(fingerprints) == 1, "one page, under one name"
    (page,) = rounds.pages()
    assert {a.fingerprint for a in rounds.alerts if a.status == OPEN} == {page.fingerprint}
    assert len({tuple(r["labels"]) for r in rounds.rows if r["fingerprint"] in fingerprints}) == 1
    rounds.ask([k for k in known if k.loss])
    assert [a.status for a in rounds.pages()] == [OPEN], "a loss stays"
    rounds.ask([])
    assert {a.status for a in rounds.alerts} == {RESOLVED}


# -- random worlds against what is known of them ---------------------------------------------------

KINDS = (
    # cause of the losses, and what else its faults show
    ("brokers", (("retries_running_out", "NOT_ENOUGH_REPLICAS"), ("lost_after_ack", "truncated"))),
    ("refused", (("non_retriable_error", "MESSAGE_TOO_LARGE"), ("rejected", "record_too_large"))),
    ("group", (("skipped_by_consumer", "consumer_reset"), ("expired_before_read", "retention"))),
)
fault = st.tuples(st.sampled_from(range(len(KINDS))), st.integers(0, 5), st.integers(0, 2))
"""Kind, time slot, and topic (of which the owner, and the group, follow)."""


def signs_of(kind: int, slot: int, topic: int) -> list[Finding]:
    at = slot * 600.0
    owner = f"team-{topic % 2}"
    return [
        sign(state, cause, f"t{topic}", at=at + n * 10, end=at + n * 10 + 30, loss=True,
             owner=owner, group=f"g{topic}" if kind == 2 else "")
        for n, (state, cause) in enumerate(KINDS[kind][1])
    ]  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.sets(fault, max_size=8), st.randoms(use_true_random=False), st.integers(1, 6))
def test_pages_are_faults(faults, chance: random.Random, portions):
    """The oracle counts: one page per owner of a brokers' fault, else one per topic or group."""
    signs = [s for f in sorted(faults) for s in signs_of(*f)]
    expected = {
        (f"team-{t % 2}", slot, KINDS[kind][0] if kind == 0 else (kind, t))
        for kind, slot, t in faults
    }
    rounds, known = Rounds(), []
    chance.shuffle(signs)
    size = max(1, len(signs) // portions)
    for first in range(0, len(signs), size):
        known += signs[first : first + size]
        rounds.ask(known)
    assert len(rounds.alerts) == len(expected)
    assert {(a.owner, round((a.starts_at - T0).total_seconds() // 600)) for a in rounds.alerts} == {
        (owner, slot) for owner, slot, _ in expected
    }


@settings(deadline=None)
@given(st.permutations(OUTAGE), st.integers(0, 9))
def test_grouping_does_not_depend_on_the_order(order, cut):
    def shape(found):
        return {(o.owner, o.fault, frozenset(o.findings)) for o in found}

    assert shape(occurrences(order)) == shape(occurrences(OUTAGE))
    apart = [replace(f, owner="a" if n < cut else "b") for n, f in enumerate(order)]
    assert sum(len(o.findings) for o in occurrences(apart)) == len(OUTAGE)


def test_a_rate_that_is_high_opens_the_page_that_its_cause_joins():
    rounds = Rounds()
    rate = sign("error_rate_high", "app", "t", at=0)
    rounds.ask([rate])
    (page,) = rounds.pages()
    assert page.fault == UNEXPLAINED
    rounds.ask([rate, sign("retries_running_out", "NOT_ENOUGH_REPLICAS", "u", at=9)])
    (page,) = rounds.pages()
    assert (page.fault, page.labels["fault"]) == (BROKERS, UNEXPLAINED)
    rounds.ask([rate])
    assert [a.status for a in rounds.pages()] == [OPEN]


def test_refused_sends_of_one_topic_do_not_take_over_the_trouble_of_another():
    rounds = Rounds()
    rates = [sign("error_rate_high", "app", topic, at=0) for topic in ("t", "u")]
    rounds.ask(rates)
    rounds.ask([*rates, sign("non_retriable_error", "MESSAGE_TOO_LARGE", "t", at=5)])
    found = {a.fault: a.topics for a in rounds.pages()}
    assert found == {UNEXPLAINED: {"u"}, f"{REFUSED}:t": {"t"}}


def test_faults_that_are_further_apart_are_two_pages():
    gap = NEAR.total_seconds()
    first = sign("lost_after_ack", "truncated", "t", at=0, end=10, loss=True)
    for later, pages in ((10 + gap, 1), (11 + gap, 2)):
        rounds = Rounds()
        rounds.ask([first])
        rounds.ask([first, sign("lost_after_ack", "truncated", "t", at=later, end=500, loss=True)])
        assert len(rounds.pages()) == pages


def test_one_election_over_ten_topics_is_one_page_per_owner():
    rounds = Rounds()
    lost = [
        sign("lost_after_ack", "unclean_election", f"t{n}", at=n, end=n + 5, loss=True, count=500,
             owner="a" if n < 7 else "b", incident=f"i{n}")
        for n in range(10)
    ]  # fmt: skip
    for known in range(1, 11):
        rounds.ask(lost[:known])
    assert [(p.owner, p.lost) for p in sorted(rounds.pages(), key=lambda p: p.owner)] == [
        ("a", 3500), ("b", 1500),
    ]  # fmt: skip
    assert all(
        len(p.annotations["keys"].split("\n")) <= 3
        for p in rounds.pages()
        if "keys" in p.annotations
    )


def test_a_rate_that_stays_high_does_not_tie_two_faults_together():
    rounds = Rounds()
    first = sign("lost_after_ack", "acks_1_leader_change", "t", at=0, end=10, loss=True)
    rate = sign("error_rate_high", "app", "t", at=5)
    rounds.ask([first, rate])
    second = sign("retries_running_out", "NOT_ENOUGH_REPLICAS", "u", at=100)
    for _ in range(3):
        rounds.ask([first, rate, second])
        assert sorted(sorted(p.topics) for p in rounds.pages()) == [["t"], ["u"]]


def test_a_replica_that_is_missing_for_days_does_not_tie_two_faults_together():
    rounds = Rounds()
    missing = sign("under_replicated", at=-100_000, grade=Grade.WARN)
    lost = [
        sign("lost_after_ack", "truncated", "t", at=at, end=at + 10, loss=True)
        for at in (-50_000, -10_000)
    ]
    rounds.ask([missing])
    for known in (lost[:1], lost, lost):
        rounds.ask([missing, *known])
    alive = [sum(not s.over for s in p.symptoms) for p in rounds.pages()]
    assert alive == [1, 1], "both are over"
    assert [a.status for a in rounds.pages("ticket")] == [OPEN], "the replica is still missing"
    assert [p.starts_at for p in rounds.pages()] == [f.starts_at for f in lost]


@pytest.mark.parametrize(
    ("state", "incident", "command"),
    [
        ("failed_produce_requests", "", "acktrail budgets --fleet"),
        ("error_rate_high", "", "acktrail budgets --fleet"),
        ("rejected", "3f9c", "acktrail explain 3f9c"),
        ("source_failing", "", None),
    ],
)
def test_a_page_names_the_command_that_shows_more(state, incident, command):
    (page,) = alerts_due([sign(state, topic="t", incident=incident)], {}, {CHECK}, T0)
    assert page.annotations.get("explain") == command


def test_a_step_that_two_signs_ask_for_is_told_once():
    fixes = ("Bring them back. Do not restart.", "Look at it. Do not restart.")
    signs = [
        sign("retries_running_out", error, "t", fix=fix)
        for error, fix in zip("ab", fixes, strict=True)
    ]
    (page,) = alerts_due(signs, {}, {CHECK}, T0)
    assert page.annotations["what_to_do"] == "Bring them back. Do not restart. Look at it."


def test_the_cluster_names_the_broker_and_goes_on_naming_it_when_it_is_back():
    rounds = Rounds()
    timed_out = sign("retries_running_out", "REQUEST_TIMED_OUT", "t", brokers=("1",))
    rounds.ask([timed_out])
    assert rounds.pages()[0].annotations["brokers"] == "1"
    rounds.ask([replace(timed_out, brokers=("3 (out of sync)",))])
    for found in ([timed_out], []):
        rounds.ask(found)
        assert rounds.pages()[0].annotations["brokers"] == "3 (out of sync)"
