"""Lines of real brokers and clients, captured in the lab: each is read as a person read it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from acktrail.logs.event import Event
from acktrail.logs.prefilter import may_be_evidence
from acktrail.logs.reader import read_record
from acktrail.logs.records import join_records

LINES = Path(__file__).resolve().parents[2] / "golden" / "logs" / "lab_lines.jsonl"
CAPTURED = [json.loads(line) for line in LINES.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("line", CAPTURED, ids=[c["text"][26:90] for c in CAPTURED])
def test_a_captured_record_is_read(line):
    (record,) = join_records(line["text"].encode().splitlines(keepends=True))
    event = read_record(record.text.decode())
    if line["event"] is None:
        assert event is None
        return
    assert isinstance(event, Event)
    assert may_be_evidence(record.text)
    got = {k: v for k, v in event.as_dict().items() if v is not None and k != "settings"}
    assert {k: list(v) if isinstance(v, tuple) else v for k, v in got.items()} == line["event"]
