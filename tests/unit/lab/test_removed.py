"""Who removed a record that is in no log at the end."""

from __future__ import annotations

import json

import pytest

from lab.removed import LogStart, topic_log


def lines(path, *rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def log_of(tmp_path, *, actions=(), settings=None, states=(), first=0, records=()):
    rows = [{"topic": "t", "partition": 0, "at_ms": at, "earliest_offset": o} for at, o in states]
    lines(tmp_path / "cluster" / "states.jsonl", *rows)
    bounds = {"partition": 0, "first_offset": first, "end_offset": 100}
    lines(
        tmp_path / "scan" / "t.jsonl",
        *({"partition": 0, "offset": o, "key": k, "value": "7.1"} for o, k in records),
        {"scan": "ended", "at_ms": 900, "partitions": [bounds]},
    )
    topic = {"name": "t", "settings": settings or {}}
    return topic_log(tmp_path, {"actions": list(actions)}, topic)


DELETED = {"action": "delete_records", "topic": "t", "partition": 0, "offset": 40, "at_ms": 500}
MADE_AGAIN = {"action": "recreate_topic", "topic": "t", "from_ms": 290, "gone_ms": 300}
MADE_AGAIN |= {"at_ms": 320}
COMPACT = {"cleanup.policy": "compact,delete"}
CASES = [
    # name, the log, offset, at, key, by whom
    ("by nobody", {}, 30, 100, None, None),
    ("by an admin", {"actions": [DELETED], "first": 40}, 30, 100, None, "delete_records"),
    ("not what the admin left", {"actions": [DELETED], "first": 40}, 40, 100, None, None),
    ("by retention", {"states": [(400, 0), (500, 35)], "first": 35}, 30, 100, None, "retention"),
    ("by retention in the end", {"first": 35}, 30, 100, None, "retention"),
    ("with its topic", {"actions": [MADE_AGAIN]}, 30, 299, None, "topic_deleted"),
    ("not with its topic", {"actions": [MADE_AGAIN]}, 30, 301, None, None),
    ("another topic's", {"actions": [{**DELETED, "topic": "u"}]}, 30, 100, None, None),
    ("by compaction", {"settings": COMPACT, "records": [(50, "k")]}, 30, 1, "k", "compaction"),
    ("not the newest of a key", {"settings": COMPACT, "records": [(20, "k")]}, 30, 1, "k", None),
    ("no key", {"settings": COMPACT, "records": [(50, "k")]}, 30, 1, None, None),
    ("not compacted", {"records": [(50, "k")]}, 30, 1, "k", None),
]


@pytest.mark.parametrize(
    ("log", "offset", "at", "key", "by"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_by_whom(tmp_path, log, offset, at, key, by):
    assert log_of(tmp_path, **log).taken_by((0, offset), at, key) == by


def test_the_start_of_the_log_at_a_time(tmp_path):
    states = [(100, 0), (400, 20), (600, 40), (700, 60)]
    log = log_of(tmp_path, actions=[DELETED], states=states, first=60)
    assert [log.start_at(0, at) for at in (100, 450, 550, 650, 800)] == [0, 20, 40, 40, 60]
    assert log.removal((0, 10)) == LogStart(400, 20, "retention")
    assert log.removal((0, 30)) == LogStart(500, 40, "delete_records")
    assert log.removal((0, 60)) is None
