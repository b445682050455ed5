"""Suites that users write: YAML files in a directory, Great Expectations' own expectations.

table: producer_reliability
checks:
  - name: checkout_latency
    expectation: ExpectColumnMaxToBeBetween
    with: {column: latency_p99_ms, max_value: 2000}
    where: {client_id: "checkout*"}
    grade: warn
    sentence: Checkout is slower than its promise.
    runbook: https://wiki.example.com/checkout
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from acktrail.contracts import TABLES, Table, table_named
from acktrail.contracts.vocabulary import Grade
from acktrail.errors import ConfigError
from expectations.engine import gxe
from expectations.suite import Check, Question, Suite, View
from expectations.suites import SUITES
from expectations.views import frame

if TYPE_CHECKING:
    import pandas as pd

    from acktrail.lake import Lake


class _OwnCheck(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    expectation: str
    arguments: dict[str, Any] = Field(default_factory=dict, alias="with")
    where: dict[str, str] = Field(default_factory=dict)
    """Column to glob: only rows that match are checked."""
    grade: Grade = Grade.WARN
    sentence: str = Field(min_length=1)
    runbook: str = Field(min_length=1)


class _OwnSuite(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    table: str
    checks: tuple[_OwnCheck, ...] = Field(min_length=1)


def read_own_suites(directory: Path) -> tuple[Suite, ...]:
    """Every suite in *directory*; ConfigError says which file is wrong and how."""
    if not directory.is_dir():
        raise ConfigError(f"The directory of your own suites, {directory}, does not exist.")
    return tuple(
        suite
        for path in sorted((*directory.glob("*.yaml"), *directory.glob("*.yml")))
        for suite in _read(path)
    )


def _read(path: Path) -> list[Suite]:
    import yaml

    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
        own = _OwnSuite.model_validate(raw)
        table = table_named(own.table)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path} is not readable YAML: {error}") from None
    except ValidationError as error:
        problems = [
            f"  {'.'.join(str(p) for p in e['loc']) or 'the file'}: {e['msg']}"
            for e in error.errors(include_url=False)
        ]
        raise ConfigError(f"{path}: the suite is wrong:\n" + "\n".join(problems)) from None
    except KeyError as error:
        names = ", ".join(t.name for t in TABLES if t.layer in ("gold", "runs"))
        raise ConfigError(f"{path}: there is no table {error}. There are: {names}.") from None
    return [_suite(path, table, check) for check in own.checks]


def _suite(path: Path, table: Table, check: _OwnCheck) -> Suite:
    known = {column.name for column in table.flat}
    unknown = [column for column in check.where if column not in known]
    if unknown:
        raise ConfigError(f"{path}: {check.name}: {table.name} has no column {unknown[0]}.")
    return Suite(
        table,
        _filtered(table, check.where),
        (
            Check(
                _expectation(path, check),
                check.grade,
                check.sentence,
                named=check.name,
                runbook=check.runbook,
            ),
        ),
        needs=table.name,
        structural=False,
        named=f"{path.stem}: {check.name}",
    )


def _expectation(path: Path, check: _OwnCheck) -> Any:
    made = getattr(gxe, check.expectation, None) if check.expectation[:6] == "Expect" else None
    if made is None:
        raise ConfigError(
            f"{path}: {check.name}: Great Expectations has no {check.expectation}. Write it like "
            "ExpectColumnValuesToBeBetween."
        )
    try:
        return made(**check.arguments)
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"{path}: {check.name}: {check.expectation} does not take that: {error}"
        ) from None


def _filtered(table: Table, where: dict[str, str]) -> View:
    """The same window that our own suite on the table reads, cut to the rows that match."""
    ours = [suite.view for suite in SUITES if suite.table is table]

    def read(lake: Lake, question: Question) -> pd.DataFrame | None:
        rows = ours[0](lake, question) if ours else frame(lake, table)
        if rows is None:
            return None
        for column, glob in where.items():
            matching = [fnmatchcase(str(value), glob) for value in rows[column]]
            rows = rows[matching]
        return rows

    return read
