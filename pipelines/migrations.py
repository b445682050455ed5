"""Columns of earlier versions: how their values are read, to be written in the kind they have now.

`audit_blocks.parts` was packed bytes, and `delivery_ledger.findings` JSON without names.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any

from acktrail.audit import block_account as accounts
from acktrail.audit.block import FIELDS
from acktrail.audit.block_account import StateRange
from acktrail.contracts import Table
from acktrail.lake import Lake

_FIXED = struct.Struct("<qqqqqqqqqqqq")
_LENGTHS = struct.Struct("<HHHI")
_NONE = -(1 << 63)
_NUMBERS = (
    *("part", "number", "records", "leader_epoch", "first_offset", "last_offset"),
    *("began_ms", "ended_ms", "steps_back"),
    *("latency_p50_ms", "latency_p99_ms", "latency_max_ms"),
)


def packed_parts(data: bytes) -> list[dict[str, Any]]:
    """The parts in packed bytes: twelve numbers, four lengths, then three texts and the ids."""
    found, at = [], 0
    while at < len(data):
        numbers = [None if n == _NONE else n for n in _FIXED.unpack_from(data, at)]
        at += _FIXED.size
        texts = []
        lengths = _LENGTHS.unpack_from(data, at)
        at += _LENGTHS.size
        for length in lengths:
            texts.append(data[at : at + length])
            at += length
        if at > len(data):
            raise ValueError(f"{len(data)} bytes, but the last part ends at {at}")
        reporter, error, topic_id, ids = texts
        found.append(
            {
                **dict(zip(_NUMBERS, numbers, strict=True)),
                "reporter": reporter.decode(),
                "error": error.decode(errors="replace"),
                "topic_id": topic_id.decode() or None,
                "ids": ids,
            }
        )
    return [{name: part.get(name) for name in FIELDS} for part in found]


def positional_findings(text: str) -> list[dict[str, Any]]:
    """The findings in JSON: a list of lists, in the order of the fields of `StateRange`."""
    return [accounts.fields_of(StateRange(*values)) for values in json.loads(text)]


CONVERTERS: Mapping[str, Mapping[str, Any]] = {
    "audit_blocks": {"parts": packed_parts},
    "delivery_ledger": {"findings": positional_findings},
}
"""For each table, its columns that have had another kind."""


def migrate(lake: Lake, table: Table) -> bool:
    """Rewrite *table* where an earlier version wrote it; whether it was rewritten."""
    return lake.migrate(table, CONVERTERS.get(table.name, {}))
