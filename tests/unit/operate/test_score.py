"""The score: recall per id, cause per range, what nobody could know apart."""

from __future__ import annotations

import json

import pytest

from lab.score import BEGIN, END, put_into_page, score, totals


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
    assert got.false_losses == 2  # 4 is in the log; g received 0
    assert (got.ranges, got.cause_right, got.wrong_causes) == (2, 1, {"b → z": 1})
    assert (got.duplicates, got.duplicates_found, got.unavailable_s) == (1, 1, 1.5)
    total = totals([got, got])
    assert (total["lost"], total["recall"], total["cause_right_ratio"]) == (8, 0.75, 0.5)
    page = put_into_page(f"before\n{BEGIN}\nold\n{END}\nafter\n", [got])
    assert "| n | 10 | 4 | 3 | 2 | 1 |" in page
    assert page.startswith("before\n")
    assert page.endswith("after\n")
    assert "old" not in page
