"""How every source stands: the newest word of its agents, and since when, from `source_states`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

import pyarrow as pa

from acktrail.contracts.runs import SOURCE_STATES
from acktrail.contracts.vocabulary import SourceState
from acktrail.lake import Lake
from acktrail.window import day_of

Row = dict[str, Any]

_IS_DOWN = {SourceState.FAILING: True, SourceState.STOPPED: True}
STILL_READING = timedelta(minutes=30)
"""A running agent reports every ten minutes: one that is silent for longer is gone."""
_LOOK_BACK = timedelta(days=SOURCE_STATES.retention_days)


def source_states(lake: Lake, as_of: datetime) -> list[Row]:
    """One row for each source that an agent has run, as of *as_of*; see *newest_states*."""
    import pyarrow.dataset as ds

    if not lake.exists(SOURCE_STATES):
        return []
    days = ds.field("day") >= day_of(as_of - _LOOK_BACK)
    rows = lake.read(SOURCE_STATES, days & (ds.field("at") <= as_of))
    return newest_states(without_repeats(rows).to_pylist())


def without_repeats(rows: pa.Table) -> pa.Table:
    """*rows* in order, without those that say the same as the row before and the row after.

    An agent reports every ten minutes, and *newest_states* needs the ends of each spell alone.
    """
    import numpy as np
    import pyarrow.compute as pc

    from acktrail.answers.many import first_of_each

    ordered = rows.sort_by([(name, "ascending") for name in ("cluster", "source", "host", "at")])
    unread: Any = pc.binary_join(ordered["unread"], "\n")
    said = ordered.append_column("unread_inputs", unread)
    new = first_of_each(said, ("cluster", "source", "host", "agent", "state", "unread_inputs"))
    last = np.append(new[1:], True)[: len(new)]
    return ordered.filter(pa.array(new | last))


def sources_read(lake: Lake, as_of: datetime) -> list[Row]:
    """The sources that an agent reads, or has read to their end, the newest report last."""
    reading = (SourceState.UP, SourceState.ENDED)
    found = [row for row in source_states(lake, as_of) if row["state"] in reading]
    return sorted(found, key=lambda row: row["at"])


def read_at(lake: Lake, as_of: datetime) -> dict[tuple[str, str], datetime]:
    """By cluster and source: when an agent last reported that it reads the source."""
    return {(r["cluster"], r["source"]): r["at"] for r in sources_read(lake, as_of)}


def newest_states(rows: Iterable[Mapping[str, Any]]) -> list[Row]:
    """The newest row of each source, with `state_since_at` and `unread_since_at`.

    `state_since_at`: since when it is up, down or held without a break. `unread_since_at`: since
    when one of its unread inputs is so; None where all are found. A process that waits for another
    one, or that ended in good order beside one that reads, says nothing about the source itself.
    """
    ordered = sorted(rows, key=lambda row: (*_place(row), row["at"]))
    return [_newest(list(own)) for _, own in groupby(ordered, key=_place)]


def _place(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return row["cluster"], row["source"], row["host"]


def _newest(history: list[Mapping[str, Any]]) -> Row:
    reading = [row for row in history if row["state"] != SourceState.HELD]
    told = reading or history
    newest = _decisive(told)
    since = unread_since = newest["at"]
    for row in reversed(told):
        if _is_down(row) != _is_down(newest):
            break
        since = row["at"]
    for row in reversed(told):
        if not set(row["unread"]) & set(newest["unread"]):
            break
        unread_since = row["at"]
    return {
        **newest,
        "state_since_at": since,
        "unread_since_at": unread_since if newest["unread"] else None,
    }


def _decisive(told: list[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The newest row; one of an end only where no other process was reading then."""
    newest = told[-1]
    if newest["state"] != SourceState.ENDED:
        return newest
    last = {row["agent"]: row for row in told}
    reading = [
        row
        for row in last.values()
        if row["state"] == SourceState.UP and newest["at"] - row["at"] <= STILL_READING
    ]
    return max(reading, key=lambda row: row["at"], default=newest)


def _is_down(row: Mapping[str, Any]) -> bool:
    return _IS_DOWN.get(row["state"], False)
