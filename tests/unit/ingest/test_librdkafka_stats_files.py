"""Files of librdkafka's statistics that grow, are torn and rotated under agents that die."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter

import pytest
from click.testing import CliRunner

from acktrail.cli import main
from acktrail.lake import Lake
from acktrail.operate.probes.files import files_probe
from acktrail.settings.sources import LibrdkafkaStatsSource
from ingest.registry import SourceContext, build_source
from ingest.sources.librdkafka_stats import document_of
from tests.unit.ingest.memory_lake import MemoryLake

START = 1_790_000_000


def line(number: int, retries: int, age_s: int | None = None, padding: int = 0) -> str:
    """What a client prints after *number* intervals."""
    partition = {"txmsgs": number * 10 + retries, "msgs": number * 10}
    return json.dumps(
        {
            "name": "web#producer-1",
            "client_id": "web",
            "type": "producer",
            "time": START + number * 5,
            "age": (number * 5 if age_s is None else age_s) * 1_000_000,
            "brokers": {"b:9092/1": {"name": "b:9092/1", "nodeid": 1, "waitresp_cnt": 1}},
            "topics": {"orders": {"topic": "orders", "partitions": {"0": partition}}},
            "padding": "x" * padding,
        }
    )


def source_of(tmp_path, **more):
    settings = LibrdkafkaStatsSource(
        kind="librdkafka_stats", name="s", host="app-1", paths=(f"{tmp_path}/*.jsonl",), **more
    )
    return build_source(settings, SourceContext("c"))


def totals(lake) -> list[tuple[int, float]]:
    """Time and retries of all topics together, as rows have them."""
    return sorted(
        ((row["at"].timestamp() - START) // 5, row["value"])
        for row in lake.rows
        if row["metric"].endswith("record_retry_total") and "topic" not in dict(row["labels"])
    )


def drain(source, lake) -> Counter[str]:
    dropped: Counter[str] = Counter()
    for batch in source.poll(0):
        assert batch.received == batch.rows.num_rows + sum(batch.dropped.values())
        lake.append(batch.table, batch.rows, batch.positions)
        source.committed(batch)
        dropped.update(batch.dropped)
    return dropped


@pytest.mark.parametrize("seed", range(4))
def test_growing_torn_renamed_and_read_by_agents_that_die(tmp_path, seed):
    choose = random.Random(seed)
    count = 60
    retries = [0]
    for _ in range(count):
        retries.append(retries[-1] + choose.choice((0, 0, 3)))
    lines = [line(n, retries[n], padding=choose.choice((0, 5000))) for n in range(1, count + 1)]
    text = ("\n".join(lines) + "\n").encode()
    path = tmp_path / "web.jsonl"
    path.write_bytes(b"")
    lake = MemoryLake()
    source = source_of(tmp_path)
    source.open(lake)
    written = 0
    while True:
        if written < len(text):
            step = choose.randint(1, 20_000)
            with path.open("ab") as file:
                file.write(text[written : written + step])
            written += step
        for batch in source.poll(0):
            if choose.random() < 0.3:
                source.close()  # died with a batch in hand
                source = source_of(tmp_path)
                source.open(lake)
                break
            lake.append(batch.table, batch.rows, batch.positions)
            source.committed(batch)
        else:
            if written >= len(text):
                break
        if choose.random() < 0.1:
            path = path.rename(tmp_path / f"renamed-{choose.random()}.jsonl")
    source.close()
    assert totals(lake) == [(n, retries[n]) for n in range(1, count + 1)]
    series = {row["series"] for row in lake.rows if row["metric"].endswith("retry_total")}
    assert len(series) == 2, "of all topics and of one, each one series from beginning to end"


def test_a_document_torn_by_a_crash_costs_itself_alone(tmp_path):
    path = tmp_path / "web.jsonl"
    torn = line(2, 0)[:70]
    path.write_text(f"{line(1, 0)}\n{torn}{line(3, 4, age_s=1)}\nnot json\n[]\n{line(4, 4, 6)}\n")
    lake = MemoryLake()
    source = source_of(tmp_path)
    source.open(lake)
    assert drain(source, lake) == {"not_json": 2}
    assert totals(lake) == [(1, 0), (3, 4), (4, 4)]
    sessions = {dict(row["labels"])["session"] for row in lake.rows}
    assert len(sessions) == 2, "the totals of the restarted client do not go on from before"
    assert {row["instance"] for row in lake.rows} == {"app-1:statistics"}


def test_rotation_by_renaming_and_compressing_loses_and_doubles_nothing(tmp_path):
    path = tmp_path / "web.jsonl"
    lake = MemoryLake()
    source = source_of(tmp_path)
    source.open(lake)
    path.write_text("".join(f"{line(n, n, padding=70_000)}\n" for n in range(1, 4)))
    drain(source, lake)
    with path.open("a") as out:
        out.write(f"{line(4, 4)}\n")
    rotated = path.rename(tmp_path / "web.jsonl.1")
    path.write_text(f"{line(5, 5, padding=70_000)}\n")
    drain(source, lake)
    source.close()
    with gzip.open(tmp_path / "web.jsonl.1.gz", "wb") as packed:
        packed.write(rotated.read_bytes())
    rotated.unlink()
    source = source_of(tmp_path)
    source.open(lake)
    with path.open("a") as out:
        out.write(f"{line(6, 6)}\n")
    drain(source, lake)
    source.close()
    assert totals(lake) == [(n, n) for n in range(1, 7)]


def test_a_document_longer_than_a_block(tmp_path):
    path = tmp_path / "web.jsonl"
    path.write_text(f"{line(1, 1)}\n{line(2, 2, padding=3_000_000)}\n{line(3, 3)}\n")
    lake = MemoryLake()
    source = source_of(tmp_path)
    source.open(lake)
    for _ in range(3):
        assert not drain(source, lake)
    source.close()
    assert totals(lake) == [(1, 1), (2, 2), (3, 3)]


@pytest.mark.parametrize("before", ["", "2026-11-19 INFO stats: ", '{"name": "torn", "x": {'])
def test_what_stands_before_a_document_is_left_out(before):
    found = document_of((before + line(1, 1)).encode())
    assert found is not None
    assert found["client_id"] == "web"


@pytest.mark.parametrize("text", [b"", b"[1]", b"{", b'"x"', b"\xff\xfe", b"[" * 100_000])
def test_what_is_no_document(text):
    assert document_of(text) is None


def test_doctor_says_whether_there_are_statistics_in_the_file(tmp_path):
    settings = LibrdkafkaStatsSource(
        kind="librdkafka_stats", name="s", paths=(f"{tmp_path}/*.jsonl",)
    )

    def remark() -> str:
        (row,) = files_probe(settings).run()
        return f"{row.state}: {row.remark}"

    assert "matches no file" in remark()
    (tmp_path / "web.jsonl").write_text("2026-11-19 INFO started\n")
    assert "stats_cb" in remark()
    (tmp_path / "web.jsonl").write_text(f"{line(1, 1)}\n")
    assert remark() == "ok: 1 file, all readable"


def test_what_init_writes_is_read(tmp_path):
    config, stats = tmp_path / "acktrail.toml", tmp_path / "web.jsonl"
    stats.write_text(f"{line(1, 1)}\n{line(2, 3)}\n")
    words = ["init", str(config), "--cluster", "c", "--lake", str(tmp_path / "lake"), "--no-kafka"]
    words += ["--no-logs", "--no-audits", "--no-alertmanager", "--statistics", str(stats)]
    done = CliRunner().invoke(main, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "not_collected: [logs, audits]" in (tmp_path / "policy.yaml").read_text()
    done = CliRunner().invoke(
        main, ["agent", "--once", "--config", str(config)], catch_exceptions=False
    )
    assert done.exit_code == 0, done.output
    from acktrail.contracts.bronze import METRIC_SAMPLES

    assert Lake(tmp_path / "lake").read(METRIC_SAMPLES).num_rows > 0
