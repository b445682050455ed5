"""What is read a column at a time is what the reader reads, row by row."""
# ruff: noqa: E501 - the pieces are log lines.

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from acktrail.aliases import Aliases
from acktrail.contracts.arrow import schema
from acktrail.contracts.silver import PRODUCER_EVENTS
from acktrail.logs.event import Event
from acktrail.logs.event_rows import Origin, producer_row
from acktrail.logs.reader import read_record
from pipelines.silver.common_lines import read_common

OUT = pa.schema([pa.field(f.name, f.type) for f in schema(PRODUCER_EVENTS)])
INPUT = pa.schema(
    [
        pa.field(n, pa.string())
        for n in ("cluster", "source", "host", "file_id", "path", "text", "zone")
    ]
    + [pa.field("position", pa.int64()), pa.field("shipped_at", pa.timestamp("us", tz="UTC"))]
)
LINES = Path(__file__).resolve().parents[2] / "golden" / "logs" / "lab_lines.jsonl"
CAPTURED = [json.loads(line)["text"] for line in LINES.read_text(encoding="utf-8").splitlines()]


def both(texts, zone):
    """The rows of the common lines, read both ways."""
    records = [
        {"cluster": "c", "source": "s", "host": "h", "file_id": "f", "path": "/p", "position": i}
        | {"text": text, "zone": zone, "shipped_at": None}
        for i, text in enumerate(texts)
    ]
    batch = pa.RecordBatch.from_pylist(records, schema=INPUT)
    read, left = read_common(batch, OUT)
    fast = {r["record_key"]: r for part in read for r in part.to_pylist()}
    assert len(fast) + left.num_rows == len(texts)
    slow = {}
    for record in records:
        text = record.pop("text")
        event = read_record(text)
        if isinstance(event, Event) and event.side == "producer":
            row = producer_row(event, Origin(**record), Aliases())
            slow[row["record_key"]] = {name: row.get(name) for name in OUT.names}
    return fast, {key: slow.get(key) for key in fast}


def test_captured_lines_are_read_the_same():
    for zone in (None, "Asia/Tokyo", "Europe/Berlin"):
        fast, slow = both(CAPTURED, zone)
        assert fast == slow
        assert len(fast) > 8


PIECES = st.sampled_from(
    [
        "[2026-03-29 02:30:21,240] ", "[2026-10-25 02:30:21,240] ", "[2026-01-02 03:04:05,006] ",
        "WARN ", "INFO ", "[Producer clientId=p-1] ", "[Producer clientId=a b] ",
        "[Producer clientId=x, transactionalId=t] ", "[Consumer clientId=c, groupId=g] ",
        "Got error produce response with correlation id 20 on topic-partition t-x.y-0, retrying "
        "(3 attempts left). Error: NOT_ENOUGH_REPLICAS",
        "Got error produce response with correlation id 20 on topic-partition xx-0, retrying "
        "(3 attempts left). Error: REQUEST_TIMED_OUT. Error Message: Disconnected from node 1",
        "Received invalid metadata error in produce request on partition t-1 due to org.apache.kafka."
        "common.errors.NetworkException: Disconnected from node 2. Going to request metadata update now",
        "Node -1 disconnected.", "Connection to node 2 could not be established. Broker may not be "
        "available.", "Cancelled in-flight PRODUCE request with correlation id 13 due to node 1 being "
        "disconnected (elapsed time since creation: 2076ms, elapsed time since send: 1ms)",
        " (org.apache.kafka.clients.NetworkClient)", " (com.example.App)", "\n", " ",
    ]
)  # fmt: skip


@given(
    st.lists(st.lists(PIECES, max_size=6).map("".join), max_size=6),
    st.sampled_from([None, "Europe/Berlin"]),
)
@settings(max_examples=300, deadline=None)
def test_any_line_is_read_the_same(texts, zone):
    fast, slow = both(texts, zone)
    assert fast == slow
