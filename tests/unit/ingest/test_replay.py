"""A recorded run in the lake says of every message what the truth says, once."""

from __future__ import annotations

import gzip
import json
import shutil
from collections import defaultdict
from pathlib import Path

import pytest

import acktrail
from acktrail.audit.wire import BLOCK_BITS, decode_runs
from acktrail.contracts.bronze import AUDIT_REPORTS, BRONZE, LOG_RECORDS
from acktrail.errors import ConfigError
from acktrail.lake import Lake
from ingest.replay import replay

RECORDING = Path(acktrail.__file__).parent / "demo" / "incident"


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    made = Lake(tmp_path_factory.mktemp("lake"))
    replay(RECORDING, made, "demo")
    return made


def placed(lake: Lake, tier: str) -> dict[str, dict[int, list[int | None]]]:
    """Session to seq to the offsets it was seen at."""
    found = defaultdict(lambda: defaultdict(list))
    for row in lake.read(AUDIT_REPORTS).to_pylist():
        if row["tier"] == tier:
            runs = decode_runs(row["ids"])
            for i in range(runs.starts.size):
                for k in range(int(runs.lengths[i])):
                    seq = (row["block"] << BLOCK_BITS) + int(runs.starts[i]) + k
                    at = None if runs.offsets is None else int(runs.offsets[i]) + k
                    found[row["session"]][seq].append(at)
    return found


def test_every_message_is_where_the_truth_says(lake):
    scenario = json.loads((RECORDING / "scenario.json").read_text())
    sessions = {p["name"]: f"vp-{p['prefix']}" for p in scenario["producers"]}
    acked, in_log, sent = (placed(lake, t) for t in ("acked", "in_log", "sent"))
    failed, unknown = placed(lake, "failed"), placed(lake, "indeterminate")
    delivered = placed(lake, "delivered")
    checked = 0
    with gzip.open(RECORDING / "truth" / "truth.jsonl.gz", "rt") as lines:
        for message in map(json.loads, lines):
            session, seq = sessions[message["producer"]], message["seq"]
            assert sorted(in_log[session].get(seq, [])) == sorted(o for _, o in message["in_log"])
            told = message["told"]
            assert acked[session].get(seq, []) == (
                [message["told_offset"]] if told == "acked" else []
            )
            assert (seq in failed[session] or seq in unknown[session]) == (told == "failed")
            assert len(delivered[session].get(seq, [])) == sum(message["received"].values())
            if told != "nothing":
                assert seq in sent[session]
            checked += 1
    assert checked > 9_000


def test_again_writes_nothing(lake):
    before = {table.name: lake.version(table) for table in BRONZE}
    assert replay(RECORDING, lake, "demo") == {}
    assert {table.name: lake.version(table) for table in BRONZE} == before


def test_every_kind_of_evidence_is_there(lake):
    for table in BRONZE:
        assert lake.read(table, columns=["cluster"]).num_rows > 0, table.name
    hosts = set(lake.read(LOG_RECORDS, columns=["host"]).column("host").to_pylist())
    assert {"kafka-1", "kafka-2", "kafka-3", "payments-api-1"} <= hosts


def test_a_run_that_goes_on_is_read_on(tmp_path):
    """A replay of half a producer's file, then of the whole: as if read at once."""
    evidence = tmp_path / "run"
    shutil.copytree(RECORDING, evidence)
    for folder in ("logs", "metrics", "scan", "cluster", "python"):
        shutil.rmtree(evidence / folder)
    packed = evidence / "verifiable" / "producer-payments-api.jsonl.gz"
    whole = gzip.decompress(packed.read_bytes())
    plain = packed.with_suffix("")
    packed.unlink()
    lake, once = Lake(tmp_path / "lake"), Lake(tmp_path / "once")
    plain.write_bytes(whole[: len(whole) // 2])
    replay(evidence, lake, "demo")
    plain.write_bytes(whole)
    replay(evidence, lake, "demo")
    replay(evidence, once, "demo")
    for tier in ("acked", "sent"):
        halves, at_once = placed(lake, tier), placed(once, tier)
        assert {s: {k: set(v) for k, v in ids.items()} for s, ids in halves.items()} == {
            s: {k: set(v) for k, v in ids.items()} for s, ids in at_once.items()
        }


def test_another_directory_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"scenario\.json"):
        replay(tmp_path, Lake(tmp_path / "lake"), "demo")
