"""The timeline of one incident: sends, retries, broker events and elections, in order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from acktrail.answers.losses import Row, events_of
from acktrail.answers.many import top
from acktrail.contracts import Table
from acktrail.contracts.bronze import CLUSTER_STATES
from acktrail.contracts.silver import BROKER_EVENTS, CONSUMER_EVENTS, PRODUCER_EVENTS
from acktrail.lake import Lake

COLUMNS = ("at", "who", "what", "count", "until", "evidence")

_WORDS = {
    "retry": "retries: {error}, {attempts_left} attempts left",
    "split_retry": "splits a batch that is too large and retries",
    "expired": "gives up: its time ran out",
    "send_failed": "gives up: {error}",
    "connection_failure": "loses its connection to broker {node}",
    "fatal_sequence": "cannot go on: {error}",
    "dropped_at_close": "is closed with records unsent",
    "broker_append_error": "refuses records: {error}",
    "isr_shrink": "in-sync replicas shrink to {isr_after}",
    "isr_expand": "in-sync replicas grow to {isr_after}",
    "truncation": "cuts its log to offset {offset} (high watermark {high_watermark})",
    "unclean_election": "an unclean election makes {leader} leader, epoch {leader_epoch}",
    "last_known_leader": "the last known leader, {leader}, leads again, epoch {leader_epoch}",
    "leader_recovering": "leads, and may lack committed records",
    "leader_start": "leads from offset {offset} on, epoch {leader_epoch}",
    "log_created": "creates the log: it was not there",
    "high_watermark_back": "its high watermark goes back to {offset}",
    "offset_reset": "position reset to {offset}",
    "rebalance": "rebalance",
    "poll_timeout": "did not poll in time",
    "leave_group": "leaves the group",
    "commit_failed": "commit failed: {error}",
    "acks0_close": "cuts off a producer with acks=0",
}


MOST = 20_000
"""Events of clients, brokers and groups that are read, at most, of each."""


def timeline(lake: Lake, incident: Mapping[str, Any], around: timedelta) -> list[Row]:
    """What happened from *around* before the first loss to *around* after the last."""
    return timeline_of(lake, incident, events_of(lake, incident), around)


def timeline_of(
    lake: Lake, incident: Mapping[str, Any], losses: list[Row], around: timedelta
) -> list[Row]:
    """As *timeline*, of the *losses* that the incident is made of."""
    proofs = {key for loss in losses for key in loss["evidence"]}
    found = list(_sends(losses))
    if incident["started_at"] is not None:
        ended = incident["ended_at"] or incident["started_at"]
        window = (incident["started_at"] - around, ended + around)
        clients = {loss["client_id"] for loss in losses if loss["client_id"]}
        found += _client_events(lake, incident, window, clients)
        found += _others(lake, BROKER_EVENTS, incident, window, proofs)
        found += _others(lake, CONSUMER_EVENTS, incident, window, proofs)
        found += _elections(lake, incident, window)
    for row in found:
        row["evidence"] = row.pop("key", None) in proofs
    found = [row for row in found if row["at"] is not None]
    return list(_together(sorted(found, key=lambda r: (r["at"], r["who"], r["what"]))))


def _sends(losses: list[Row]) -> Iterator[Row]:
    for loss in losses:
        if loss["first_at"] is None:
            continue
        who = loss["client_id"] or loss["session"]
        ids = f"ids {loss['first_seq']} to {loss['last_seq']}"
        place = "" if loss["partition"] is None else f" of partition {loss['partition']}"
        offsets = (
            ""
            if loss["first_offset"] is None
            else f", acked at offsets {loss['first_offset']} to {loss['last_offset']}{place}"
        )
        yield {
            "at": loss["first_at"],
            "who": who,
            "what": f"gets an error for {ids}"
            if loss["told"]
            else f"sends {ids}{offsets}: lost; the application got no error",
            "until": loss["last_at"],
        }


Span = tuple[datetime, datetime]


def _near(incident: Mapping[str, Any], window: Span) -> Any:
    return (
        (pc.field("cluster") == incident["cluster"])
        & (pc.field("at") >= window[0])
        & (pc.field("at") <= window[1])
    )


def _of_topic(incident: Mapping[str, Any]) -> Any:
    """What is about the topic, or about none, in words that a timeline has."""
    topic = pc.field("topic")
    about = topic.is_null() | topic.isin(["", incident["topic"]])
    return about & pc.field("kind").isin(list(_WORDS))


def _first(lake: Lake, table: Table, where: Any) -> list[Row]:
    order = [("at", "ascending"), ("record_key", "ascending")]
    return top(lake, table, where, table.names, order, MOST).rows


def _client_events(
    lake: Lake, incident: Mapping[str, Any], window: Span, clients: set[str]
) -> Iterator[Row]:
    """Of the clients concerned: what they printed about the topic, or about no topic."""
    where = _near(incident, window) & _of_topic(incident)
    if clients:
        where &= pc.field("client_id").isin(sorted(clients))
    else:
        where &= pc.field("topic") == incident["topic"]
    for row in _first(lake, PRODUCER_EVENTS, where):
        yield _said(row, row["client_id"] or row["host"] or "a producer", PRODUCER_EVENTS)


def _others(
    lake: Lake, table: Table, incident: Mapping[str, Any], window: Span, proofs: set[str]
) -> Iterator[Row]:
    """What brokers or consumers printed; what proves the cause, whatever their clocks say."""
    own = [key.partition(":")[2] for key in proofs if key.startswith(f"{table.name}:")]
    keys = pa.array(own, pa.string())  # typed: there may be none
    proof = (pc.field("cluster") == incident["cluster"]) & pc.field("event_key").isin(keys)
    where = (_near(incident, window) | proof) & _of_topic(incident)
    for row in _first(lake, table, where):
        if table is BROKER_EVENTS:
            who = "a broker" if row["broker"] is None else f"broker {row['broker']}"
        else:
            who = row["client_id"] or row["group"] or "a consumer"
        yield _said(row, who, table)


def _said(row: Row, who: str, table: Table) -> Row:
    place = "" if row["partition"] is None else f"partition {row['partition']}: "
    values = defaultdict(lambda: "?", {k: v for k, v in row.items() if v is not None})
    return {
        "at": row["at"],
        "who": who,
        "what": place + _WORDS[row["kind"]].format_map(values),
        "kind": (who, row["kind"], row["partition"], row["error"]),
        "key": f"{table.name}:{row['event_key']}",
    }


def _elections(lake: Lake, incident: Mapping[str, Any], window: Span) -> Iterator[Row]:
    """Changes of leader, epoch and in-sync replicas between two answers of the cluster."""
    where = _near(incident, window) & (pc.field("topic") == incident["topic"])
    rows = lake.read(CLUSTER_STATES, where).to_pylist()
    rows.sort(key=lambda r: (r["partition"], r["at"]))
    for number, same in groupby(rows, key=lambda r: r["partition"]):
        for before, after in pairwise(list(same)):
            what = _change(before, after)
            if what:
                yield {
                    "at": after["at"],
                    "who": "cluster",
                    "what": f"partition {number}: {what}",
                    "key": f"cluster_states:/{after['topic']}/{number}/{_ms(after['at'])}",
                }


def _change(before: Row, after: Row) -> str:
    found = []
    if after["leader"] != before["leader"]:
        nobody = after["leader"] is None or after["leader"] < 0
        leader = "no broker leads" if nobody else f"broker {after['leader']} leads"
        epoch = "" if after["leader_epoch"] is None else f" (epoch {after['leader_epoch']})"
        found.append(leader + epoch)
    if sorted(after["isr"] or []) != sorted(before["isr"] or []):
        found.append(f"in sync: {sorted(after['isr'] or [])}")
    old, new = before["latest_offset"], after["latest_offset"]
    if old is not None and new is not None and 0 <= new < old:
        found.append(f"the log ends at {new}, it ended at {old}")
    return "; ".join(found)


def _ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)


def _together(rows: list[Row]) -> Iterator[Row]:
    """What one client repeats (attempts left apart) is one line with a count."""
    for _, same in groupby(enumerate(rows), key=lambda e: e[1].get("kind", e[0])):
        listed = [row for _, row in same]
        first, last = listed[0], listed[-1]
        until = last.get("until") or (last["at"] if len(listed) > 1 else None)
        what = first["what"]
        if len(listed) > 1 and last["what"] != what:
            what = f"{what} … {last['what'].rpartition(', ')[2]}"
        yield {
            "at": first["at"],
            "who": first["who"],
            "what": what,
            "count": len(listed),
            "until": until,
            "evidence": any(row["evidence"] for row in listed),
        }
