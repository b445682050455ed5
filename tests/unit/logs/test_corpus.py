"""The measured corpus: log lines as people posted them, kept beside the checkout."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from acktrail.logs.event import BACKGROUND, Event
from acktrail.logs.reader import read_record
from acktrail.logs.records import join_records

CORPUS = Path(__file__).resolve().parents[4] / "shared" / "log-corpus" / "dev.jsonl"
FEWEST = 50


def _events(raw):
    records = join_records(raw.encode().splitlines(keepends=True))
    read = [read_record(record.text.decode()) for record in records]
    return [e for e in read if isinstance(e, Event) and e.kind not in BACKGROUND]


@pytest.mark.skipif(not CORPUS.exists(), reason="the corpus is not part of the repository")
def test_the_corpus_is_read():
    lines = CORPUS.read_text(encoding="utf-8").splitlines()
    assert len(lines) >= FEWEST
    wrong = {}
    for line in map(json.loads, lines):
        expected, events = line["expected"], _events(line["raw"])
        wanted = [] if expected["kind"] == "other" else [expected]
        got = [{name: getattr(e, name) for name in expected} for e in events] if wanted else events
        if got != wanted:
            wrong[line["id"]] = (got, wanted)
    assert wrong == {}
