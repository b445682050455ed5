"""A scenario with audited clients: what they report is what they were told, and what was stored."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

from acktrail.audit.wire import decode_reports, decode_runs
from acktrail.contracts.vocabulary import Tier
from lab import report_topic
from lab.client_choice import with_clients
from lab.run import Run
from lab.scenarios import SCENARIOS

BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}


def listed(reports, tier: Tier) -> Counter[tuple[int, int, int]]:
    """Id, partition and offset of everything at a tier."""
    found: Counter[tuple[int, int, int]] = Counter()
    for report in reports:
        if report.tier is tier:
            ids, offsets = decode_runs(report.ids).listed()
            for seq, at in zip(ids.tolist(), offsets.tolist(), strict=True):
                found[(report.block << 15) + seq, report.partition, at] += 1
    return found


def test_lost_acks_without_idempotence_are_reported_as_they_were_told(nodes, tmp_path):
    """The proxy loses the answers to reports as well: they come again, and change nothing."""
    scenario = with_clients(BY_NAME["lost-ack"], "python")
    smaller = tuple(replace(each, messages=2000) for each in scenario.producers)
    # A name of its own: this cluster has served the same scenario with other clients.
    topics = tuple(replace(each, name="orders-audited") for each in scenario.topics)
    producers = tuple(replace(each, topic="orders-audited") for each in smaller)
    consumers = tuple(replace(each, topic="orders-audited") for each in scenario.consumers)
    scenario = replace(scenario, topics=topics, producers=producers, consumers=consumers)
    truth = Run(scenario, nodes, tmp_path).perform()
    assert truth.sums["orders"].duplicated > 0
    messages = [
        json.loads(x) for x in (tmp_path / "truth" / "truth.jsonl").read_text().split("\n")[:-1]
    ]
    lines = (tmp_path / report_topic.FILE).read_bytes().splitlines()
    reports = [row for line in lines for row in decode_reports(line)]
    told = {(m["seq"], m["told_partition"], m["told_offset"]) for m in messages}
    assert set(listed(reports, Tier.ACKED)) == told
    assert len(told) == 2000
    stored = {(m["seq"], *place) for m in messages for place in m["in_log"]}
    assert set(listed(reports, Tier.DELIVERED)) == stored
    described = json.loads((tmp_path / "scenario.json").read_text())["producers"][0]
    assert {r.session for r in reports if r.tier is Tier.ACKED} == {described["session"]}
    beats = [r for r in reports if r.tier is Tier.HEARTBEAT]
    assert {r.settings["host"] for r in beats} == {"orders-1", "shop-1"}
    assert {(r.session, r.group) for r in beats if r.closed} == {
        (described["session"], ""),
        ("", "shop"),
    }
