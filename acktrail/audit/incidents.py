"""What belongs together: losses of one cause, place and time, whatever the number of sessions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from acktrail.audit.incident_text import incident_sentence
from acktrail.contracts.vocabulary import Confidence

QUIET_MS = 300_000
"""Losses of one kind that begin this long after the last one ended are another incident."""

KIND = ("cluster", "topic", "group", "state", "cause")
_ORDER = tuple(Confidence)

Event = Mapping[str, Any]


def group_losses(events: Iterable[Event]) -> list[tuple[str, list[Event]]]:
    """Incidents with their names and events; events have `first_ms` and `last_ms`.

    The name is the same for the same kind and start.
    """
    kinds: dict[tuple[str, ...], list[Event]] = {}
    for event in events:
        kinds.setdefault(tuple(event[name] for name in KIND), []).append(event)
    found = []
    for kind in sorted(kinds):
        for together in _in_time(kinds[kind]):
            starts = [e["first_ms"] for e in together if e["first_ms"] is not None]
            text = "\x1f".join([*kind, str(min(starts)) if starts else ""])
            name = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
            found.append((name, together))
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
    one = max(events, key=lambda e: (e["count"], e["session"], -e["first_seq"]))
    starts = [e["first_ms"] for e in events if e["first_ms"] is not None]
    ends = [e["last_ms"] for e in events if e["last_ms"] is not None]
    return {
        **{column: one[column] for column in KIND},
        "incident": name,
        "confidence": max((e["confidence"] for e in events), key=_ORDER.index),
        "told": all(e["told"] for e in events),
        "started_ms": min(starts, default=None),
        "ended_ms": max(ends, default=None),
        "ids": sum(e["count"] for e in events),
        "events": len(events),
        "sessions": len({e["session"] for e in events}),
        "partitions": _distinct(events, "partition"),
        "client_ids": _distinct(events, "client_id")[:20],
        "hosts": _distinct(events, "host")[:20],
        "because": incident_sentence(events, one),
        "evidence": list(dict.fromkeys(k for e in events for k in e["evidence"]))[:50],
    }


def _distinct(events: list[Event], column: str) -> list[Any]:
    return sorted({e[column] for e in events if e[column] not in (None, "")})
