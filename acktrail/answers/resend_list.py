"""What to send or read again after a loss: the lost messages of one incident, as ranges of ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from acktrail.answers.losses import Row, events_of
from acktrail.contracts.vocabulary import State
from acktrail.lake import Lake

COLUMNS = (
    *("incident", "action", "cluster", "topic", "group", "partition", "session", "client_id"),
    *("host", "first_seq", "last_seq", "count", "first_offset", "last_offset", "first_at"),
    *("last_at", "keys", "state", "told", "error", "unknown"),
)
SEND, SEND_TO_GROUP, READ = "send again", "send again to the group", "read again"
TOLD = "The application got an error: ask its owner whether it has already sent them again."
_ACTIONS = {
    State.SKIPPED_BY_CONSUMER.value: READ,
    State.EXPIRED_BEFORE_READ.value: SEND_TO_GROUP,
}
_ADVICE = {
    SEND: "Send them again: the log does not have them.",
    SEND_TO_GROUP: (
        "Send them again to group {group} only: they were in the log and have expired, and other "
        "groups may have read them."
    ),
    READ: (
        "Do not send them again: they are in the log. Let group {group} read their offsets again."
    ),
}
_NEVER_ACKED = (State.REJECTED.value, State.LOST_INDETERMINATE.value)
KEYS_UNKNOWN = "keys: audits hold ids, not keys or values; find the messages by session and id"


def resend_list(lake: Lake, incident: Mapping[str, Any]) -> list[Row]:
    """One row per range of ids of *incident*, with what to do and what is not known of it."""
    return [
        {
            **event,
            "incident": incident["incident"],
            "action": action_of(event["state"]),
            "keys": None,
            "unknown": list(_unknown(event)),
        }
        for event in events_of(lake, incident)
    ]


def action_of(state: str) -> str:
    """What helps a message in *state*."""
    return _ACTIONS.get(state, SEND)


def advice(incident: Mapping[str, Any]) -> str:
    """What to do, in a sentence or two."""
    action = action_of(incident["state"])
    told = f" {TOLD}" if action == SEND and incident["told"] else ""
    return _ADVICE[action].format(group=incident["group"]) + told


def unknown_of(rows: Iterable[Row]) -> list[str]:
    """What is not known of some of *rows*, each once, with the number of messages concerned."""
    listed = list(rows)
    everything = sum(row["count"] for row in listed)
    found: dict[str, int] = {}
    for row in listed:
        for what in row["unknown"]:
            found[what] = found.get(what, 0) + row["count"]
    return [
        what if count == everything else f"{what} ({count:,} of {everything:,} messages)"
        for what, count in found.items()
    ]


def text_columns(rows: Sequence[Row]) -> list[str]:
    """The columns a person reads: those that differ between rows, and the ranges."""
    named = [n for n in ("client_id", "host") if len({row[n] for row in rows}) > 1]
    ranges = ("first_seq", "last_seq", "count", "first_offset", "last_offset")
    return [*named, "session", "partition", *ranges, "first_at", "last_at"]


def _unknown(event: Mapping[str, Any]) -> Iterator[str]:
    yield KEYS_UNKNOWN
    state = event["state"]
    if event["partition"] is None:
        yield "partition: no report names it"
    if event["first_offset"] is None and state not in _NEVER_ACKED:
        yield "offsets: no report names them"
    elif event["first_offset"] is not None and not _is_dense(event):
        yield "offsets: other records are between the first and the last"
    if event["first_at"] is None:
        yield "times: no report has them"
    if state == State.LOST_IN_CRASH.value:
        yield "number: the process ended without a last report, so there may be more"
    if not event["client_id"]:
        yield "client: the session reported no client id"


def _is_dense(event: Mapping[str, Any]) -> bool:
    return bool(event["last_offset"] - event["first_offset"] + 1 == event["count"])
