"""Laws of the DAG files, read as text: no Airflow is needed to see them broken."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from acktrail.contracts import TABLES

DAGS = Path(__file__).parents[2] / "airflow_dags"
FILES = sorted(DAGS.glob("*.py"))
SCHEDULES = [file for file in FILES if "DAG(" in file.read_text(encoding="utf-8")]
by_name = {"ids": lambda file: file.stem}


def _imports(file: Path) -> set[str]:
    """Every module that *file* imports, at any depth."""
    modules: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file.name}: Airflow loads files, not packages"
            modules.add(node.module or "")
    return modules


@pytest.mark.parametrize("file", FILES, **by_name)
def test_no_dag_imports_our_code_or_spark(file):
    beside_it = {other.stem for other in FILES}
    strange = {
        module
        for module in _imports(file)
        if module.split(".")[0] not in sys.stdlib_module_names
        and module not in beside_it
        and module != "airflow.sdk"
        and not module.startswith("airflow.sdk.")
    }
    assert not strange


def test_what_an_exit_means_needs_no_airflow():
    roots = {module.split(".")[0] for module in _imports(DAGS / "acktrail_outcome.py")}
    assert roots <= sys.stdlib_module_names


@pytest.mark.parametrize("file", SCHEDULES, **by_name)
def test_a_dag_is_called_as_its_file_and_has_a_page_for_the_person_on_call(file):
    text = file.read_text(encoding="utf-8")
    assert f'dag_id="{file.stem}"' in text
    for promise in ("catchup=False", "max_active_runs=1", "doc_md=ON_CALL"):
        assert promise in text
    for answered in ("ed means", "safe to clear", "Where to look next"):
        assert answered in text, f"{file.name} does not say: {answered}"


@pytest.mark.parametrize("file", SCHEDULES, **by_name)
def test_nothing_is_looked_up_while_a_dag_is_read(file):
    """Variables and the environment are read when a task runs: the scheduler parses all day."""
    text = file.read_text(encoding="utf-8")
    assert "Variable" not in _names(text)
    assert "environ" not in _names(text)


def _names(text: str) -> set[str]:
    tree = ast.walk(ast.parse(text))
    return {getattr(node, "id", getattr(node, "attr", "")) for node in tree}


def test_every_gold_table_is_an_asset():
    tree = ast.parse((DAGS / "acktrail_operator.py").read_text(encoding="utf-8"))
    declared = next(
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "GOLD_TABLES"
    )
    assert set(declared) == {table.name for table in TABLES if table.layer == "gold"}


def test_the_lock_names_packages_and_hashes_but_no_address():
    lock = (DAGS / "requirements.lock").read_text(encoding="utf-8")
    assert "apache-airflow==3.3." in lock
    assert "://" not in lock
    assert "pyspark" not in lock
