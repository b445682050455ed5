"""A real outage, a real watch, a real Alertmanager: the warning comes before the first loss."""

from __future__ import annotations

import pytest

from lab.cluster import cluster
from lab.warning import Outage, Trial


@pytest.mark.timeout(600)
def test_the_alert_is_there_before_the_first_message_is_lost(tmp_path):
    settings = {"delivery.timeout.ms": "60000", "request.timeout.ms": "10000"}
    with cluster() as brokers, Trial(brokers, tmp_path, ["pay"]) as trial:
        (seen,) = trial.meet(Outage("replicas-unmet", {"pay": settings}))
    assert seen.loss_at_ms is not None
    assert seen.alert_at_ms is not None, (tmp_path / "watch.err").read_text()[-3000:]
    assert seen.alert_at_ms < seen.loss_at_ms, str(seen)
