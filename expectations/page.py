"""The table of checks in docs/checks.md, made from the registry: `python -m expectations.page`."""

from __future__ import annotations

from expectations.domain.expectation import DomainExpectation
from expectations.suites import SUITES
from expectations.validate import STRUCTURE

_HEAD = (
    "| check | table | grade | it holds when | thresholds |\n"
    "| --- | --- | --- | --- | --- |\n"
    f"| [{STRUCTURE}](runbooks/{STRUCTURE}.md) | every table below | fail | "
    "The rows have the columns, keys, values and words that the contract promises. | |\n"
)


def table_of_checks() -> str:
    """Every check: its runbook, table, grade, meaning and thresholds with their defaults."""
    lines = []
    for suite in SUITES:
        for check in suite.checks:
            expectation: DomainExpectation = check.expectation
            means = (type(expectation).__doc__ or "").strip().split("\n\n")[0].replace("\n", " ")
            bounds = ", ".join(f"`{n}` {v:g}" for n, v in expectation.thresholds.items())
            lines.append(
                f"| [{check.name}](runbooks/{check.name}.md) | `{suite.table.name}` | "
                f"{check.grade.value} | {means} | {bounds} |\n"
            )
    return _HEAD + "".join(lines)


if __name__ == "__main__":
    print(table_of_checks(), end="")
