"""The answers about the recorded incident against its truth, which no part of ours had made."""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from datetime import timedelta
from typing import Any

import pytest

from acktrail.answers.losses import Wanted, incidents
from acktrail.answers.resend_list import resend_list
from acktrail.answers.timeline import timeline
from acktrail.contracts.bronze import AUDIT_REPORTS, LOG_RECORDS, METRIC_SAMPLES
from acktrail.contracts.gold import (
    LOSS_INCIDENTS,
    OFFSET_ACCOUNTS,
    PRODUCER_RELIABILITY,
    RETRY_BUDGETS,
)
from acktrail.contracts.runs import COVERAGE
from acktrail.lake import Lake
from tests.laws.incident import INCIDENT

TRUTH = json.loads((INCIDENT / "truth/truth.json").read_text())["sums"]


@pytest.fixture(scope="module")
def reliability(whole_lake: Lake) -> dict[str, dict[str, Any]]:
    """The mission's join, by client, for the topic it writes."""
    rows = whole_lake.read(PRODUCER_RELIABILITY).to_pylist()
    return {row["client_id"]: row for row in rows if row["topic"] and row["client_id"]}


@pytest.mark.parametrize("name", TRUTH)
def test_what_each_producer_sent_and_lost_is_as_it_was(
    name: str, reliability: dict[str, dict[str, Any]]
) -> None:
    truth, found = TRUTH[name], reliability[name]
    lost = truth["lost_after_ack"] + truth["lost_told"] + truth["lost_silent"]
    wanted = {
        "topic": truth["topic"],
        "sent": truth["handed_over"],
        "acked": truth["acked"],
        "lost": lost,
        "duplicated": truth["duplicated"],
        "out_of_order": truth["out_of_order"],
    }
    assert {key: found[key] for key in wanted} == wanted


def test_logs_metrics_and_audits_of_one_producer_meet_in_one_row(
    reliability: dict[str, dict[str, Any]],
) -> None:
    retried = retry_lines()
    for name, row in reliability.items():
        assert row["retry_lines"] == retried[name], name
        assert row["retry_rate_per_s"] > 0, f"{name} has logs and audits, but no metrics"
    gave_up = reliability["refunds-api"]
    assert gave_up["attempts_left_min"] == 0
    assert gave_up["error_rate_per_s"] > 0
    assert gave_up["failed_produce_requests_total"] > 0
    fine = reliability["clicks-tracker"]
    assert fine["error_rate_per_s"] == 0
    assert fine["failed_produce_requests_total"] is None, "no broker refused its topic"


def test_how_retries_ended_is_as_it_was(whole_lake: Lake) -> None:
    """Two were acknowledged after all, one gave up, and two still burn when the recording ends."""
    ended: defaultdict[str, set[str | None]] = defaultdict(set)
    for row in whole_lake.read(RETRY_BUDGETS).to_pylist():
        ended[row["client_id"]].add(row["ended_by"])
    assert ended == {
        "payments-api": {"recovered"},
        "clicks-tracker": {"recovered"},
        "refunds-api": {"exhausted"},
        "orders-api": {None},
        "shipments-api": {None},
    }
    for name, ends in ended.items():
        told = TRUTH[name]["handed_over"] - TRUTH[name]["acked"]
        assert ("exhausted" in ends) == (told > 0 and None not in ends), name


def retry_lines() -> Counter[str]:
    """Counted in the text itself."""
    found: Counter[str] = Counter()
    for path in INCIDENT.glob("logs/*/*.log.gz"):
        with gzip.open(path, "rt") as lines:
            found[path.name.removesuffix(".log.gz")] += sum(", retrying (" in ln for ln in lines)
    return found


def test_offsets_moved_as_far_as_the_log_reached(whole_lake: Lake) -> None:
    moved: Counter[str] = Counter()
    for row in whole_lake.read(OFFSET_ACCOUNTS).to_pylist():
        if row["group"]:
            assert row["behind"] == 0, "every group had read to the end"
            continue
        moved[row["topic"]] += row["moved"]
        assert row["scanned_records"] == row["scanned_offsets"] == row["last_offset"]
        assert row["gaps"] == 0
    assert moved == Counter({t["topic"]: t["records"] for t in TRUTH.values()})


def test_coverage_counts_every_row_of_evidence(whole_lake: Lake) -> None:
    rows: defaultdict[str, int] = defaultdict(int)
    for row in whole_lake.read(COVERAGE).to_pylist():
        rows[row["kind"]] += row["rows"]
        assert not row["missing"]
    for kind, table in (
        ("audit", AUDIT_REPORTS),
        ("metrics", METRIC_SAMPLES),
        ("logs", LOG_RECORDS),
    ):
        assert rows[kind] == whole_lake.read(table).num_rows, kind


def test_every_incident_has_a_timeline_with_the_evidence_of_its_cause(whole_lake: Lake) -> None:
    incidents = whole_lake.read(LOSS_INCIDENTS).to_pylist()
    assert {one["cause"] for one in incidents} == {"acks_1_leader_change", "retries_exhausted"}
    for incident in incidents:
        rows = timeline(whole_lake, incident, timedelta(minutes=1))
        assert any(row["evidence"] for row in rows) == bool(incident["evidence"])
        assert any(row["what"].startswith(("sends ", "gets an error for ")) for row in rows)


def test_the_resend_list_has_every_lost_message_and_no_other(whole_lake: Lake) -> None:
    lost: defaultdict[str, set[tuple[int, int | None]]] = defaultdict(set)
    with gzip.open(INCIDENT / "truth/truth.jsonl.gz", "rt") as lines:
        for message in map(json.loads, lines):
            if message["lost"]:
                place = (message["seq"], message["told_offset"])
                lost[message["producer"]].add(place)
    listed: defaultdict[str, set[tuple[int, int | None]]] = defaultdict(set)
    for incident in incidents(whole_lake, Wanted()):
        for row in resend_list(whole_lake, incident):
            for number in range(row["count"]):
                offset = None if row["first_offset"] is None else row["first_offset"] + number
                listed[row["client_id"]].add((row["first_seq"] + number, offset))
    assert listed == lost
