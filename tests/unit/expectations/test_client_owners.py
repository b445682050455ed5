"""Whose a finding is that names a client and no topic."""

from __future__ import annotations

import pytest
from gold_rows import ago, ask, budget, row, write

from acktrail.contracts.gold import PRODUCER_RELIABILITY, RETRY_BUDGETS
from acktrail.lake import Lake

POLICY = """\
owners:
  - {topics: "pay*", owner: team-pay}
  - {topics: refunds, owner: team-pay}
  - {topics: clicks, owner: team-web}
"""
CASES = {
    # topics that the client is known to write to -> who is told that it lost a connection
    (): "platform",
    ("payments",): "team-pay",
    ("payments", "refunds"): "team-pay",
    ("payments", "clicks"): "platform",
    ("clicks",): "team-web",
}


@pytest.mark.parametrize("topics", CASES)
def test_a_lost_connection_is_told_to_the_owner_of_the_clients_topics(tmp_path, topics):
    lake, policy = Lake(tmp_path / "lake"), tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    write(lake, RETRY_BUDGETS, budget(topic="", partition=-1, error=None))
    for topic in topics:
        seen = {"client_id": "checkout", "topic": topic, "hour": "2026-01-31T10"}
        write(lake, PRODUCER_RELIABILITY, row(PRODUCER_RELIABILITY, **seen))
    other = {"client_id": "other", "topic": "clicks", "hour": "2026-01-31T10"}
    write(lake, PRODUCER_RELIABILITY, row(PRODUCER_RELIABILITY, **other))
    results = ask(lake, policy, tables=["retry_budgets"])
    (found,) = (f for r in results if r.check == "retry_budget_left" for f in r.findings)
    assert found.owner == CASES[topics]


def test_a_topic_in_a_line_of_the_client_counts_too(tmp_path):
    lake, policy = Lake(tmp_path / "lake"), tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    earlier = budget(opened_at=ago(300), ended_at=ago(200), ended_by="recovered")
    write(lake, RETRY_BUDGETS, budget(topic="", partition=-1, error=None), earlier)
    results = ask(lake, policy, tables=["retry_budgets"])
    (found,) = (f for r in results if r.check == "retry_budget_left" for f in r.findings)
    assert found.owner == "team-pay"
