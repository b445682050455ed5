"""Rows of a report as dictionaries, and messages made of them."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

Row = dict[str, Any]
VERSION = 1
MOST_BYTES = 900_000
"""Of one message: below the brokers' usual limit."""


def encode64(ids: bytes) -> str:
    """A run list as text."""
    return base64.b64encode(ids).decode()


def row_size(row: Row) -> int:
    """About how many bytes *row* takes in a message and in memory."""
    return 400 + len(row.get("ids", ""))


def encode_message(rows: Sequence[Row]) -> bytes:
    """One message of the audit topic."""
    return json.dumps({"v": VERSION, "reports": rows}, separators=(",", ":")).encode()


def without_offsets(row: Row, ids: bytes) -> Row:
    """An `acked` row that takes less memory: the same ids, their offsets forgotten."""
    kept = {k: v for k, v in row.items() if k not in ("first_offset", "last_offset")}
    return {**kept, "tier": "acked_no_offset", "ids": encode64(ids)}
