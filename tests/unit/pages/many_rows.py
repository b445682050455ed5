"""Tables of a million rows, made in seconds: a few rows drawn again, with values of their own."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acktrail.contracts import Table
from acktrail.contracts.arrow import schema
from acktrail.contracts.table import Column
from tests.unit.pages import lakes

NAMES = 10_000
"""Clients, and as many topics, hosts and sources."""
_DRAWN = 2_000
_OWN = ("incident", "record_key", "event_key", "session", "reporter", "instance")
"""Names of which there may be as many as rows."""
_FIXED = ("hour", "opened_hour", "day", "bucket", *lakes.CHOICES)
_FEW = {"cluster": 3}
_FROM_S, _TO_S = -3600, 7 * 3600


def many_rows(table: Table, number: int, make: lakes.Make, seed: int) -> pa.Table:
    """*number* rows of *table*: null where *make* says so, else of 10,000 names and any time."""
    drawn = lakes.rows(table, min(number, _DRAWN), make, random.Random(seed))
    chosen = np.random.default_rng(seed)
    found = drawn.take(pa.array(chosen.integers(0, drawn.num_rows, number)))
    at = _moments(number, chosen)
    for place, column in enumerate(table.columns):
        values = _values(column, at, chosen)
        if values is None:
            continue
        there: Any = pc.is_valid(found.column(column.name))
        kind = schema(table).field(column.name).type
        found = found.set_column(
            place, column.name, pc.if_else(there, values, pa.nulls(number, values.type)).cast(kind)
        )
    return found.cast(schema(table))


def _moments(number: int, chosen: np.random.Generator) -> Any:
    since = int(lakes.SINCE.timestamp() * 1e6)
    after = chosen.integers(_FROM_S * 10**6, _TO_S * 10**6, number)
    return pa.array(since + after, pa.timestamp("us", tz="UTC"))


def _values(column: Column, at: Any, chosen: np.random.Generator) -> Any:
    """The values of *column*; None: as drawn."""
    number = len(at)
    if column.name in ("hour", "opened_hour"):
        return pc.strftime(at, "%Y-%m-%dT%H")
    if column.name == "day":
        return pc.strftime(at, "%Y-%m-%d")
    if column.kind == "timestamp":
        later = chosen.integers(0, 60 * 10**6, number)
        return pc.add(at, pa.array(later, pa.duration("us")))
    if column.kind in ("long", "double"):
        return pa.array(chosen.integers(0, 5_000, number))
    if column.kind == "string" and column.values is None and column.name not in _FIXED:
        most = number if column.name in _OWN else _FEW.get(column.name, NAMES)
        names = pc.cast(pa.array(chosen.integers(0, most, number)), pa.string())
        return pc.binary_join_element_wise(column.name, names, "-")
    return None
