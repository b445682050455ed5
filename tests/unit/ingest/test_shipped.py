"""Lines shipped through Kafka: three shapes, and records joined across mixed origins."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acktrail.logs.records import join_records
from ingest.sources.shipped_lines import SHAPES, ShippedLine, read_shipped
from ingest.sources.shipped_records import PartitionLines

AT = datetime(2026, 1, 31, 10, 0, 0, 500_000, tzinfo=UTC)
CASES = [
    # case, shape, message, text, host, path, shipped at
    (
        "filebeat",
        "filebeat",
        {
            "@timestamp": "2026-01-31T10:00:00.500Z",
            "@metadata": {"beat": "filebeat", "type": "_doc"},
            "host": {"name": "app-1"},
            "log": {"offset": 7, "file": {"path": "/var/log/a.log"}},
            "message": "WARN x",
        },
        ("WARN x", "app-1", "/var/log/a.log", AT),
    ),
    (
        "filebeat in kubernetes",
        "filebeat",
        {
            "@timestamp": "2026-01-31T10:00:00.500Z",
            "kubernetes": {"pod": {"name": "orders-7f"}},
            "host": {"name": "node-3"},
            "message": "WARN x",
        },
        ("WARN x", "orders-7f", None, AT),
    ),
    (
        "vector",
        "vector",
        {
            "file": "/var/log/a.log",
            "host": "app-1",
            "message": "WARN x",
            "source_type": "file",
            "timestamp": "2026-01-31T10:00:00.500123456Z",
        },
        ("WARN x", "app-1", "/var/log/a.log", AT.replace(microsecond=500_123)),
    ),
    (
        "fluent bit",
        "fluent_bit",
        {"@timestamp": 1769853600.5, "log": "WARN x\n", "path": "/var/log/a.log"},
        ("WARN x", None, "/var/log/a.log", AT),
    ),
    (
        "fluent bit in kubernetes",
        "fluent_bit",
        {"date": 1769853600.5, "log": "WARN x", "kubernetes": {"pod_name": "orders-7f"}},
        ("WARN x", "orders-7f", None, AT),
    ),
    ("no time", "vector", {"message": "WARN x"}, ("WARN x", None, None, None)),
    ("a strange time", "vector", {"message": "x", "timestamp": "soon"}, ("x", None, None, None)),
    ("a strange host", "vector", {"message": "x", "host": {"a": 1}}, ("x", None, None, None)),
]


@pytest.mark.parametrize(("shape", "message", "wanted"), [c[1:] for c in CASES])
def test_shapes(shape, message, wanted):
    line = read_shipped(json.dumps(message).encode(), shape)
    assert line == ShippedLine(*wanted)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "value",
    [
        *(None, b"", b"WARN plain", b"{", b"[1]", b'"x"', b"{}", b'{"message":5}'),
        *(b'{"log":null}', b"\xff\xfe", b"[" * 100_000, b'{"message":["a"],"log":{"a":1}}'),
    ],
    ids=str,
)
def test_poison_is_no_line(shape, value):
    assert read_shipped(value, shape) is None


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200), st.sampled_from(sorted(SHAPES)))
def test_any_bytes_are_read(value, shape):
    read_shipped(value, shape)


LINES = st.sampled_from(
    [
        "2026-01-31 10:00:00,001 WARN Got error produce response",
        "2026-01-31 10:00:00,001 INFO quiet",
        "\tat a.b.C(D.java:1)",
        "org.apache.kafka.common.errors.TimeoutException: x",
    ]
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("line"), st.sampled_from("ABC"), LINES),
        st.tuples(st.just("poison"), st.just(""), st.just("")),
        st.tuples(st.just("commit"), st.just(""), st.just("")),
        st.tuples(st.just("die"), st.just(""), st.just("")),
    ),
    max_size=40,
)


@settings(max_examples=300, deadline=None)
@given(STEPS)
def test_every_message_is_decided_once_whatever_dies(steps):
    messages = [(origin, text) for kind, origin, text in steps if kind in ("line", "poison")]
    decided: list[tuple[int, bytes]] = []
    poison: list[int] = []
    committed = offset = 0
    part = PartitionLines(None, 0)

    def feed(upto: int) -> None:
        for at in range(part.next, upto):
            origin, text = messages[at]
            line = ShippedLine(text, origin, None, None) if origin else None
            part.add(at, line, now=0.0, stamp=0.0)

    def commit(idle_s: float) -> None:
        nonlocal committed
        joined, bad, reached = part.take(now=0.0, idle_s=idle_s)
        assert reached >= committed
        decided.extend((j.offset, j.text) for j in joined)
        poison.extend(bad)
        committed = reached

    for kind, _, _ in steps:
        if kind in ("line", "poison"):
            offset += 1
            feed(offset)
        elif kind == "commit":
            commit(idle_s=5.0)
        else:
            part = PartitionLines(committed, committed)
            feed(offset)
    commit(idle_s=0.0)
    assert part.size == 0
    assert committed == len(messages)
    assert sorted(poison) == [i for i, (origin, _) in enumerate(messages) if not origin]
    assert sorted(decided) == sorted(_oracle(messages))


def test_a_slow_reader_does_not_end_a_record():
    part = PartitionLines(None, 0)
    part.add(0, ShippedLine("2026-01-31 10:00:00 ERROR x", "A", None, None), now=0.0, stamp=0.0)
    assert part.take(now=100.0, idle_s=5.0)[2] == 0
    part.at_end = True
    assert part.take(now=100.0, idle_s=5.0)[2] == 1


def test_a_file_silent_in_the_logs_own_time_ends_its_record():
    part = PartitionLines(None, 0)
    part.add(0, ShippedLine("2026-01-31 10:00:00 ERROR x", "A", None, None), now=0.0, stamp=0.0)
    part.add(1, ShippedLine("2026-01-31 10:00:09 ERROR y", "B", None, None), now=0.0, stamp=9.0)
    assert part.take(now=0.0, idle_s=5.0)[2] == 1


def _oracle(messages):
    """Each origin's lines joined as if they stood in a file of their own."""
    for origin in "ABC":
        own = [(at, text.encode()) for at, (o, text) in enumerate(messages) if o == origin]
        for record in join_records(text + b"\n" for _, text in own):
            yield own[record.line - 1][0], record.text
