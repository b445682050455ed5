"""The warning reaches a real Alertmanager before the first message is lost.

Every fault with default settings, and a lead of at least 60 s; then one with a delivery timeout of
60 s. `make soak` runs it: each case waits for a real delivery timeout on a machine of its own.
"""

from __future__ import annotations

import pytest

from acktrail.contracts.gold import RETRY_BUDGETS
from acktrail.lake import Lake
from lab.cluster import cluster
from lab.warning import FAULTS, measure, scenario

CASES = [
    *((fault, {}, 60.0) for fault in FAULTS),
    ("replicas-unmet", {"delivery.timeout.ms": "60000"}, 10.0),
]


@pytest.fixture(scope="module")
def brokers():
    with cluster() as nodes:
        yield nodes


@pytest.mark.parametrize(("fault", "settings", "lead_s"), CASES, ids=[c[0] for c in CASES])
def test_the_warning_comes_before_the_loss(brokers, tmp_path, fault, settings, lead_s):
    seen = measure(brokers, scenario(fault, settings, mended_after_s=None), tmp_path)
    assert seen.loss_at_ms is not None
    assert seen.warning_lead_s is not None, (tmp_path / "watch.err").read_text()[-3000:]
    assert seen.warning_lead_s >= lead_s


def test_what_recovers_in_time_is_never_called_exhausted(brokers, tmp_path):
    short = scenario("replicas-unmet", {"delivery.timeout.ms": "60000"}, mended_after_s=10)
    seen = measure(brokers, short, tmp_path)
    assert seen.loss_at_ms is None
    budgets = Lake(tmp_path / "lake").read(RETRY_BUDGETS).to_pylist()
    assert budgets
    assert not [b for b in budgets if b["ended_by"] == "exhausted"]
