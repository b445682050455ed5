"""Structural expectations, rendered from a table's contract."""

from __future__ import annotations

from typing import Any

from acktrail.contracts import Table
from expectations.domain.structure import ExpectOnlyKnownWords, ExpectRequiredColumnsFilled
from expectations.engine import gxe


def structural(table: Table) -> list[Any]:
    """What the contract of *table* promises: its columns, its grain, what is never null.

    Lists of structs are checked when they are written, and are not in the frames of the views.
    """
    required = tuple(c.name for c in table.flat if c.required)
    words = {c.name: [w.value for w in c.values] for c in table.columns if c.values is not None}
    promised = [
        gxe.ExpectTableColumnsToMatchSet(
            column_set=[c.name for c in table.flat], exact_match=False
        ),
        _grain(table),
        ExpectRequiredColumnsFilled(columns=required),
    ]
    if words:
        promised.append(ExpectOnlyKnownWords(words=words))
    return promised


def _grain(table: Table) -> Any:
    if len(table.grain) == 1:
        return gxe.ExpectColumnValuesToBeUnique(column=table.grain[0])
    return gxe.ExpectCompoundColumnsToBeUnique(column_list=list(table.grain), ignore_row_if="never")
