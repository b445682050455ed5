"""What an exit of the command means for a schedule."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acktrail import errors

DAGS = Path(__file__).parents[2] / "airflow_dags"


def _load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, DAGS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


outcomes = _load("acktrail_outcome")
Fate = outcomes.Fate

LOST = {
    "table": "loss_incidents",
    "check": "no_loss_after_ack",
    "grade": "fail",
    "outcome": "fail",
    "sentence": "Acknowledged messages are gone.",
    "runbook": "docs/runbooks/no_loss_after_ack.md",
    "findings": [
        {
            "outcome": "fail",
            "because": "17 messages of orders are gone.",
            "count": 17,
            "keys": [f"k{n}" for n in range(10)],
        },
        {"outcome": "fail", "because": "Expected.", "muted_by": "rolling restart"},
    ],
}
SLOW = {**LOST, "check": "retry_rate_within_bounds", "grade": "warn"}
BLIND = {**LOST, "check": "evidence_complete", "outcome": "undecided"}
RAISED = {
    **{**BLIND, "grade": "warn"},
    "findings": [
        {"outcome": "undecided", "state": "check_not_evaluated", "because": "It raised KeyError."}
    ],
}


def _lines(*records):
    return "".join(json.dumps(record) + "\n" for record in records)


CASES = [
    # case, exit code, stdout, stderr -> fate, what the person reads
    ("fine", 0, _lines({"job": "retry_budgets"}), [], Fate.FINE, "Done."),
    ("fine, with warnings", 0, _lines(SLOW, BLIND), [], Fate.FINE, "Done."),
    (
        "lake does not answer",
        75,
        "",
        ["Starting\n", "SourceUnavailable: s3://lake did not answer.\n"],
        Fate.TRY_AGAIN,
        "SourceUnavailable: s3://lake did not answer.",
    ),
    ("killed for memory", -9, "", [], Fate.TRY_AGAIN, "Signal 9"),
    ("killed, said by a shell", 137, "", [], Fate.TRY_AGAIN, "Signal 9"),
    ("stopped", -15, _lines(LOST), [], Fate.TRY_AGAIN, "Signal 15"),
    (
        "checks failed",
        1,
        _lines(SLOW, LOST, BLIND),
        ["ChecksFailed: 1 check(s) did not pass: no_loss_after_ack.\n"],
        Fate.CHECKS_FAILED,
        "Runbook: docs/runbooks/no_loss_after_ack.md",
    ),
    (
        "a check could not be evaluated",
        1,
        _lines(RAISED),
        ["ChecksFailed: 1 check(s) did not pass: evidence_complete.\n"],
        Fate.CHECKS_FAILED,
        "It raised KeyError.",
    ),
    (
        "a crash also exits with 1, and is not taken for a verdict",
        1,
        _lines({"job": "retry_budgets"}),
        ["Traceback (most recent call last):\n", '  File "x.py"\n', "KeyError: 'lake'\n"],
        Fate.BROKEN,
        "Exit code 1: KeyError: 'lake'",
    ),
    (
        "wrong settings: the whole error, not only its last line",
        2,
        "",
        ["note\n", "ConfigError: The settings are wrong:\n", "  lake.url: no such setting\n", "\n"],
        Fate.BROKEN,
        "ConfigError: The settings are wrong:\n  lake.url: no such setting",
    ),
    ("wrong use", 2, "", ["Usage: acktrail\n", "Error: No such option\n"], Fate.BROKEN, "No such"),
    ("said nothing", 2, "", [], Fate.BROKEN, "it printed no error"),
    (
        "not found, said by a shell",
        127,
        "",
        ["sh: a: not found\n"],
        Fate.BROKEN,
        "not found",
    ),
]


@pytest.mark.parametrize(
    ("code", "stdout", "stderr", "fate", "read"),
    [pytest.param(*case, id=name) for name, *case in CASES],
)
def test_exit_codes(code, stdout, stderr, fate, read):
    outcome = outcomes.outcome_of(code, stdout, stderr)
    assert outcome.fate is fate
    assert read in outcome.said


def test_the_person_reads_what_failed_and_nothing_else():
    outcome = outcomes.outcome_of(1, _lines(SLOW, LOST, BLIND), [])
    assert [found["check"] for found in outcome.findings] == ["no_loss_after_ack"]
    assert outcome.said.splitlines() == [
        "1 check(s) failed. Every alert was delivered.",
        "no_loss_after_ack (loss_incidents): Acknowledged messages are gone.",
        "  - 17 messages of orders are gone. [k0, k1, k2 …]",
        "  Runbook: docs/runbooks/no_loss_after_ack.md",
    ]


def test_the_log_has_a_line_for_each_record():
    rebuilt = {"job": "clients", "rows_out": 5, "dropped": None, "said": ""}
    passed = {**LOST, "outcome": "pass", "findings": []}
    assert outcomes.told([rebuilt, {"table": "untouched"}, passed, SLOW]) == [
        "job=clients  rows_out=5",
        "pass: no_loss_after_ack (loss_incidents)",
        "fail of grade warn: retry_rate_within_bounds (loss_incidents): "
        "Acknowledged messages are gone.",
        "  - 17 messages of orders are gone.",
        "  - Expected.",
    ]


def test_codes_are_those_of_the_command():
    assert errors.TransientError.exit_code == outcomes.TRY_AGAIN
    assert errors.ChecksFailed.exit_code == outcomes.CHECKS_FAILED
    for error in (errors.ConfigError, errors.UsageError, errors.LakeDamaged):
        assert outcomes.outcome_of(error.exit_code, "", []).fate is Fate.BROKEN


@given(st.integers(-64, 255), st.text(), st.lists(st.text(max_size=20), max_size=5))
def test_any_end_has_a_fate(code, stdout, stderr):
    outcome = outcomes.outcome_of(code, stdout, stderr)
    assert (outcome.fate is Fate.FINE) == (code == 0)
    assert outcome.said


@given(st.lists(st.dictionaries(st.sampled_from(sorted(LOST)), st.integers(), max_size=3)))
def test_records_are_read_back_from_between_other_lines(records):
    stdout = "".join(f"not a record\n[1]\n{json.dumps(r)}\n" for r in records)
    assert list(outcomes.read_records(stdout)) == records
