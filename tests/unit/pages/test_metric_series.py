"""The exporter's series: bounded in number, NaN for what is not known, sums that stay the same."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acktrail.answers.current_facts import Accounts, EvidenceOf, JobFacts
from acktrail.pages.metric_series import (
    OTHER,
    Samples,
    ScrapeMoment,
    budget_series,
    check_series,
    evidence_series,
    job_series,
    loss_series,
    source_series,
)
from acktrail.retries.budget import budgets_of
from acktrail.retries.fleet import Burning
from tests.unit.expectations.gold_rows import NOW, ago
from tests.unit.retries.retry_lines import DEFAULTS, FIVE, MAX, NOON, line

ASKED = ScrapeMoment(NOW, timedelta(hours=24), top=3, fresh=timedelta(hours=1))


def incident(topic: str, ids: int, ended: float | None = 60, **facts: Any) -> dict[str, Any]:
    usual = {"cluster": "c", "group": "", "state": "lost_after_ack", "cause": "truncated"}
    at = None if ended is None else ago(ended)
    return {**usual, "topic": topic, "ids": ids, "ended_at": at, **facts}


def accounts(last: float | None) -> dict[str, Accounts]:
    return {"c": Accounts({}, 0, None if last is None else ago(last))}


def samples(found: list[Any], name: str) -> Samples:
    (one,) = [series for series in found if series.name == name]
    return dict(one.samples)


def lost(rows: list[dict[str, Any]], known: dict[str, Accounts] | None = None) -> Samples:
    return samples(loss_series(rows, known or {}, ASKED), "acktrail_lost_messages")


def key(topic: str, group: str = "", cluster: str = "c") -> tuple[str, ...]:
    return (cluster, topic, group, "lost_after_ack", "truncated")


def test_losses_of_one_topic_are_one_sample_and_old_ones_are_none():
    rows = [incident("pay", 3), incident("pay", 4), incident("pay", 9, ended=90_000)]
    assert lost(rows) == {key("pay"): 7}


def test_a_loss_without_a_time_is_shown():
    assert lost([incident("pay", 3, ended=None)]) == {key("pay"): 3}


def test_zero_is_shown_only_of_a_cluster_that_was_audited_in_the_window():
    nothing = ("c", "", "", "", "")
    assert lost([], accounts(60)) == {nothing: 0}
    for old in (90_000, None):
        assert math.isnan(lost([], accounts(old))[nothing])
    assert lost([]) == {}


def test_beyond_the_top_topics_are_one_and_one_called_other_joins_them():
    rows = [incident(name, ids) for name, ids in (("a", 9), ("b", 8), ("d", 7), ("e", 2))]
    rows.append(incident("other", 1, group="other"))
    found = lost(rows)
    assert found == {key("a"): 9, key("b"): 8, key("d"): 7, key(OTHER, OTHER): 3}


NAMES = st.sampled_from("abcdefgh")


@given(st.lists(st.tuples(NAMES, NAMES, NAMES, st.integers(1, 1000)), max_size=60))
def test_the_number_of_series_is_bounded_and_no_message_is_left_out(drawn):
    rows = [incident(t, n, group=g, cluster=f"c{int(c > 'd')}") for t, g, c, n in drawn]
    found = lost(rows)
    assert sum(found.values()) == sum(n for *_, n in drawn)
    assert len(found) <= ASKED.top + 2  # `other` of each cluster


def burning(client: str, seconds: int, settings: Any = DEFAULTS) -> Burning:
    """A client whose batch has been retried for *seconds*, as of NOON + 49 s."""
    signs = [line(49 - seconds, MAX - 1, 1)] if settings is not FIVE else [line(48, 1, 1)]
    known = [settings] if settings else []
    (budget,) = budgets_of(signs, known)
    return Burning("c", "", client, budget)


AT_NOON = ScrapeMoment(NOON + timedelta(seconds=49), timedelta(hours=24), 2, timedelta(hours=1))


def evidence(age: float, kind: str = "logs") -> list[EvidenceOf]:
    return [EvidenceOf("c", "app", kind, AT_NOON.now - timedelta(seconds=age))]


def test_the_least_time_of_a_client_is_shown_and_unknown_settings_are_nan():
    found = budget_series(
        [burning("pay", 0), burning("pay", 1), burning("web", 0, None)], evidence(1), AT_NOON
    )
    left = samples(found, "acktrail_retry_budget_seconds_left")
    assert 0 < left[("c", "pay")] <= 120
    assert math.isnan(left[("c", "web")])
    chains = samples(found, "acktrail_retry_budgets")
    assert chains[("c", "unknown")] == 1
    assert sum(chains.values()) == 3


def test_clients_beyond_the_top_share_a_sample_with_their_least_time():
    clients = [burning(name, 0, known) for name, known in
               (("a", FIVE), ("b", FIVE), ("d", DEFAULTS), ("e", None))]  # fmt: skip
    found = budget_series(clients, evidence(1), AT_NOON)
    left = samples(found, "acktrail_retry_budget_seconds_left")
    critical = samples(found, "acktrail_retry_budgets_critical")
    assert set(left) == set(critical) == {("c", "a"), ("c", "b"), ("c", OTHER)}
    alone = samples(budget_series(clients[2:3], evidence(1), AT_NOON),
                    "acktrail_retry_budget_seconds_left")  # fmt: skip
    assert left[("c", OTHER)] == alone[("c", "d")]


def test_no_chain_is_zero_only_where_evidence_is_fresh():
    for given_, known in ((evidence(1), True), (evidence(7200), False), ([], None)):
        chains = samples(budget_series([], given_, AT_NOON), "acktrail_retry_budgets")
        assert len(chains) == (0 if known is None else 3)
        assert all(math.isnan(v) != known for v in chains.values())
    of_audits = samples(budget_series([], evidence(1, "audit"), AT_NOON), "acktrail_retry_budgets")
    assert of_audits == {}


OUTCOMES = [
    # rows of one check: (outcome, grade, not_collected)                             state
    ([("pass", "fail", False)], 0),
    ([("fail", "warn", False)], 1),
    ([("fail", "fail", False)], 2),
    ([("undecided", "fail", False)], 3),
    ([("undecided", "fail", None)], 3),
    ([("undecided", "fail", True)], math.nan),
    ([("undecided", "fail", False), ("fail", "fail", False)], 2),
    ([("pass", "fail", False), ("undecided", "fail", False)], 3),
]


@pytest.mark.parametrize(("results", "state"), OUTCOMES)
def test_the_state_of_a_check(results, state):
    rows = [
        {"check": "k", "table": "t", "outcome": o, "grade": g, "not_collected": n}
        for o, g, n in results
    ]
    (found,) = samples(check_series(rows), "acktrail_check_state").values()
    assert found == state or (math.isnan(state) and math.isnan(found))


def test_the_age_of_a_source_is_that_of_its_newest_evidence():
    rows = [
        EvidenceOf("c", "app", "logs", ago(90)),
        EvidenceOf("c", "app", "metrics", ago(30)),
        EvidenceOf("c", "jmx", "metrics", None),
    ]
    ages = samples(evidence_series(rows, ASKED), "acktrail_evidence_age_seconds")
    assert ages[("c", "app")] == 30
    assert math.isnan(ages[("c", "jmx")])


def test_beyond_the_top_the_oldest_source_counts():
    rows = [EvidenceOf("c", f"s{n}", "logs", ago(100 * n)) for n in range(9)]
    ages = samples(evidence_series(rows, ASKED), "acktrail_evidence_age_seconds")
    assert ages == {("c", "s8"): 800, ("c", "s7"): 700, ("c", "s6"): 600, ("c", OTHER): 500}


def test_an_agent_that_reports_no_more_is_silent():
    report = {"cluster": "c", "source": "app", "state": "up"}
    rows = [{**report, "at": ago(60)}, {**report, "at": ago(3600)}, {**report, "at": ago(7200)}]
    assert samples(source_series(rows, ASKED), "acktrail_sources") == {
        ("c", "app", "up"): 1,
        ("c", "app", "silent"): 2,
    }


def test_a_job_with_nothing_to_read_waits_for_nothing():
    jobs = JobFacts({"a": ago(9), "check": ago(5)}, {"a": False, "b": True}, {"b": None})
    found = job_series(jobs, ASKED)
    pending = samples(found, "acktrail_job_pending_seconds")
    assert pending[("a",)] == 0
    assert math.isnan(pending[("b",)])
    assert samples(found, "acktrail_job_failed") == {("a",): 0, ("b",): 1}
    last = samples(found, "acktrail_job_last_success_timestamp_seconds")
    assert last == {("a",): ago(9).timestamp(), ("check",): ago(5).timestamp()}
