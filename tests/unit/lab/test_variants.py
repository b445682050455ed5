"""Variants of a recording: wrong clocks, thinned answers, cut views, and what is left out."""

from __future__ import annotations

import json

import pytest

from lab.shifted_times import line_time, shift_log, shift_output
from lab.variants import FULL, Variant, cut_log, derive, thin, variants_of

BEGAN = 1_794_814_400_000
"""2026-11-16T07:33:20Z."""


def at(second: float) -> int:
    return BEGAN + int(second * 1000)


def lines(*rows) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def ack(second, seq):
    return {"timestamp": at(second), "name": "producer_send_success", "value": f"7.{seq}"}


def state(second, offset):
    return {"asked_ms": at(second) - 5, "at_ms": at(second), "topic": "t", "partition": 0,
            "latest_offset": offset}  # fmt: skip


@pytest.fixture
def evidence(tmp_path):
    """A minute of a producer and a consumer that were looked at every ten seconds."""
    run = tmp_path / "run"
    scenario = {
        "name": "n", "began_at_ms": BEGAN, "ended_at_ms": at(60), "topics": [{"name": "t"}],
        "producers": [{"name": "pay", "host": "pay-1", "kind": "java"}],
        "consumers": [{"name": "bill", "host": "bill-1", "kind": "python", "group": "g"}],
    }  # fmt: skip
    outputs = {
        "verifiable/producer-pay.jsonl": lines(*(ack(s, s) for s in range(0, 60, 10))),
        "python/bill.jsonl": lines(*({"timestamp": at(s), "n": 1} for s in range(5, 65, 10))),
    }
    files = {
        "scenario.json": json.dumps(scenario),
        "faults.json": "[]",
        **outputs,
        "cluster/states.jsonl": lines(*(state(s, s) for s in range(0, 60, 4))),
        "cluster/groups.jsonl": lines(*({**state(s, 0), "group": "g"} for s in range(0, 60, 4))),
        "cluster/configs.jsonl": lines({"at_ms": at(0), "settings": {}}),
        "metrics/pay-1.jsonl": lines({"at_ms": at(1)}, {"at_ms": at(41)}),
        "logs/pay-1/pay.log": "[2026-11-16 07:33:21,500] WARN one\n  goes on\n"
        "[2026-11-16 07:34:11,500] WARN two\n",
        "logs/bill-1/bill.log": "%4|1794814401.250|FAIL|x| gone\n",
        "logs/kafka-1/server.log": "[2026-11-16 07:33:30,000] INFO broker\n",
        "scan/t.jsonl": lines({"scan": "began", "at_ms": at(55)}, {"offset": 0, "partition": 0},
                              {"scan": "ended", "at_ms": at(56)}),
        "live/log_scan.jsonl": lines({"received_ms": at(30), "v": 1, "reports": []}),
        "truth/truth.json": "{}",
    }  # fmt: skip
    sizes = {name: [len(line) for line in text.splitlines(keepends=True)]
             for name, text in outputs.items()}  # fmt: skip
    received = [
        {"at_ms": at(10 * n + 7), "sizes": {name: sum(of[: n + 1]) for name, of in sizes.items()}}
        for n in range(6)
    ]
    files["receipts.jsonl"] = lines(*received)
    for name, text in files.items():
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).write_text(text)
    return run


@pytest.fixture
def made(evidence, tmp_path):
    def made(name):
        (variant,) = (v for v in variants_of(evidence) if v.name == name)
        derive(evidence, variant, tmp_path / "variant")
        return tmp_path / "variant"

    return made


def files(run):
    return {p.relative_to(run).as_posix(): p.read_text() for p in run.rglob("*") if p.is_file()}


def test_every_kind_is_there(evidence):
    variants = variants_of(evidence)
    assert variants[0] == Variant(FULL)
    assert len({v.name for v in variants}) == len(variants)
    clocks = [v for v in variants if "pay" in v.clocks_s]
    assert {v.clocks_s["pay"] for v in clocks} == {15, -15, 90, -90, 3600, -3600}
    assert [v.clocks_s["pay"] for v in clocks if v.clocks_from_ms] == [3600, -3600]
    others = [v.clocks_s for v in variants if v.clocks_s and v not in clocks]
    assert others == [{name: s} for name in ("bill", "kafka-1") for s in (90, -90)]
    assert [v.until_ms for v in variants if v.until_ms] == [at(20), at(40)]
    assert {v.thinned_s for v in variants if v.thinned_s} == {30, 300}


def test_the_full_one_is_the_recording(evidence, made):
    all_of_it = files(evidence)
    assert files(made(FULL)) == {
        name: text
        for name, text in all_of_it.items()
        if name not in ("truth/truth.json", "faults.json")
    }


@pytest.mark.parametrize(("by_s", "hour"), [(15, "07:33:36"), (-3600, "06:33:21")])
def test_a_wrong_clock_is_in_all_that_the_client_wrote_and_in_nothing_else(
    evidence, made, by_s, hour
):
    before, after = files(evidence), files(made(f"clock of pay {by_s:+} s"))
    assert after.pop("verifiable/producer-pay.jsonl") == lines(
        *(ack(s + by_s, s) for s in range(0, 60, 10))
    )
    assert after["logs/pay-1/pay.log"].startswith(f"[2026-11-16 {hour},500] WARN one\n  goes on\n")
    del after["logs/pay-1/pay.log"]
    assert after == {name: before[name] for name in after}


def test_a_clock_that_jumps_is_right_before(evidence, made):
    fault = {"fault": "kill_broker", "target": "kafka-1", "phase": "start", "at_ms": at(20)}
    (evidence / "faults.json").write_text(json.dumps([fault]))
    before, after = files(evidence), files(made("clocks jump -3600 s"))
    acks = [ack(s if s < 20 else s - 3600, s) for s in range(0, 60, 10)]
    assert after["verifiable/producer-pay.jsonl"] == lines(*acks)
    assert after["logs/pay-1/pay.log"] == (
        "[2026-11-16 07:33:21,500] WARN one\n  goes on\n[2026-11-16 06:34:11,500] WARN two\n"
    )
    assert after["python/bill.jsonl"] == before["python/bill.jsonl"]


@pytest.mark.parametrize(
    ("whose", "changed"),
    [
        ("groups", ["logs/bill-1/bill.log", "python/bill.jsonl"]),
        ("brokers", ["logs/kafka-1/server.log"]),
    ],
)
def test_clocks_of_others(evidence, made, whose, changed):
    before, after = files(evidence), files(made(f"clocks of {whose} +90 s"))
    assert sorted(name for name, text in after.items() if text != before[name]) == changed


@pytest.mark.parametrize(
    ("every_s", "left"), [(30, [0, 32]), (300, [0])]
)  # the answers of a run of a minute
def test_thinned(made, every_s, left):
    after = files(made(f"answers every {every_s} s"))
    assert after["cluster/states.jsonl"] == lines(*(state(s, s) for s in left))
    groups = [json.loads(line) for line in after["cluster/groups.jsonl"].splitlines()]
    assert [row["at_ms"] for row in groups] == [at(s) for s in left]


def test_each_place_and_group_is_thinned_by_itself():
    rows = [{**state(s, s), "partition": p} for s in (0, 4, 30) for p in (0, 1)]
    kept = [json.loads(line) for line in thin(lines(*rows).encode(), 30).splitlines()]
    assert [(row["partition"], row["latest_offset"]) for row in kept] == [
        (0, 0), (1, 0), (0, 30), (1, 30),
    ]  # fmt: skip


def test_asked_during_the_run_there_is_what_was_received_by_then(made):
    after = files(made("asked after 40 s"))
    assert json.loads(after["scenario.json"])["ended_at_ms"] == at(40)
    # The look at 37 s is the last one: it took what was printed before it.
    assert after["verifiable/producer-pay.jsonl"] == lines(*(ack(s, s) for s in (0, 10, 20, 30)))
    assert len(after["python/bill.jsonl"].splitlines()) == 4
    assert after["cluster/states.jsonl"] == lines(*(state(s, s) for s in range(0, 41, 4)))
    assert after["metrics/pay-1.jsonl"] == lines({"at_ms": at(1)})
    assert after["logs/pay-1/pay.log"].endswith("  goes on\n")
    assert "scan/t.jsonl" not in after  # it ended later
    assert after["live/log_scan.jsonl"]
    assert after["receipts.jsonl"].count("\n") == 4


@pytest.mark.parametrize(
    ("what", "gone"),
    [
        ("states", ["cluster/states.jsonl"]),
        ("groups", ["cluster/groups.jsonl"]),
        ("configs", ["cluster/configs.jsonl"]),
        ("broker logs", ["logs/kafka-1/server.log"]),
        ("client logs", ["logs/bill-1/bill.log", "logs/pay-1/pay.log"]),
        ("metrics", ["metrics/pay-1.jsonl"]),
        ("scans", ["live/log_scan.jsonl", "scan/t.jsonl"]),
        ("final scan", ["scan/t.jsonl"]),
        ("live scan", ["live/log_scan.jsonl"]),
        ("producer reports", ["verifiable/producer-pay.jsonl"]),
        ("consumer reports", ["python/bill.jsonl"]),
        ("heartbeats", []),  # rows of the reader, not files
    ],
)
def test_one_kind_of_evidence_is_left_out(evidence, made, what, gone):
    before, after = files(evidence), files(made(f"no {what}"))
    assert sorted(set(before) - set(after)) == sorted([*gone, "faults.json", "truth/truth.json"])
    assert after == {name: before[name] for name in after}


def test_a_recording_without_receipts_has_them_before_its_clocks_are_wrong(evidence, made):
    (evidence / "receipts.jsonl").unlink()
    after = files(made("clock of pay +3600 s"))
    times = [json.loads(line)["at_ms"] for line in after["receipts.jsonl"].splitlines()]
    assert times == [at(s) for s in (1, 6, 11, 16, 21, 26, 31, 36, 41, 46, 51, 56)]


def test_no_line_gets_longer():
    output = (
        b'{"timestamp":1794814464082,"value":"1.2","timestamp":5}\n{"time_ms": 1794814464082}\n'
    )
    log = b"[2026-11-16 07:33:21,500] [2026-01-01 00:00:00,000]\n%3|1794814401.250|FAIL|x\n"
    for by_ms in (15_000, -3_600_000, 1):
        assert len(shift_output(output, by_ms)) == len(output)
        assert len(shift_log(log, by_ms)) == len(log)
        assert shift_output(shift_output(output, by_ms), -by_ms) == output
        assert shift_log(shift_log(log, by_ms), -by_ms) == log
        shifted = shift_log(log, by_ms).splitlines()
        was = log.splitlines()
        assert [line_time(s) - line_time(w) for s, w in zip(shifted, was, strict=True)] == [
            by_ms, by_ms,
        ]  # fmt: skip
    assert b"[2026-01-01 00:00:00,000]" in shift_log(log, 15_000)


def test_lines_that_go_on_a_record_are_cut_with_it():
    log = b"  older\n[2026-11-16 07:33:21,500] a\n b\n[2026-11-16 07:33:22,000] c\n d\n"
    assert cut_log(log, at(1.5)) == log[: log.index(b"[2026-11-16 07:33:22")]
    assert cut_log(log, at(2)) == log
