"""What belongs together: losses of one cause, place and time, whatever the number of sessions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from acktrail.contracts.vocabulary import Confidence

QUIET_MS = 300_000
"""Losses of one kind that begin this long after the last one ended are another incident."""

_KIND = ("cluster", "topic", "group", "state", "cause")
_ORDER = tuple(Confidence)

Event = Mapping[str, Any]


def name_of(kind: tuple[str, ...], started_ms: int | None) -> str:
    """The incident's name: the same for the same kind and start."""
    text = "\x1f".join([*kind, "" if started_ms is None else str(started_ms)])
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def group_losses(events: Iterable[Event]) -> list[tuple[str, list[Event]]]:
    """Incidents with their events; events have `first_ms` and `last_ms`."""
    kinds: dict[tuple[str, ...], list[Event]] = {}
    for event in events:
        kinds.setdefault(tuple(event[name] for name in _KIND), []).append(event)
    found = []
    for kind in sorted(kinds):
        for together in _in_time(kinds[kind]):
            start = min(
                (e["first_ms"] for e in together if e["first_ms"] is not None), default=None
            )
            found.append((name_of(kind, start), together))
    return found


def _in_time(events: list[Event]) -> list[list[Event]]:
    """Split where it was quiet for long; events without a time are one incident."""
    timed = [e for e in events if e["first_ms"] is not None]
    untimed = [e for e in events if e["first_ms"] is None]
    groups: list[list[Event]] = [untimed] if untimed else []
    end: int | None = None
    for event in sorted(timed, key=lambda e: (e["first_ms"], e["session"], e["first_seq"])):
        if end is None or event["first_ms"] > end + QUIET_MS:
            groups.append([])
            end = event["last_ms"] or event["first_ms"]
        groups[-1].append(event)
        end = max(end, event["last_ms"] or event["first_ms"])
    return groups


def incident_row(name: str, events: list[Event]) -> dict[str, Any]:
    """A row of `loss_incidents`."""
    one = min(events, key=lambda e: (e["session"], e["first_seq"]))
    clients = sorted({e["client_id"] for e in events if e["client_id"]})
    ids = sum(e["count"] for e in events)
    sessions = len({e["session"] for e in events})
    return {
        **{column: one[column] for column in _KIND},
        "incident": name,
        "confidence": max((e["confidence"] for e in events), key=_ORDER.index),
        "told": all(e["told"] for e in events),
        "started_ms": min(
            (e["first_ms"] for e in events if e["first_ms"] is not None), default=None
        ),
        "ended_ms": max((e["last_ms"] for e in events if e["last_ms"] is not None), default=None),
        "ids": ids,
        "events": len(events),
        "sessions": sessions,
        "partitions": sorted({e["partition"] for e in events if e["partition"] is not None}),
        "client_ids": clients[:20],
        "because": _sentence(one, ids, sessions, clients),
        "evidence": list(dict.fromkeys(k for e in events for k in e["evidence"]))[:50],
    }


def _sentence(one: Event, ids: int, sessions: int, clients: list[str]) -> str:
    who = (
        clients[0]
        if len(clients) == 1
        else f"{sessions} producers"
        if sessions > 1
        else "one producer"
    )
    what = {
        "skipped_by_consumer": "were skipped by",
        "expired_before_read": "expired before they were read by",
        "rejected": "were refused, and the application was told",
    }.get(one["state"], "were lost")
    audience = (
        f" {one['group']}" if one["state"] in ("skipped_by_consumer", "expired_before_read") else ""
    )
    plural = "message" if ids == 1 else "messages"
    if ids == 1:
        what = what.replace("were", "was", 1)
    return f"{ids} {plural} of {who} to {one['topic']} {what}{audience}: {one['because']}."
