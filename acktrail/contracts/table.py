"""Declare a table once, with no engine: columns, grain, partition, and what they mean."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

Kind = Literal[
    "string",
    "long",
    "double",
    "boolean",
    "timestamp",
    "binary",
    "strings",
    "longs",
    "attributes",
    "structs",
]
"""`timestamp`: UTC, microseconds. `strings`, `longs`: lists. `attributes`: names to texts.
`structs`: a list of structs with the fields that the column names."""

Layer = Literal["bronze", "silver", "gold", "runs"]


@dataclass(frozen=True)
class Column:
    """One column: name (with its unit), kind, what it means."""

    name: str
    kind: Kind
    doc: str
    required: bool = False
    values: type[StrEnum] | None = None
    """The closed list of allowed texts, where there is one."""
    fields: tuple[Column, ...] = ()
    """Of `structs`: the fields of each struct, in order."""
    former: Kind | None = None
    """The kind of this column in tables of earlier versions; `acktrail run` migrates them."""

    def __post_init__(self) -> None:
        if (self.kind == "structs") != bool(self.fields):
            raise ValueError(f"{self.name}: fields are for structs, and structs need them")


@dataclass(frozen=True)
class Table:
    """One table of the lake.

    *partition* names at most one column; *retention_days* is how long housekeeping keeps rows of it.
    """

    name: str
    layer: Layer
    doc: str
    grain: tuple[str, ...]
    columns: tuple[Column, ...]
    partition: tuple[str, ...] = ()
    retention_days: int = 90

    def __post_init__(self) -> None:
        names = [c.name for c in self.columns]
        if len(set(names)) != len(names):
            raise ValueError(f"{self.name}: a column is declared twice")
        if len(self.partition) > 1:
            raise ValueError(f"{self.name}: one column at most makes the partitions")
        for role, listed in (("grain", self.grain), ("partition", self.partition)):
            missing = [n for n in listed if n not in names]
            if missing:
                raise ValueError(f"{self.name}: {role} names no column: {', '.join(missing)}")

    def column(self, name: str) -> Column:
        """The column called *name*."""
        for c in self.columns:
            if c.name == name:
                return c
        raise KeyError(f"{self.name} has no column {name}")

    @property
    def flat(self) -> tuple[Column, ...]:
        """The columns that are not lists of structs: what a flat frame of the table has."""
        return tuple(c for c in self.columns if c.kind != "structs")

    @property
    def names(self) -> tuple[str, ...]:
        """The column names, in order."""
        return tuple(c.name for c in self.columns)
