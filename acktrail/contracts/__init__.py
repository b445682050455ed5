"""Every table of the lake, declared once."""

from acktrail.contracts.bronze import BRONZE
from acktrail.contracts.gold import GOLD
from acktrail.contracts.runs import RUN_TABLES
from acktrail.contracts.silver import SILVER
from acktrail.contracts.table import Column, Kind, Table

TABLES: tuple[Table, ...] = (*BRONZE, *SILVER, *GOLD, *RUN_TABLES)


def table_named(name: str) -> Table:
    """The table called *name*."""
    for table in TABLES:
        if table.name == name:
            return table
    raise KeyError(name)


__all__ = ["TABLES", "Column", "Kind", "Table", "table_named"]
