"""What three brokers printed while three topics lost records, and what is made of it.

Recorded on Kafka 4.3.1: brokers 2 and 3 were killed; 3 lost what it had not flushed of `kept`
and all of `solo`. Then 2 came back and was elected for `fallen`, which allows it, and 3 came back.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from acktrail.aliases import Aliases
from acktrail.audit.causes import cause_of
from acktrail.audit.loss_evidence import Fact, Loss
from acktrail.logs.event import Event
from acktrail.logs.event_rows import Origin, broker_row
from acktrail.logs.reader import read_record
from tests.unit.audit.leader_evidence import AT, allowed, lost

PRINTED = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "golden/logs/lost_logs.jsonl").read_text().splitlines()
]
AT_LAKE = 1_795_033_566_000
NAMED = ("offset", "high_watermark", "broker", "leader", "partition", "detail", "host", "kind")


def facts_of(topic: str) -> list[Fact]:
    """As the job of `loss_events` makes them."""
    found = {}
    for number, line in enumerate(PRINTED):
        event = read_record(line["text"])
        assert isinstance(event, Event)
        origin = Origin("lab", "s", line["host"], "f", None, number, zone="UTC")
        row = broker_row(event, origin, Aliases(()))
        if row["topic"] == topic:
            found[row["event_key"]] = Fact(
                key=row["event_key"],
                at_ms=round(row["at"].timestamp() * 1000),
                epoch=row["leader_epoch"],
                isr=tuple(row["isr_after"] or ()),
                isr_before=tuple(row["isr_before"] or ()),
                **{name: row[name] for name in NAMED},
            )
    return list(found.values())


@pytest.mark.parametrize("skew_ms", [0, 3_600_000, -3_600_000])
@pytest.mark.parametrize(
    ("topic", "first", "last", "setting", "cause"),
    [
        ("solo", 0, 1193, "false", "log_directory_lost"),
        ("fallen", 307, 794, "true", "unclean_election"),
        ("kept", 417, 682, "false", "truncated"),
    ],
)
def test_the_cause_is_right_whatever_the_producers_clock(
    topic, first, last, setting, cause, skew_ms
):
    began = 1_795_033_564_000 + skew_ms
    finding = lost(first, last, first_ms=began, last_ms=began + 1_300,
                   first_received_ms=AT_LAKE, last_received_ms=AT_LAKE + 2_000)  # fmt: skip
    facts = [*facts_of(topic), allowed(setting, 1_795_033_552_634 - AT)]
    found = cause_of(Loss(finding, "", "pay", {"acks": "all"}, facts, topic=topic))
    assert (found.cause, found.confidence) == (cause, "exact"), found
    assert ("unclean.leader" in found.because) == (setting == "true")


def test_a_return_that_lost_nothing_is_no_cause():
    """UNCLEAN was printed for `kept` too; what lies below the log's end then was not lost by it."""
    found = cause_of(Loss(lost(300, 416), "", "pay", {"acks": "all"}, facts_of("kept")))
    assert found.cause == "unknown"
