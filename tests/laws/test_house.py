"""Laws that walk a registry, so that new things cannot be forgotten."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from acktrail import errors
from acktrail.cli import COMMANDS, main
from acktrail.contracts import TABLES, Table, tables_page
from acktrail.settings import page as settings_page
from pipelines.registry import JOBS

ROOT = Path(__file__).parents[2]
BY_NAME = pytest.mark.parametrize("table", TABLES, ids=lambda t: t.name)


@BY_NAME
def test_every_table_has_one_writer(table: Table) -> None:
    jobs = [job.name for job in JOBS if job.output.name == table.name]
    assert jobs in ([], [table.name])
    constant = table.name.upper()
    writers = [
        path
        for room in ("acktrail", "ingest", "expectations", "pipelines")
        for path in (ROOT / room).rglob("*.py")
        if constant in path.read_text() and "contracts" not in path.parts
    ]
    assert writers, f"nobody writes {table.name}"


@BY_NAME
def test_every_grain_names_the_cluster_or_says_why_not(table: Table) -> None:
    of_the_house = {"runs", "run_failures", "check_results", "alerts"}
    assert "cluster" in table.grain or table.name in of_the_house


@BY_NAME
def test_units_are_in_the_names(table: Table) -> None:
    for column in table.columns:
        if column.kind == "timestamp":
            assert column.name == "at" or "_at" in column.name or column.name == "as_of", (
                column.name
            )
        assert column.doc.endswith((".", ")", "...")), f"{table.name}.{column.name}"


def test_the_page_of_tables_is_fresh() -> None:
    assert (ROOT / "docs/tables.md").read_text() == tables_page.page(), "run `make docs`"


def test_the_page_of_settings_is_fresh_and_says_what_every_key_means() -> None:
    assert (ROOT / "docs/settings.md").read_text() == settings_page.page(), "run `make docs`"
    assert not settings_page.undocumented()


def _commands(group: click.Group, path: str = "") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield f"{path}{name}", command
        if isinstance(command, click.Group):
            yield from _commands(command, f"{path}{name} ")


@pytest.mark.parametrize(
    ("name", "command"), list(_commands(main)), ids=lambda v: v if isinstance(v, str) else ""
)
def test_every_command_shows_an_example(name: str, command: click.Command) -> None:
    assert "Example:" in (command.help or ""), name


def test_every_error_is_in_the_docstring_of_the_tree() -> None:
    tree = errors.__doc__ or ""
    for name, kind in inspect.getmembers(errors, inspect.isclass):
        if issubclass(kind, errors.AcktrailError):
            assert name in tree, f"{name} is not in the tree's docstring"


def test_no_dag_imports_our_code_or_spark() -> None:
    ours = {"acktrail", "ingest", "pipelines", "expectations", "lab", "pyspark"}
    for path in (ROOT / "airflow_dags").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                named = {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                named = {(node.module or "").split(".")[0]}
            else:
                continue
            assert not named & ours, f"{path.name} imports {named & ours}"


IMPORTS = [
    ("--help", ["--help"], {"pyspark", "pandas", "great_expectations", "deltalake", "pyarrow"}),
    ("agent", ["agent", "--help"], {"pyspark", "pandas", "great_expectations"}),
    ("read", ["read", "--help"], {"pyspark", "pandas", "great_expectations"}),
]


@pytest.mark.parametrize(
    ("words", "unwanted"), [c[1:] for c in IMPORTS], ids=[c[0] for c in IMPORTS]
)
def test_what_starts_fast_imports_little(words: list[str], unwanted: set[str]) -> None:
    code = (
        "import sys\nfrom acktrail.cli import COMMANDS, main\n"
        f"try:\n    main({words!r})\nexcept SystemExit:\n    pass\n"
        "print(' '.join(sys.modules), file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(ended.stderr.split()) & unwanted


def test_the_command_line_is_one_file_per_command() -> None:
    files = {path.stem for path in (ROOT / "acktrail/cli").glob("*.py")} - {"__init__"}
    assert files == {name.replace("-", "_") for name in COMMANDS}


STEPS = re.findall(r"\[`([\w./]+)`\]\((?!docs)([\w/.]+)\)", (ROOT / "ARCHITECTURE.md").read_text())


@pytest.mark.parametrize(("name", "file"), STEPS, ids=[f"{name} in {file}" for name, file in STEPS])
def test_the_steps_of_the_architecture_are_where_it_says(name: str, file: str) -> None:
    text = (ROOT / file).read_text()
    assert name == file or re.search(rf"\b{name.rpartition('.')[2]}\b", text)


PACKAGES = ("acktrail", "ingest", "pipelines", "expectations", "lab")
ONE_SUBJECT = {"clients", "model", "registry", "spark"}
"""Names that say the same in each package: Kafka's clients, what a file of the user may hold, the
list of a package's sources or jobs, Spark."""
BY_SUBJECT = (
    *("acktrail/answers", "acktrail/cli", "acktrail/pages/views", "acktrail/settings"),
    "expectations/domain",
)
"""Packages with a module for each subject that a user knows: losses, alerts, sources, a run ..."""


def test_no_two_modules_of_one_name_mean_different_things() -> None:
    found: dict[str, list[str]] = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            place = str(path.parent.relative_to(ROOT))
            if path.stem not in ("__init__", "__main__", *ONE_SUBJECT) and place not in BY_SUBJECT:
                found.setdefault(path.stem, []).append(str(path.relative_to(ROOT)))
    twice = {name: places for name, places in found.items() if len(places) > 1}
    assert twice == {}


def test_no_two_classes_of_one_name_mean_different_things() -> None:
    found: dict[str, list[str]] = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    twice = {name: places for name, places in found.items() if len(places) > 1}
    assert twice == {}
