"""What the cluster said of its partitions: changes of leader, and spans without enough replicas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acktrail.answers.inquiry import Inquiry, both
from acktrail.answers.many import Row, first_of_each, numbers, top
from acktrail.contracts.bronze import CLUSTER_CONFIGS, CLUSTER_STATES
from acktrail.contracts.silver import BROKER_EVENTS
from acktrail.lake import Lake

_MOST = 300
_PLACE = ("cluster", "topic", "partition")
_MINIMUM = "min.insync.replicas"
_CREATED = "log_created"
_SHARES = 1_000
"""A gap that is a smaller share of the window could not be seen in a drawing."""
_NEW = timedelta(minutes=1)
_STATES = 2_000_000
_CHANGES = 100_000
"""Answers about partitions, and changes between them, that are looked at, at most."""
_MARKS = {
    "unclean_election": "unclean election",
    "last_known_leader": "last known leader elected",
    "truncation": "log cut",
}


@dataclass(frozen=True)
class Faults:
    """What went wrong with partitions in a window."""

    marks: list[Row] = field(default_factory=list)
    """`at`, `what`, `kind` (election, unclean or truncation), `topic`, `partition`, `offset`."""
    spans: list[Row] = field(default_factory=list)
    """`begins`, `ends`, `kind` (leaderless or under_min_isr), `partitions`: places concerned."""
    left_out: int = 0
    gaps: tuple[tuple[float, float], ...] = ()
    """Spans, in epoch seconds, in which the cluster gave no answer."""


def faults(lake: Lake, asked: Inquiry) -> Faults:
    """Elections, truncations, and spans without a leader or below min.insync.replicas."""
    marks, more = _printed(lake, asked)
    states = _states(lake, asked)
    picked = _beside_changes(states)
    more += max(0, picked.size - _CHANGES)
    changes = list(_changes(states, picked[:_CHANGES], _minimum(lake, asked)))
    marks += [row for row in changes if row["kind"] == "election"]
    spans = _merged([row for row in changes if row["kind"] != "election"])
    marks.sort(key=lambda r: (r["at"], r["kind"], r["topic"], r["partition"]))
    more += max(0, len(marks) - _MOST) + max(0, len(spans) - _MOST)
    return Faults(marks[:_MOST], spans[:_MOST], more, _gaps(states, asked))


def _gaps(states: pa.Table, asked: Inquiry) -> tuple[tuple[float, float], ...]:
    """Where answers are missing: before the first, after the last, and for long in between."""
    first, last = asked.since.timestamp(), asked.until.timestamp()
    if not states.num_rows:
        return ((first, last),)
    at = np.unique(states["at"].cast(pa.int64()).to_numpy()) / 1e6
    between = np.diff(at)
    usual = float(np.median(between)) if between.size else 0.0
    least = max(usual * 3, 1.0, (last - first) / _SHARES)
    late = np.flatnonzero(between > least)
    inner = [(float(at[n]), float(at[n + 1])) for n in late]
    around = [(first, float(at[0])), *inner, (float(at[-1]), last)]
    return tuple((a, b) for a, b in around if b - a > least)


def _printed(lake: Lake, asked: Inquiry) -> tuple[list[Row], int]:
    """What brokers printed: an event that several print is one."""
    where = both(asked.at(BROKER_EVENTS), pc.field("kind").isin([*_MARKS, _CREATED]))
    columns = ("at", "kind", "topic", "partition", "broker", "offset", "leader", "event_key")
    order = [("at", "ascending"), ("event_key", "ascending")]
    found = top(lake, BROKER_EVENTS, where, columns, order, _MOST * 4)
    marks: dict[tuple[Any, ...], Row] = {}
    created = {
        (r["topic"], r["partition"]): r["at"] for r in reversed(found.rows) if r["kind"] == _CREATED
    }
    for row in found.rows:
        if row["kind"] == _CREATED or _of_new_log(row, created):
            continue
        place = f"{row['topic'] or '?'}-{'?' if row['partition'] is None else row['partition']}"
        cut = f" to offset {row['offset']}" if row["offset"] is not None else ""
        who = "" if row["broker"] is None else f" by broker {row['broker']}"
        marks.setdefault(
            (row["kind"], place, row["offset"], row["at"].replace(microsecond=0)),
            {
                "at": row["at"],
                "kind": "truncation" if row["kind"] == "truncation" else "unclean",
                "what": f"{_MARKS[row['kind']]} of {place}{cut}{who}",
                "topic": row["topic"] or "",
                "partition": -1 if row["partition"] is None else row["partition"],
                "offset": row["offset"],
            },
        )
    return list(marks.values()), found.left_out


def _of_new_log(row: Row, created: dict[tuple[Any, Any], datetime]) -> bool:
    """Whether a new, empty log is cut to its beginning: nothing is lost by that."""
    born = created.get((row["topic"], row["partition"]))
    return row["offset"] == 0 and born is not None and abs(row["at"] - born) < _NEW


def _states(lake: Lake, asked: Inquiry) -> pa.Table:
    """Answers in the window, sorted by partition and time: `leader`, `in_sync` as numbers."""
    columns = ["cluster", "topic", "partition", "at", "leader", "isr"]
    parts: list[pa.Table] = []
    rows = 0
    for batch in lake.batches(CLUSTER_STATES, asked.at(CLUSTER_STATES), columns):
        in_sync = pc.list_value_length(batch["isr"])
        parts.append(batch.drop_columns(["isr"]).append_column("in_sync", in_sync))
        rows += batch.num_rows
        if rows > _STATES:
            break
    if not parts:
        return pa.table({name: [] for name in (*columns[:-1], "in_sync")})
    order: list[Any] = [(name, "ascending") for name in columns[:4]]
    return pa.concat_tables(parts).sort_by(order)


def _minimum(lake: Lake, asked: Inquiry) -> dict[tuple[str, str], int]:
    """Cluster and topic to min.insync.replicas, by the newest settings before the window's end."""
    where = (pc.field("entity_kind") == "topic") & (pc.field("at") <= asked.until)
    if asked.topic is not None:
        where &= pc.field("entity") == asked.topic
    columns = ["cluster", "entity", "at", "settings"]
    newest: pa.Table | None = None
    for batch in lake.batches(CLUSTER_CONFIGS, where, columns):
        newest = _newest(batch if newest is None else pa.concat_tables([newest, batch]))
    found: dict[tuple[str, str], int] = {}
    for row in [] if newest is None else newest.to_pylist():
        value = dict(row["settings"])[_MINIMUM]
        if value.isdigit():
            found[row["cluster"], row["entity"]] = int(value)
    return found


def _newest(configs: pa.Table) -> pa.Table:
    """Of each topic the newest settings that say how many replicas have to be in sync."""
    said = pc.map_lookup(configs["settings"], _MINIMUM, "last")
    numbered = configs.append_column("row", pa.array(np.arange(configs.num_rows)))
    known = numbered.drop_columns(["settings"]).filter(pc.is_valid(said))
    order: list[Any] = [(name, "ascending") for name in ("cluster", "entity", "at", "row")]
    ordered = known.sort_by(order)
    starts = first_of_each(ordered, ("cluster", "entity"))
    return configs.take(ordered["row"].filter(pa.array(np.append(starts[1:], True)[: len(starts)])))


def _beside_changes(states: pa.Table) -> Any:
    """The numbers of the rows beside a change, the only ones that are looked at one by one."""
    if not states.num_rows:
        return np.empty(0, dtype=int)
    starts = first_of_each(states, _PLACE)
    leader = numbers(states["leader"], -2)
    in_sync = numbers(states["in_sync"], -1)
    changed = starts.copy()
    changed[1:] |= (leader[1:] != leader[:-1]) | (in_sync[1:] != in_sync[:-1])
    last = np.append(starts[1:], True)
    return np.flatnonzero(changed | last)


def _changes(states: pa.Table, kept: Any, minimum: dict[tuple[str, str], int]) -> Iterator[Row]:
    """Elections, and the spans without a leader or below *minimum*."""
    if not kept.size:
        return
    starts = first_of_each(states, _PLACE)
    picked = states.take(kept).to_pylist()
    open_spans: dict[str, Row] = {}
    before: Row | None = None
    for row, begins in zip(picked, starts[kept], strict=True):
        row["at"] = row["at"].astimezone(UTC)
        if begins:
            yield from open_spans.values()
            open_spans, before = {}, None
        if before is not None and row["leader"] not in (before["leader"], None, -1):
            yield _mark(row)
        _follow(row, minimum.get((row["cluster"], row["topic"])), open_spans)
        yield from [open_spans.pop(kind) for kind in list(open_spans) if open_spans[kind]["over"]]
        before = row
    yield from open_spans.values()


def _mark(row: Row) -> Row:
    return {
        "at": row["at"],
        "kind": "election",
        "what": f"broker {row['leader']} leads {row['topic']}-{row['partition']}",
        "topic": row["topic"],
        "partition": row["partition"],
        "offset": None,
    }


def _follow(row: Row, least: int | None, spans: dict[str, Row]) -> None:
    """Begin, prolong or end the spans of a partition at this answer."""
    short = least is not None and row["in_sync"] is not None and row["in_sync"] < least
    alone = row["leader"] is not None and row["leader"] < 0
    for kind, holds in (("leaderless", alone), ("under_min_isr", short)):
        if holds and kind not in spans:
            place = f"{row['topic']}-{row['partition']}"
            spans[kind] = {"kind": kind, "begins": row["at"], "ends": row["at"], "place": place}
            spans[kind] |= {"topic": row["topic"], "over": False}
        elif kind in spans:
            spans[kind]["ends"] = row["at"]
            spans[kind]["over"] = not holds


def _merged(spans: Sequence[Row]) -> list[Row]:
    """Spans of one kind that overlap are one, with the partitions concerned."""
    merged: list[Row] = []
    for row in sorted(spans, key=lambda r: (r["kind"], r["begins"], r["place"])):
        last = merged[-1] if merged else None
        if last and last["kind"] == row["kind"] and row["begins"] <= last["ends"]:
            last["ends"] = max(last["ends"], row["ends"])
            last["partitions"] = sorted({*last["partitions"], row["place"]})
        else:
            merged.append(
                {k: row[k] for k in ("kind", "begins", "ends")} | {"partitions": [row["place"]]}
            )
    return sorted(merged, key=lambda r: (r["begins"], r["kind"]))
