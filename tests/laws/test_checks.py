"""Laws of the checks: nothing in the registry may be without its page, its table or its words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from acktrail.contracts import TABLES
from acktrail.policy import read_policy
from acktrail.policy.renamed import RENAMED
from expectations.domain.structure import structural
from expectations.own_suites import read_own_suites
from expectations.page import table_of_checks
from expectations.policy_suites import check_names, thresholds
from expectations.suites import SUITES

DOCS = Path(__file__).parents[2] / "docs"
CHECKS = [check for suite in SUITES for check in suite.checks]
SECTIONS = ["## What it means", "## How to verify", "## What to do"]


@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.name)
def test_every_table_has_structural_expectations(table):
    promised = structural(table)
    # Lists of structs are refused at the write (tests/spark/test_contract_of_outputs.py).
    required = {c.name for c in table.flat if c.required}
    asked = {c for e in promised for c in getattr(e, "columns", ())}
    assert required <= asked
    grain = [getattr(e, "column_list", None) or [getattr(e, "column", None)] for e in promised]
    assert list(table.grain) in grain


def test_every_gold_table_has_a_suite():
    assert {t.name for t in TABLES if t.layer == "gold"} <= {s.table.name for s in SUITES}


@pytest.mark.parametrize("name", check_names(SUITES))
def test_every_check_has_a_runbook(name):
    page = (DOCS / "runbooks" / f"{name}.md").read_text()
    assert [line for line in page.splitlines() if line.startswith("## ")] == SECTIONS
    assert f"`{name}`" in page


def test_no_runbook_is_about_nothing():
    pages = {path.stem for path in (DOCS / "runbooks").glob("*.md")}
    assert pages == {*check_names(SUITES), *RENAMED}


@pytest.mark.parametrize("former", RENAMED)
def test_a_former_name_has_a_page_that_points_to_the_check(former):
    current = RENAMED[former]
    assert f"({current}.md)" in (DOCS / "runbooks" / f"{former}.md").read_text()
    assert current in check_names(SUITES)
    assert former not in check_names(SUITES)


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.name)
def test_every_check_says_what_it_means_in_one_sentence(check):
    assert type(check.expectation).__doc__
    assert check.sentence.endswith(".")


def test_names_of_checks_and_of_findings_states_are_not_shared():
    names = check_names(SUITES)
    assert len(set(names)) == len(names)


def test_runbooks_ask_only_tables_and_columns_that_exist():
    known = {t.name: set(t.names) for t in TABLES}
    for path in (DOCS / "runbooks").glob("*.md"):
        for query in re.findall(r'acktrail sql "([^"]+)"', path.read_text()):
            table = re.search(r"FROM (\w+)", query).group(1)
            listed = re.search(r"SELECT (.+?) FROM", query).group(1)
            words = re.findall(r"(?<!AS )\b[a-z_]+\b", listed.replace("`", ""))
            aliases = set(re.findall(r"AS (\w+)", query))
            strange = set(words) - known[table] - aliases - {"sum", "min", "count"}
            assert not strange, f"{path.name}: {table} has no {strange}"


def test_the_page_of_checks_is_that_of_the_registry():
    page = (DOCS / "checks.md").read_text()
    assert table_of_checks() in page, "run `python -m expectations.page` and paste its table"


def test_the_examples_in_the_page_are_read(tmp_path):
    page = (DOCS / "checks.md").read_text()
    policy, own = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "policy.yaml").write_text(policy)
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "own.yaml").write_text(own)
    read = read_policy(tmp_path / "policy.yaml")
    suites = (*SUITES, *read_own_suites(tmp_path / "suites"))
    read.require_known(tmp_path, check_names(suites), thresholds(suites))
    assert read.owners
    assert read.maintenance
