"""The score: recall per id, cause per range, what nobody could know apart."""

from __future__ import annotations

import json

import pytest

from acktrail.errors import LabError
from lab.score import (
    BEGIN,
    END,
    Score,
    put_into_page,
    require_clients_worked,
    score,
    table,
    totals,
)
from lab.variant_score import VariantScore, by_kind, read_result, write_result
from lab.variant_score import table as variants_table


@pytest.fixture
def evidence(tmp_path):
    """Ids 0-9: 2, 3 and 6 lost for one cause, 8 for another, 9 unknowable."""
    causes = {2: "a", 3: "a", 6: "a", 8: "b", 9: "b"}
    (tmp_path / "truth").mkdir()
    with (tmp_path / "truth/truth.jsonl").open("w") as file:
        for seq in range(10):
            lost = seq in causes
            message = {
                "producer": "p", "seq": seq, "lost": lost, "cause": causes.get(seq),
                "in_log": [] if lost else [[0, seq]], "received": {} if lost else {"g": 1},
            }  # fmt: skip
            file.write(json.dumps(message) + "\n")
    sums = {"records": 6, "in_log": 5, "out_of_order": 1, "ghosts": 0, "silence_s": 1.5}
    (tmp_path / "truth/truth.json").write_text(json.dumps({"sums": {"p": sums}}))
    scenario = {"name": "n", "producers": [{"name": "p", "prefix": "7"}]}
    (tmp_path / "scenario.json").write_text(json.dumps(scenario))
    return tmp_path


def loss(first, last, cause, group=""):
    return {
        "session": "vp-7", "group": group, "first_seq": first, "last_seq": last, "cause": cause,
    }  # fmt: skip


ACCOUNT = {
    "session": "vp-7", "group": "", "sent": 9, "pending": 1, "inconclusive": 0, "duplicates": 1,
    "out_of_order": 1, "ghosts": 0, "residual": 0,
}  # fmt: skip


def test_score(evidence):
    losses = [loss(2, 3, "a"), loss(4, 4, "a"), loss(8, 8, "z"), loss(0, 0, "a", group="g")]
    got = score(evidence, losses, [ACCOUNT, {**ACCOUNT, "group": "g"}])
    assert (got.sent, got.lost, got.found, got.unknowable) == (10, 4, 3, 1)
    assert (got.false_losses, got.false_skips) == (1, 1)  # 4 is in the log; g received 0
    assert (got.ranges, got.cause_right, got.wrong_causes) == (2, 1, {"b → z": 1})
    assert (got.duplicates, got.duplicates_found, got.unavailable_s) == (1, 1, 1.5)
    total = totals([got, got])
    assert (total["lost"], total["recall"], total["cause_right_ratio"]) == (8, 0.75, 0.5)
    page = put_into_page(f"before\n{BEGIN}\nold\n{END}\nafter\n", table([got]))
    assert "| n | 10 | 4 | 3 | 1 | 1 | 1 | 1 |" in page
    assert page.startswith("before\n")
    assert page.endswith("after\n")
    assert "old" not in page


@pytest.mark.parametrize(
    ("told", "in_log", "false"),
    [("failed", [], 0), ("failed", [[0, 1]], 1), ("acked", [], 1)],
)
def test_what_failed_with_its_transaction_may_be_called_lost(evidence, told, in_log, false):
    message = {
        "producer": "p", "seq": 0, "lost": False, "aborted": True, "told": told, "in_log": in_log,
        "received": {},
    }  # fmt: skip
    (evidence / "truth/truth.jsonl").write_text(json.dumps(message) + "\n")
    assert score(evidence, [loss(0, 0, "a")], [ACCOUNT]).false_losses == false


@pytest.mark.parametrize(
    ("case", "message", "claimed", "expected"),
    [
        # the truth of one message; what a loss of the group says; missed, found, false
        ("received", {"received": {"g": 1}, "in_log": [[0, 1]]}, True, (0, 0, 1)),
        ("never received", {"in_log": [[0, 1]]}, True, (1, 1, 0)),
        ("never received, not claimed", {"in_log": [[0, 1]]}, False, (1, 0, 0)),
        ("not in the log", {"lost": True, "cause": "a"}, True, (0, 0, 1)),
        ("skipped", {"in_log": [[0, 1]], "groups": {"g": "skipped"}}, True, (1, 1, 0)),
        ("expired", {"groups": {"g": "expired"}}, True, (1, 1, 0)),
        ("not owed", {"in_log": [[0, 1]], "groups": {"g": "before_start"}}, True, (0, 0, 1)),
        ("not read so far", {"in_log": [[0, 1]], "groups": {"g": "not_read"}}, True, (0, 0, 1)),
        ("aborted", {"in_log": [[0, 1]], "groups": {"g": "aborted"}}, True, (0, 0, 1)),
        ("of another topic", {"in_log": [[0, 1]], "groups": {"other": "received"}}, True,
         (0, 0, 1)),
    ],
)  # fmt: skip
def test_what_groups_missed(evidence, case, message, claimed, expected):
    whole = {"producer": "p", "seq": 0, "lost": False, "cause": None, "in_log": [], "received": {}}
    (evidence / "truth/truth.jsonl").write_text(json.dumps({**whole, **message}) + "\n")
    losses = [loss(0, 0, "consumer_reset", group="g")] if claimed else []
    got = score(evidence, losses, [{**ACCOUNT, "sent": 1}, {**ACCOUNT, "group": "g"}])
    assert (got.missed, got.missed_found, got.false_skips) == expected, case
    assert got.false_losses == 0


def test_a_loss_that_is_called_delivered_is_hidden(evidence):
    pending = {"first_seq": 6, "last_seq": 6}
    account = {**ACCOUNT, "findings": [pending], "reasons": [("not_covered", "1")]}
    got = score(evidence, [loss(2, 2, "a")], [account])
    assert (got.lost, got.found, got.hidden) == (4, 1, 2)  # 3 and 8; 6 is at least in doubt
    assert got.reasons == {"not_covered": 1}


def test_any_of_several_necessary_causes_is_right(evidence):
    path = evidence / "truth/truth.jsonl"
    messages = [json.loads(line) for line in path.read_text().splitlines()]
    for message in messages:
        message["causes"] = [message["cause"], "z"] if message["cause"] else []
    path.write_text("".join(json.dumps(m) + "\n" for m in messages))
    got = score(evidence, [loss(2, 3, "z"), loss(6, 6, "a"), loss(8, 8, "x")], [ACCOUNT])
    assert (got.ranges, got.cause_right, got.wrong_causes) == (3, 2, {"b or z → x": 1})


@pytest.mark.parametrize(
    ("handed_over", "consumer", "said"),
    [
        (3, '{"name":"partitions_assigned"}', None),
        (0, '{"name":"partitions_assigned"}', "the producer p sent nothing"),
        (3, '{"name":"startup_complete"}', "the group g was never given a partition"),
        (3, None, "the group g was never given a partition"),
    ],
)
def test_a_run_whose_clients_did_not_work_is_not_scored(tmp_path, handed_over, consumer, said):
    (tmp_path / "truth").mkdir()
    (tmp_path / "verifiable").mkdir()
    scenario = {
        "name": "n",
        "producers": [{"name": "p"}],
        "consumers": [{"name": "c", "group": "g"}, {"name": "d", "group": "g"}],
    }
    (tmp_path / "scenario.json").write_text(json.dumps(scenario))
    sums = {"sums": {"p": {"handed_over": handed_over}}}
    (tmp_path / "truth/truth.json").write_text(json.dumps(sums))
    if consumer is not None:
        (tmp_path / "verifiable/consumer-c.jsonl").write_text(consumer + "\n")
    if said is None:
        require_clients_worked(tmp_path)
    else:
        with pytest.raises(LabError, match=said):
            require_clients_worked(tmp_path)


def variant(kind, **counts):
    return VariantScore(f"{kind} {counts}", kind, Score("n", **counts))


def test_variants_are_added_up_by_kind():
    scores = [
        variant("one clock +15 s", known=50, pending=5, reasons={"not_covered": 5}),
        variant("full", known=100, lost=4, found=4, ranges=1, cause_right=1),
        variant("one clock +15 s", known=50, lost=4, found=3, inconclusive=1, reasons={"void": 1}),
        variant("asked during the run", known=10, lost=4, found=1, hidden=3, false_losses=1),
    ]
    kinds = {each.kind: each for each in by_kind(scores)}
    assert list(kinds) == ["full", "one clock +15 s", "asked during the run"]
    clock, during = kinds["one clock +15 s"], kinds["asked during the run"]
    assert (clock.views, clock.found, clock.undecided, clock.undecided_share) == (2, 3, 6, 0.06)
    assert (during.lost, during.hidden, during.false_losses) == (None, None, 1)
    rows = variants_table(scores).splitlines()
    assert rows[2] == "| full | 1 | 0 | 0 | 0 | 4 | 4 | 0 | 0 | 1 of 1 | 0.0% | - |"
    assert rows[3].endswith("| 6.0% | not_covered 83%, void 17% |")


def test_a_result_is_read_back_unless_other_code_made_it(tmp_path):
    scored = variant("full", sent=3, reasons={"void": 2}, warning_lead_s=1.5)
    path = tmp_path / "n" / "full.json"
    assert read_result(path, "this") is None
    write_result(path, "this", scored)
    assert read_result(path, "this") == scored
    assert read_result(path, "that") is None
