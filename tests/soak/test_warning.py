"""The warning reaches a real Alertmanager at least 60 s before the first message is lost.

Every fault meets a producer with default settings and one with finite retries, beside a real
`acktrail watch`; then the same fault is mended in time. `make soak` runs it: each case waits for
a real delivery timeout, on a machine of its own.
"""

from __future__ import annotations

import pytest

from acktrail.contracts.gold import RETRY_BUDGETS
from acktrail.lake import Lake
from lab.cluster import cluster
from lab.steps import wait_until
from lab.warning import FAULTS, Outage, Trial

LEAD_S = 60.0
FINITE = {
    # Attempts that last for more than a minute, at the pace this fault burns them.
    "replicas-unmet": {"retries": "85"},
    "broker-stopped": {"retries": "5"},
    "acks-dropped": {"retries": "3"},
}


def clients_of(lake: Lake) -> set[str]:
    return {row["client_id"] for row in lake.read(RETRY_BUDGETS, None, ["client_id"]).to_pylist()}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_warning_comes_before_the_loss_and_nothing_is_called_exhausted_that_was_not(
    tmp_path, fault
):
    lost = {f"{fault}-default": {}, f"{fault}-finite": FINITE[fault]}
    saved = {f"{fault}-saved": {}, f"{fault}-saved-finite": FINITE[fault]}
    with cluster() as brokers, Trial(brokers, tmp_path, [*lost, *saved]) as trial:
        seen = trial.meet(Outage(fault, lost))
        spared = trial.meet(Outage(fault, saved, mended_after_s=40))
        wait_until(lambda: clients_of(trial.lake) >= {*lost, *saved}, 180, pause=2)
    print(*seen, *spared, sep="\n")
    said = (tmp_path / "watch.err").read_text()[-3000:]
    assert all((one.warning_lead_s or 0) >= LEAD_S for one in seen), said
    assert all(one.loss_at_ms is None for one in spared)
    budgets = trial.lake.read(RETRY_BUDGETS).to_pylist()
    assert clients_of(trial.lake) >= {*lost, *saved}
    claimed = {b["client_id"] for b in budgets if b["ended_by"] == "exhausted"}
    assert not claimed & {*saved}
