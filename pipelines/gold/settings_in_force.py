"""Of the settings that producers have printed at their starts, those that may be in force."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from acktrail.lake.rows import Rows

SETTINGS_IN_FORCE = "settings_in_force"
"""The name of a summary: rows of `client_configs`."""
_IS_START = (ds.field("role") == "producer") & ds.field("started_at").is_valid()
_WHOSE = ("cluster", "client_id", "host")
_NONE = "\0"


def settings_in_force(
    configs: Rows,
    columns: Collection[str],
    since: datetime | None,
    clients: Collection[str] | None = None,
    files: Collection[str] = (),
) -> pa.Table:
    """The *columns* of starts from *since* on, and of the last before on each client and host.

    Of *clients* only, where given. Also all that were printed into *files*. Without *since*, all.
    """
    wanted = list(dict.fromkeys([*_WHOSE, "record_key", "started_at", *columns]))
    where = _IS_START if clients is None else _IS_START & ds.field("client_id").isin(clients)
    rows = configs.read(*wanted, where=where)
    if since is None or not rows.num_rows:
        return rows
    begun = since.replace(microsecond=since.microsecond // 1000 * 1000)
    at: Any = pc.floor_temporal(rows.column("started_at"), unit="millisecond")
    before: Any = pc.less(at, pa.scalar(begun, pa.timestamp("us", tz="UTC")))
    whose = pa.table({name: _text(rows.column(name)) for name in _WHOSE})
    starts = whose.append_column("at", at).append_column("number", pa.array(range(rows.num_rows)))
    old = starts.filter(before)
    last = old.group_by(list(_WHOSE)).aggregate([("at", "max")]).rename_columns([*_WHOSE, "at"])
    kept = old.join(last, [*_WHOSE, "at"], join_type="left semi").column("number")
    there = pc.is_in(starts.column("number"), kept.combine_chunks())
    origin: Any = pc.replace_substring_regex(rows.column("record_key"), r"/[^/]*$", "")
    printed = pc.is_in(origin, pa.array(sorted(files), pa.string()))
    return rows.filter(pc.or_(pc.or_(pc.invert(before), there), printed))


def _text(column: Any) -> Any:
    """A text for none too: null is equal to nothing in a join."""
    return pc.fill_null(column, _NONE)
