"""Audited clients that are killed, restarted and fenced again and again, on a real cluster.

Producers and members of a group run as processes of their own and are ended by `kill -9` at random
moments, their reporters with them; brokers restart in turn. What was reported is then compared with
what the processes printed before each step, and with the log.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from acktrail.audit.wire import Report, decode_header, decode_reports, decode_runs
from acktrail.contracts.vocabulary import Tier
from lab import report_topic
from lab.client_choice import with_clients
from lab.cluster import cluster
from lab.run import Run
from lab.scenarios import SCENARIOS

BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
NAMES = ("rolling-restart", "producer-crash", "two-members-crash", "fenced-producer", "rebalances")


def read(path: Path) -> list[dict]:
    found = []
    for line in path.read_text().splitlines():
        if line.startswith("{"):
            found.append(json.loads(line))
    return found


def ids_of(report: Report) -> list[tuple[int, int]]:
    numbers, offsets = decode_runs(report.ids).listed()
    at = offsets.tolist() if offsets is not None else [-1] * len(numbers)
    return [((report.block << 15) + n, o) for n, o in zip(numbers.tolist(), at, strict=True)]


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_reported_that_was_not_so(name, tmp_path):
    scenario = with_clients(BY_NAME[name], "python")
    with cluster() as nodes:
        Run(scenario, nodes, tmp_path).perform()
    check(tmp_path)


def check(evidence: Path) -> None:
    """All that was reported, against what was printed and what is in the log."""
    described = json.loads((evidence / "scenario.json").read_text())
    lines = (evidence / report_topic.FILE).read_bytes().splitlines()
    reports = [row for line in lines for row in decode_reports(line)]
    truth = read(evidence / "truth" / "truth.jsonl")
    for producer in described["producers"]:
        own = [m for m in truth if m["producer"] == producer["name"]]
        mine = [r for r in reports if r.session == producer["session"]]
        sent = {seq for r in mine if r.tier is Tier.SENT for seq, _ in ids_of(r)}
        assert sent <= {m["seq"] for m in own}
        told = {(m["seq"], m["told_partition"], m["told_offset"]) for m in own}
        acked = Counter(
            (seq, r.partition, at) for r in mine if r.tier is Tier.ACKED for seq, at in ids_of(r)
        )
        assert set(acked) <= told
        aborted = {seq for r in mine if r.tier is Tier.ABORTED for seq, _ in ids_of(r)}
        committed = {seq for r in mine if r.tier is Tier.COMMITTED for seq, _ in ids_of(r)}
        assert aborted <= {m["seq"] for m in own if m["aborted"]}
        assert committed <= {m["seq"] for m in own if not m["aborted"]}
        got = {(m["seq"], *place) for m in own for place in m["received_at"]}
        given = {
            (seq, r.partition, at)
            for r in mine
            if r.tier is Tier.DELIVERED
            for seq, at in ids_of(r)
        }
        # A member that is killed may have been given what it had no time to print.
        stored = {(m["seq"], *place) for m in own for place in m["in_log"]}
        assert given <= got | stored
    for topic in described["topics"]:
        seen = Counter()
        for record in read(evidence / "scan" / f"{topic['name']}.jsonl"):
            for header, value in record.get("headers") or ():
                if header == "acktrail":
                    made = decode_header(bytes.fromhex(value))
                    seen[made.session, made.seq, record["value"]] += 1
        ids = Counter((session, seq) for session, seq, _ in seen)
        assert all(count == 1 for count in ids.values()), "two messages have one id"
