"""Structural expectations, rendered from a table's contract."""

from __future__ import annotations

from typing import Any

from acktrail.contracts import Table
from expectations.engine import gxe

_COMPARABLE = {"string", "long", "double", "boolean", "timestamp"}


def structural(table: Table) -> list[Any]:
    """What the contract of *table* promises: its columns, its grain, what is never null."""
    columns = gxe.ExpectTableColumnsToMatchSet(column_set=list(table.names), exact_match=False)
    promised = [columns, _grain(table)]
    for column in table.columns:
        if column.required:
            promised.append(gxe.ExpectColumnValuesToNotBeNull(column=column.name))
        if column.values is not None:
            allowed = [word.value for word in column.values]
            promised.append(gxe.ExpectColumnValuesToBeInSet(column=column.name, value_set=allowed))
    return promised


def _grain(table: Table) -> Any:
    keys = [n for n in table.grain if table.column(n).kind in _COMPARABLE]
    if len(keys) == 1:
        return gxe.ExpectColumnValuesToBeUnique(column=keys[0])
    return gxe.ExpectCompoundColumnsToBeUnique(column_list=keys, ignore_row_if="never")
