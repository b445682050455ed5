"""A real outage, a real watch, a real Alertmanager: one page, before the first loss, then over."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from acktrail.alerts.alert import RESOLVED
from acktrail.contracts.runs import ALERTS
from expectations.outbox import Outbox
from lab.warning import Outage, Trial


@pytest.mark.timeout(600)
def test_one_page_is_there_before_the_first_message_is_lost_and_ends_after_the_cure(
    nodes, tmp_path
):
    settings = {"delivery.timeout.ms": "60000", "request.timeout.ms": "10000"}
    with Trial(nodes, tmp_path, ["pay"]) as trial:
        outbox = Outbox(trial.lake)
        (seen,) = trial.meet(Outage("replicas-unmet", {"pay": settings}))
        deadline = time.monotonic() + 180
        while any(a.status != RESOLVED for a in outbox.alerts().values() if a.severity == "page"):
            assert time.monotonic() < deadline, [a.annotations for a in outbox.alerts().values()]
            time.sleep(2)
        pages = trial.pages
    said = (tmp_path / "watch.err").read_text()[-3000:]
    assert seen.loss_at_ms is not None
    assert seen.alert_at_ms is not None, said
    assert seen.alert_at_ms < seen.loss_at_ms, str(seen)
    # One page for the whole outage, whatever found it; nothing before the fault.
    (page,) = pages
    kept = [a for a in outbox.alerts().values() if a.severity == "page"]
    assert [a.fingerprint for a in kept] == [page["labels"]["fingerprint"]]
    began = datetime.fromtimestamp(seen.fault_at_ms / 1000, UTC)
    assert kept[0].starts_at >= began
    text = page["annotations"]
    assert (page["labels"]["fault"], text["topics"], text["clients"]) == ("brokers", "pay", "pay")
    assert text["brokers"] == "3 (out of sync)", (
        "the broker that was stopped, not the leader that refuses"
    )
    told = [dict(row["annotations"]) for row in trial.lake.read(ALERTS).to_pylist()]
    assert any("pay-0 (leader" in said.get("partitions", "") for said in told)
    assert any(said.get("first_deadline") for said in told)
    assert "Bring the missing replicas back" in text["what_to_do"]
    assert kept[0].summary.startswith("Over: ")
    assert "Whether messages were lost is not known: pay is not audited." in kept[0].summary
