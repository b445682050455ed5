"""A verifiable file that grows under an agent that dies: each event once."""

from __future__ import annotations

import json
import random

import pytest

from acktrail.audit.wire import BLOCK_BITS, decode_runs
from acktrail.contracts.bronze import AUDIT_REPORTS
from acktrail.lake import Lake
from acktrail.settings.sources import VerifiableSource
from ingest.registry import SourceContext, build_source


def events(count: int, seed: int) -> bytes:
    choose = random.Random(seed)
    lines = [
        "note to people",
        json.dumps({"timestamp": 1_790_000_000_000, "name": "startup_complete"}),
    ]
    for seq in range(count):
        at = 1_790_000_000_000 + seq * 40
        fact = {"timestamp": at, "key": None, "value": f"9.{seq}", "topic": "orders"}
        if choose.random() < 0.1:
            lines.append(
                json.dumps(
                    {**fact, "name": "producer_send_error", "exception": "class a.B", "message": ""}
                )
            )
        else:
            place = {"partition": seq % 3, "offset": seq}
            lines.append(json.dumps({**fact, **place, "name": "producer_send_success"}))
    return ("\n".join(lines) + "\n").encode()


def account(lake: Lake) -> tuple[dict[str, dict[int, int]], int]:
    """Tier to seq to times seen, and the records counted."""
    seen: dict[str, dict[int, int]] = {"acked": {}, "indeterminate": {}}
    records = 0
    for row in lake.read(AUDIT_REPORTS).to_pylist():
        if row["tier"] in seen:
            records += row["records"]
            runs = decode_runs(row["ids"])
            for start, length in zip(runs.starts.tolist(), runs.lengths.tolist(), strict=True):
                for k in range(length):
                    seq = (row["block"] << BLOCK_BITS) + start + k
                    seen[row["tier"]][seq] = seen[row["tier"]].get(seq, 0) + 1
    return seen, records


@pytest.mark.parametrize("seed", range(2))
def test_growing_torn_renamed_and_read_by_agents_that_die(tmp_path, seed):
    choose = random.Random(seed)
    text = events(400, seed)
    path = tmp_path / "producer.jsonl"
    path.write_bytes(b"")
    settings = VerifiableSource(kind="verifiable", name="v", paths=(f"{tmp_path}/*.jsonl",))
    lake = Lake(tmp_path / "lake")
    source = build_source(settings, SourceContext("c"))
    source.open(lake)
    written = 0
    dropped = 0
    while True:
        if written < len(text):
            step = choose.randint(1, 4000)
            with path.open("ab") as file:
                file.write(text[written : written + step])
            written += step
        for batch in source.poll(0):
            assert batch.received == batch.rows.num_rows + sum(batch.dropped.values())
            if choose.random() < 0.3:
                source.close()  # died with a batch in hand
                source = build_source(settings, SourceContext("c"))
                source.open(lake)
                break
            lake.append(batch.table, batch.rows, batch.positions)
            source.committed(batch)
            dropped += batch.dropped.get("not_json", 0)
        else:
            if written >= len(text):
                break
        if choose.random() < 0.1:
            path = path.rename(tmp_path / f"renamed-{choose.random()}.jsonl")
    source.close()
    seen, records = account(lake)
    assert sorted([*seen["acked"], *seen["indeterminate"]]) == list(range(400))
    assert set(seen["acked"].values()) == {1}
    assert records == 400
    assert dropped == 1


def test_a_torn_last_line_waits(tmp_path):
    whole = events(30, 1)
    cut = whole.rindex(b"\n", 0, -1) + 5
    path = tmp_path / "a.jsonl"
    path.write_bytes(whole[:cut])
    settings = VerifiableSource(kind="verifiable", name="v", paths=(str(path),))
    lake = Lake(tmp_path / "lake")
    source = build_source(settings, SourceContext("c"))
    source.open(lake)

    def drain():
        for batch in source.poll(0):
            lake.append(batch.table, batch.rows, batch.positions)
            source.committed(batch)

    drain()
    assert account(lake)[1] == 29
    path.write_bytes(whole)
    drain()
    drain()
    assert account(lake)[1] == 30
    source.close()
