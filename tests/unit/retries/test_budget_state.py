"""One decision: `budgets` prints critical exactly where the check finds the chain."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from click.testing import CliRunner
from deltalake import write_deltalake
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from acktrail.answers.budgets import retry_thresholds
from acktrail.cli import main
from acktrail.cli.budgets import _row
from acktrail.contracts.arrow import rows
from acktrail.contracts.gold import RETRY_BUDGETS
from acktrail.lake import Lake
from acktrail.policy import Policy, read_policy
from acktrail.retries.budget import Budget
from acktrail.retries.fleet import Burning, Measured, fronts_of
from acktrail.retries.state import BudgetState, Thresholds, critical_at, state_of
from acktrail.window import hour_of
from expectations.domain.retries import ExpectRetryBudgetLeft
from expectations.suites import SUITES
from expectations.validate import Asked, validate

NOON = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
FOREVER = float("inf")


def moments(least: float, most: float) -> st.SearchStrategy[datetime]:
    """Few distinct whole seconds, so that edges are met, and any microsecond."""
    whole = st.integers(int(least), int(most)).map(float)
    some = st.floats(least, most, allow_nan=False)
    return st.one_of(whole, some).map(lambda s: NOON + timedelta(seconds=s))


def or_none(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), values)


ENDINGS = st.one_of(
    st.just((None, None)),
    st.tuples(
        moments(-60, 300), st.sampled_from(["recovered", "exhausted", "restarted", "ended_unknown"])
    ),
)


@st.composite
def budgets(draw: st.DrawFn) -> Budget:
    opened = draw(moments(-300, 20))
    ended_at, ended_by = draw(ENDINGS)
    return Budget(
        topic=draw(st.sampled_from(["pay", "orders", ""])),
        partition=draw(st.integers(0, 3)),
        chain=0,
        opened_at=opened,
        opened_by="retry",
        last_at=opened,
        quiet_at=draw(moments(-60, 300)),
        events=1,
        retries=None,
        attempts_left=draw(or_none(st.integers(0, 4))),
        delivery_timeout_ms=draw(or_none(st.sampled_from([0, 1_000, 20_000, 120_000, 10**10]))),
        exhausts_at_earliest=draw(or_none(moments(-60, 300))),
        exhausts_at_latest=draw(or_none(moments(-60, 400))),
        exhausted_by=draw(st.sampled_from(["attempts", "time", "unknown"])),
        confidence="bounded",
        error="NOT_ENOUGH_REPLICAS",
        retriable=True,
        category=None,
        node=None,
        records_at_stake=None,
        ended_at=ended_at,
        ended_by=ended_by,
        because="it is so",
        evidence=(),
        unknown=None,
    )


SET = st.dictionaries(
    st.sampled_from([f.name for f in fields(Thresholds)]),
    st.sampled_from([-1.0, 0.0, 0.5, 1.0, 3.0, 10.0, 85.0, 200.0, 1e12, FOREVER]),
    min_size=1,
)
RULE = st.fixed_dictionaries(
    {"set": SET},
    optional={
        "topics": st.sampled_from(["pay", "p*", "", "*"]),
        "clients": st.sampled_from(["c0", "c*", ["c1", "c2"]]),
        "clusters": st.sampled_from(["east", "w*"]),
        "groups": st.sampled_from(["reporting", "*"]),
    },
)
POLICIES = st.lists(RULE, max_size=3).map(lambda rules: {"thresholds": rules})


def numbered(found: list[Budget]) -> list[tuple[str, Budget]]:
    """Each with a client id; chains of one key are told apart by their number."""
    return [
        (f"c{n % 3}", Budget(**{**budget.__dict__, "chain": n})) for n, budget in enumerate(found)
    ]


def record(client: str, budget: Budget) -> dict[str, Any]:
    own = {"cluster": "east", "host": "app", "client_id": client, "evidence": []}
    return {**budget.__dict__, **own, "opened_hour": hour_of(budget.opened_at)}


def found_by_check(keys: tuple[str, ...]) -> set[int]:
    return {int(key.rpartition("/")[2]) for key in keys}


@given(st.lists(budgets(), min_size=1, max_size=8), POLICIES)
@settings(max_examples=200, deadline=None)
def test_budgets_prints_critical_exactly_where_the_check_finds_the_chain(found, raw) -> None:
    policy = Policy.model_validate(raw)
    at = retry_thresholds(policy)
    opened = [(c, b) for c, b in numbered(found) if b.opened_at <= NOON]
    burning = [Burning("east", "app", c, b, at("east", b.topic, c)) for c, b in opened]
    printed = {b.budget.chain for b in burning if _row(b, NOON)["state"] == "critical"}
    frame = rows(RETRY_BUDGETS, [record(c, b) for c, b in numbered(found)]).to_pandas()
    names = tuple(ExpectRetryBudgetLeft.thresholds)
    limits = (*policy.limits(names), ExpectRetryBudgetLeft.thresholds)
    check = ExpectRetryBudgetLeft(as_of=NOON.isoformat(), limits=limits)
    assert found_by_check(tuple(k for f in check.findings(frame) for k in f.keys)) == printed
    fleet = fronts_of(burning, Measured(), NOON)
    assert sum(front.critical for front in fleet) == len(printed)


@given(
    st.lists(budgets(), min_size=1, max_size=20),
    POLICIES,
    st.integers(-30, 200).map(lambda s: NOON + timedelta(seconds=s)),
)
@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_the_two_commands_agree_on_a_lake(tmp_path_factory, found, raw, as_of) -> None:
    place = tmp_path_factory.mktemp("agree")
    lake, file = Lake(place / "lake"), place / "policy.yaml"
    file.write_text(json.dumps(raw).replace("Infinity", ".inf"))
    listed = [record(c, b) for c, b in numbered(found)]
    write_deltalake(lake.path(RETRY_BUDGETS), rows(RETRY_BUDGETS, listed))
    words = ["budgets", "--lake", lake.uri, "--as-of", as_of.isoformat(), "--all", "--batches"]
    done = CliRunner().invoke(
        main, [*words, "--format", "json", "--set", f"alerts.policy={file}"], catch_exceptions=False
    )
    printed = [json.loads(line) for line in done.stdout.splitlines()]
    suites = [suite for suite in SUITES if suite.table is RETRY_BUDGETS]
    results = validate(suites, lake, Asked(as_of, read_policy(file), ""))
    (result,) = [r for r in results if r.check != "fits_its_contract"]
    keys = tuple(k for f in result.findings for k in f.keys)
    assert found_by_check(keys) == {r["chain"] for r in printed if r["state"] == "critical"}


@given(budgets(), SET)
@example(Budget(**{f.name: None for f in fields(Budget)} | {"opened_at": NOON, "quiet_at": NOON}),
         {"retry_warning_s": 1.0})  # fmt: skip
def test_critical_begins_when_it_says(budget: Budget, raw: dict[str, float]) -> None:
    thresholds = Thresholds(**raw)
    first = critical_at(budget, thresholds)
    if first is not None:
        assert first >= budget.opened_at
        assert state_of(budget, first, thresholds) is BudgetState.CRITICAL
        before = first - timedelta(microseconds=1)
        if before >= budget.opened_at:
            assert state_of(budget, before, thresholds) is not BudgetState.CRITICAL
    else:
        for second in range(-60, 300, 7):
            at = max(budget.opened_at, NOON + timedelta(seconds=second))
            assert state_of(budget, at, thresholds) is not BudgetState.CRITICAL


HIDE_YAML = """
import sys
sys.modules["yaml"] = None
from acktrail.cli import main
main(sys.argv[1:])
"""


@pytest.fixture
def one_chain(tmp_path) -> Lake:
    lake = Lake(tmp_path / "lake")
    budget = budget_ending_in(100)
    write_deltalake(lake.path(RETRY_BUDGETS), rows(RETRY_BUDGETS, [record("pay", budget)]))
    return lake


def budget_ending_in(seconds: float) -> Budget:
    given = {f.name: None for f in fields(Budget)}
    end = NOON + timedelta(seconds=seconds)
    told = {"exhausts_at_earliest": end, "exhausts_at_latest": end, "exhausted_by": "time"}
    opened = {"opened_at": NOON - timedelta(seconds=20), "opened_by": "retry", "last_at": NOON}
    place = {"topic": "pay", "partition": 0, "chain": 0, "events": 1, "evidence": ()}
    said = {"because": "it is so", "confidence": "bounded", "quiet_at": end}
    return Budget(**{**given, **told, **opened, **place, **said, "delivery_timeout_ms": 120_000})


def ask(lake: Lake, *words: str) -> subprocess.CompletedProcess[str]:
    asked = ["budgets", "--lake", lake.uri, "--as-of", NOON.isoformat(), "--format", "json"]
    return subprocess.run(
        [sys.executable, "-c", HIDE_YAML, *asked, *words],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_budgets_needs_yaml_only_for_a_policy_file(one_chain: Lake, tmp_path) -> None:
    without = ask(one_chain)
    assert without.returncode == 0, without.stderr
    assert json.loads(without.stdout)["state"] == "burning"
    file = tmp_path / "policy.yaml"
    file.write_text("thresholds: [{topics: pay, set: {retry_warning_s: 110}}]")
    refused = ask(one_chain, "--set", f"alerts.policy={file}")
    assert refused.returncode == 2
    assert "pip install 'acktrail[policy]'" in refused.stderr


@pytest.mark.parametrize("given_by", ["--policy", "--set"])
def test_budgets_uses_the_thresholds_of_the_policy(one_chain: Lake, tmp_path, given_by) -> None:
    file = tmp_path / "policy.yaml"
    # 110 s are cut to three quarters of the delivery timeout, 90 s; 89.5 s are left.
    later = NOON + timedelta(seconds=10.5)
    for topic, warning_s, state in (
        ("pay", 110, "critical"),
        ("pay", 89, "burning"),
        ("orders", 110, "burning"),
    ):
        rule = f"{{topics: {topic}, set: {{retry_warning_s: {warning_s}}}}}"
        file.write_text(f"thresholds: [{rule}]")
        assert asked_with(one_chain, given_by, file, later) == state


def asked_with(lake: Lake, given_by: str, file: Any, as_of: datetime) -> str:
    words = [given_by, str(file) if given_by == "--policy" else f"alerts.policy={file}"]
    asked = ["budgets", "--lake", lake.uri, "--as-of", as_of.isoformat(), "--format", "json"]
    done = CliRunner().invoke(main, [*asked, *words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)["state"]


def test_one_attempt_left_is_critical_for_both() -> None:
    """The two rules disagreed here: the end is far away, and one attempt is left."""
    budget = Budget(**{**budget_ending_in(3600).__dict__, "attempts_left": 1})
    assert state_of(budget, NOON) is BudgetState.CRITICAL
    assert state_of(budget, NOON, Thresholds(attempts_left=0)) is BudgetState.BURNING
    frame = rows(RETRY_BUDGETS, [record("pay", budget)]).to_pandas()
    assert ExpectRetryBudgetLeft(as_of=NOON.isoformat()).findings(frame)
