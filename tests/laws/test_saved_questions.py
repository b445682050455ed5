"""Every saved question, run on the recorded incident, answers what its truth says."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from acktrail.contracts.arrow import rows
from acktrail.contracts.gold import DELIVERY_LEDGER, VERDICT_CHANGES
from acktrail.contracts.runs import COVERAGE
from acktrail.contracts.silver import CLIENT_CONFIGS, UNREAD_RECORDS
from acktrail.errors import UsageError
from acktrail.lake import Lake
from pipelines.adhoc import saved
from pipelines.adhoc.ask import Asker
from tests.laws.incident import AS_OF, INCIDENT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TRUTH = json.loads((INCIDENT / "truth/truth.json").read_text())["sums"]
SAVED = saved.questions()
DAY = f"{AS_OF:%F}"
LOST = {
    name: each["lost_after_ack"] + each["lost_told"] + each["lost_silent"]
    for name, each in TRUTH.items()
}
Rows = list[dict[str, Any]]


class Ask:
    """Asks saved questions of one lake."""

    def __init__(self, session: SparkSession, lake: Lake) -> None:
        self._asker = Asker(session, lake)

    def __call__(self, name: str, **given: str) -> Rows:
        question = SAVED[name]
        answer = self._asker.ask(question.text, parameters=question.values(given))
        found: Rows = answer.rows.to_pylist()
        return found


@pytest.fixture(scope="module")
def ask(spark: SparkSession, whole_lake: Lake) -> Ask:
    """Of the incident."""
    return Ask(spark, whole_lake)


@pytest.fixture(scope="module")
def damaged(spark: SparkSession, whole_lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Ask:
    """Of the incident, with one more row of each thing that the incident has none of."""
    lake = Lake(tmp_path_factory.mktemp("damaged"))
    for table in (DELIVERY_LEDGER, COVERAGE, CLIENT_CONFIGS):
        lake.append(table, whole_lake.read(table))
    lake.create(UNREAD_RECORDS)
    ledger = whole_lake.read(DELIVERY_LEDGER).to_pylist()
    refunds = next(r for r in ledger if r["topic"] == "refunds" and not r["group"])
    billing = next(r for r in ledger if r["group"] == "billing")
    odd = [
        {**refunds, "session": "odd", "duplicates": 7, "ghosts": 3},
        {**billing, "session": "odd", "skipped_by_consumer": 5, "expired_before_read": 2},
    ]
    lake.append(DELIVERY_LEDGER, rows(DELIVERY_LEDGER, odd))
    gap = {**whole_lake.read(COVERAGE).to_pylist()[0], "subject": "gone", "missing": "no scan"}
    lake.append(COVERAGE, rows(COVERAGE, [gap]))
    change = {
        "cluster": "law", "session": "s", "topic": "payments", "group": "", "first_seq": 10,
        "last_seq": 19, "before_state": "pending", "after_state": "delivered", "changed_at": AS_OF,
    }  # fmt: skip
    new = {**change, "first_seq": 20, "before_state": None, "after_state": "lost_after_ack"}
    lake.append(VERDICT_CHANGES, rows(VERDICT_CHANGES, [change, new]))
    return Ask(spark, lake)


def _by(key: str, found: Rows) -> Mapping[str, dict[str, Any]]:
    return {row[key]: row for row in found}


def test_there_are_as_many_as_promised_and_each_has_a_test() -> None:
    assert len(SAVED) >= 15
    own = Path(__file__).read_text()
    assert [name for name in SAVED if f'"{name}"' not in own] == []


def test_what_was_lost(ask: Ask) -> None:
    wanted = {TRUTH[name]["topic"]: lost for name, lost in LOST.items() if lost}
    assert wanted
    found = ask("lost-by-cause")
    assert {row["topic"]: row["messages"] for row in found} == wanted
    assert _by("topic", found)["payments"]["cause"] == "acks_1_leader_change"
    assert [row["topic"] for row in ask("lost-by-cause", topic="pay%")] == ["payments"]
    that_day = ask("lost-yesterday", day=DAY)
    assert {row["topic"]: row["messages"] for row in that_day} == wanted
    assert ask("lost-yesterday", day="2020-01-01") == []


def test_who_retries(ask: Ask) -> None:
    found = ask("retries-this-week", since=DAY)
    lines = {row["client_id"]: row["retry_lines"] for row in found}
    assert lines.keys() == TRUTH.keys(), "each of them was cut off from a broker"
    assert list(lines.values()) == sorted(lines.values(), reverse=True)
    assert _by("client_id", found)["refunds-api"]["attempts_left_min"] == 0
    assert ask("retries-this-week", since="2999-01-01") == []


def test_failed_produce_requests_and_who_was_hit(ask: Ask) -> None:
    found = _by("topic", ask("failed-produce-requests"))
    assert {topic: row["clients"] for topic, row in found.items()} == {
        "orders": ["orders-api"],
        "refunds": ["refunds-api"],
        "shipments": ["shipments-api"],
    }
    assert all("NOT_ENOUGH_REPLICAS" in row["errors"] for row in found.values())
    assert len(ask("failed-produce-requests", topic="orders", minutes="5")) == 1


def test_guarantees(ask: Ask) -> None:
    (found,) = ask("weak-guarantees")
    assert (found["client_id"], found["acks"], found["guarantee"]) == ("payments-api", "1", "none")


def test_batches_and_partitions(ask: Ask) -> None:
    batches = _by("topic", ask("messages-per-request"))
    assert batches["clicks"]["messages"] <= TRUTH["clicks-tracker"]["records"]
    assert batches["clicks"]["messages_per_request"] > batches["shipments"]["messages_per_request"]
    skew = _by("topic", ask("partition-skew"))
    assert skew["orders"]["messages"] == TRUTH["orders-api"]["records"]
    assert skew["orders"]["times_the_average"] == 2.0, "one of two partitions got all"
    assert skew["clicks"]["messages"] == TRUTH["clicks-tracker"]["records"]


def test_latency(ask: Ask) -> None:
    found = _by("client_id", ask("latency-by-hour"))
    assert found.keys() == TRUTH.keys()
    assert all(0 < row["request_avg_ms"] < row["request_max_ms"] for row in found.values())
    assert ask("latency-by-hour", client="orders%")[0]["client_id"] == "orders-api"


def test_order_duplicates_and_ghosts(ask: Ask, damaged: Ask) -> None:
    steps = {row["client_id"]: row["steps_back"] for row in ask("out-of-order")}
    assert steps == {n: each["out_of_order"] for n, each in TRUTH.items() if each["out_of_order"]}
    assert ask("out-of-order")[0]["idempotent"] is False
    assert not any(each["duplicated"] or each["ghosts"] for each in TRUTH.values())
    for name, count in (("idempotent-duplicates", 7), ("ghosts", 3)):
        assert ask(name) == []
        (found,) = damaged(name)
        assert found["client_id"] == "refunds-api"
        assert found[name.removeprefix("idempotent-")] == count


def test_groups_that_skipped(ask: Ask, damaged: Ask) -> None:
    assert not any(sum(each["missed"].values()) for each in TRUTH.values())
    assert ask("skipped-by-groups") == []
    (found,) = damaged("skipped-by-groups")
    assert (found["group"], found["skipped"], found["expired_before_read"]) == ("billing", 5, 2)
    assert damaged("skipped-by-groups", group="analytics") == []


def test_missing_evidence(damaged: Ask) -> None:
    (found,) = damaged("evidence-missing")
    assert (found["subject"], found["what"], found["times"]) == ("gone", "no scan", 1)


def test_budgets(ask: Ask) -> None:
    gone = {row["client_id"] for row in ask("close-budgets") if row["ended_by"] == "exhausted"}
    assert gone == {name for name, each in TRUTH.items() if each["lost_told"]} == {"refunds-api"}
    burning = {row["client_id"] for row in ask("still-retrying")}
    assert burning == {name for name, each in TRUTH.items() if not each["complete"]}
    few = ask("close-budgets", attempts="0", seconds="-1000000")
    assert {row["client_id"] for row in few} == {"refunds-api"}


def test_leaders(ask: Ask) -> None:
    found = ask("leader-changes", topic="payments")
    assert {(row["partition"], row["before"], row["leader"]) for row in found} >= {(0, 1, 2)}
    assert any("NETWORK_EXCEPTION" in row["errors"] for row in found)


def test_alerts(spark: SparkSession, tmp_path: Path) -> None:
    before = Path(__file__).parents[1] / "golden" / "before_rename" / "lake"
    lake = shutil.copytree(before, tmp_path / "lake")
    found = Ask(spark, Lake(lake))("alerts-by-owner")
    assert found
    assert all(row["owner"] and row["alerts"] > 0 for row in found)
    assert "retry_budget_left" in {row["check"] for row in found}
    assert Ask(spark, Lake(lake))("alerts-by-owner", owner="nobody") == []


def test_corrected_verdicts(damaged: Ask) -> None:
    (found,) = damaged("corrected-verdicts")
    assert (found["messages"], found["before_state"], found["after_state"]) == (
        10,
        "pending",
        "delivered",
    )


def test_a_users_own_questions(tmp_path: Path) -> None:
    mine = tmp_path / "mine.sql"
    mine.write_text("-- What is mine?\n-- :x  a number\n-- :y  a word = \nSELECT :x\n")
    (tmp_path / "ghosts.sql").write_text("-- Mine instead?\nSELECT 1\n")
    known = saved.questions([tmp_path])
    assert known.keys() == SAVED.keys() | {"mine"}
    assert known["ghosts"].question == "Mine instead?"
    assert known["mine"].values({"x": "1"}) == {"x": "1", "y": ""}
    for wrong, said in (({}, "--param x=…"), ({"x": "1", "z": "1"}, "no parameter z. It has: x")):
        with pytest.raises(UsageError, match=said):
            known["mine"].values(wrong)
    with pytest.raises(UsageError, match=r"Did you mean ghosts\?"):
        saved.question_named("gosts", known)
    mine.write_text("SELECT 1\n")
    with pytest.raises(UsageError, match="the first line must be the question"):
        saved.questions([tmp_path])
    with pytest.raises(UsageError, match="is not a directory"):
        saved.questions([tmp_path / "none"])
