"""The expectations that a table's contract makes: its columns, its grain, what is never null.

Nulls and words are asked of all columns at once.

Great Expectations has one expectation per column for this, and takes about 20 ms for each: with
some 150 columns that would be most of the time of a check.
"""

from __future__ import annotations

from typing import Any, ClassVar

import pandas as pd

from acktrail.contracts import Table
from expectations.domain.expectation import FRAME
from expectations.engine import BatchExpectation, gxe


class _ColumnsExpectation(BatchExpectation):
    metric_dependencies: ClassVar[tuple[str, ...]] = (FRAME,)

    def broken(self, frame: pd.DataFrame) -> dict[str, int]:
        """Columns that break the promise, and in how many rows."""
        raise NotImplementedError

    def _validate(
        self,
        metrics: dict[str, Any],
        runtime_configuration: dict[str, Any] | None = None,  # noqa: ARG002
        execution_engine: Any = None,  # noqa: ARG002
    ) -> dict[str, Any]:
        found = {column: rows for column, rows in self.broken(metrics[FRAME]).items() if rows}
        return {
            "success": not found,
            "result": {
                "observed_value": sum(found.values()),
                "unexpected_count": sum(found.values()),
                "details": {"columns": found},
            },
        }


class ExpectRequiredColumnsFilled(_ColumnsExpectation):
    """No required column is null in any row."""

    columns: tuple[str, ...] = ()
    success_keys: ClassVar[tuple[str, ...]] = ("columns",)

    def broken(self, frame: pd.DataFrame) -> dict[str, int]:
        """Nulls by column."""
        here = [c for c in self.columns if c in frame.columns]
        return {str(c): int(n) for c, n in frame[here].isna().sum().items()}


class ExpectOnlyKnownWords(_ColumnsExpectation):
    """Columns with a closed list of words hold no others."""

    words: dict[str, list[str]] = {}  # noqa: RUF012
    success_keys: ClassVar[tuple[str, ...]] = ("words",)

    def broken(self, frame: pd.DataFrame) -> dict[str, int]:
        """Strange words by column; null is for the other expectation to judge."""
        return {
            column: int((~frame[column].isin(known) & frame[column].notna()).sum())
            for column, known in self.words.items()
            if column in frame.columns
        }


def structural(table: Table) -> list[Any]:
    """The expectations that the contract of *table* makes.

    Lists of structs are checked when they are written, and are not in the frames of the views.
    """
    required = tuple(c.name for c in table.flat if c.required)
    words = {c.name: [w.value for w in c.values] for c in table.columns if c.values is not None}
    promised = [
        gxe.ExpectTableColumnsToMatchSet(
            column_set=[c.name for c in table.flat], exact_match=False
        ),
        gxe.ExpectColumnValuesToBeUnique(column=table.grain[0])
        if len(table.grain) == 1
        else gxe.ExpectCompoundColumnsToBeUnique(
            column_list=list(table.grain), ignore_row_if="never"
        ),
        ExpectRequiredColumnsFilled(columns=required),
    ]
    if words:
        promised.append(ExpectOnlyKnownWords(words=words))
    return promised
