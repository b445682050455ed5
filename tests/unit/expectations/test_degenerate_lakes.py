"""Every expectation on lakes that hold nearly nothing: no crash, and no pass for what nobody sees.

Lakes are built from the contracts by the kind of each column, so that a new table is covered.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from gold_rows import NOW, ask, row, write

from acktrail.contracts import TABLES
from acktrail.contracts.bronze import AUDIT_REPORTS, BRONZE, LOG_RECORDS, METRIC_SAMPLES
from acktrail.contracts.lineage import line_of
from acktrail.contracts.runs import RUNS
from acktrail.contracts.silver import CLIENT_CONFIGS
from acktrail.contracts.vocabulary import Outcome
from acktrail.lake import Lake
from acktrail.policy import KINDS, Policy
from expectations.domain.expectation import FRAME
from expectations.domain.structure import structural
from expectations.suites import SUITES
from expectations.validate import Asked, bound

COLLECTED = {"logs": LOG_RECORDS, "metrics": METRIC_SAMPLES, "audits": AUDIT_REPORTS}
READ = {s.table.name for s in SUITES} | {t.name for t in (*BRONZE, RUNS, CLIENT_CONFIGS)}
"""What the views of the suites read."""
ASKED = Asked(NOW, Policy(), "runbooks")
FULL = {
    "string": "x",
    "long": 1,
    "double": 0.0,
    "boolean": True,
    "timestamp": NOW - timedelta(minutes=5),
    "strings": ["x"],
    "longs": [1],
    "binary": b"x",
    "attributes": [("x", "1")],
}


def filled(column):
    if column.values:
        return next(iter(column.values)).value
    if column.fields:
        return [{field.name: filled(field) for field in column.fields}]
    return FULL[column.kind]


def nulls(table):
    """Null wherever the contract allows it."""
    return [row(table)]


def zeros(table):
    """Every number measured and 0, every text empty."""
    empty = {
        c.name: 0 if c.kind == "long" else 0.0
        for c in table.columns
        if c.kind in ("long", "double")
    }
    return [row(table, **empty)]


def full(table):
    """No column is null."""
    usual = {c.name: filled(c) for c in table.columns}
    parts = {name: row(table)[name] for name in table.partition}
    return [{**usual, **parts}]


def both(table):
    return [*nulls(table), *full(table)]


def nothing(_table):
    return []


def made_from(*sources):
    """The tables that `acktrail run` writes where only *sources* are collected."""
    names = {s.name for s in sources}
    return [t for t in TABLES if names & line_of(t) or t.layer == "runs"]


LAKES = {
    # case: tables, their rows, kinds of evidence that are there
    "nothing was ever written": ([], nothing, ()),
    "tables without rows": (TABLES, nothing, KINDS),
    "zeros": (TABLES, zeros, KINDS),
    "nulls": (TABLES, nulls, KINDS),
    "one full row": (TABLES, full, KINDS),
    "a full row and one with nulls": (TABLES, both, KINDS),
    **{f"only {kind}": (made_from(table), nothing, (kind,)) for kind, table in COLLECTED.items()},
}


def lake_of(tmp_path, case):
    lake = Lake(tmp_path)
    tables, rows_of, _ = LAKES[case]
    for table in (t for t in tables if t.name in READ):
        write(lake, table, *rows_of(table))
    return lake


@pytest.mark.parametrize("case", LAKES)
def test_no_expectation_raises(tmp_path, case):
    lake = lake_of(tmp_path, case)
    for suite in SUITES:
        frame = suite.view(lake, ASKED.question)
        if frame is None:
            continue
        ours = [e for e in structural(suite.table) if hasattr(e, "broken")]
        for expectation in [*ours, *(bound(check, ASKED) for check in suite.checks)]:
            said = expectation._validate({FRAME: frame})
            assert isinstance(said["success"], bool), f"{suite.name}: {expectation}"


@pytest.mark.parametrize("case", ["zeros", *(c for c in LAKES if c.startswith("only"))])
def test_what_nobody_collects_does_not_pass(tmp_path, case):
    lake = lake_of(tmp_path, case)
    there = LAKES[case][2]
    needs = {(s.table.name, c.name): s.needs for s in SUITES for c in s.checks}
    for result in ask(lake):
        assert not result.not_evaluated, result.findings
        blind = needs.get((result.table, result.check), "")
        if blind in KINDS and blind not in there:
            assert result.outcome is Outcome.UNDECIDED, f"{result.check}: {result.outcome}"


def test_every_kind_of_evidence_has_its_lake():
    assert set(COLLECTED) == set(KINDS)
    assert {t.name for t in COLLECTED.values()} <= {t.name for t in BRONZE}
