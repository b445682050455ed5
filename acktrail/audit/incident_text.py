"""The sentence of an incident: what is wrong, of whom and where; cause, what to do, proof."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from acktrail.contracts.vocabulary import State

Event = Mapping[str, Any]

_MOST = 5
"""Names in a sentence, at most; of more, the number."""
_HAPPENED: dict[State, tuple[str, str]] = {
    # One message, several.
    State.LOST_AFTER_ACK: ("is gone", "are gone"),
    State.LOST_UNACKED: (
        "was sent with acks=0 and is not stored",
        "were sent with acks=0 and are not stored",
    ),
    State.REJECTED: ("was not stored", "were not stored"),
    State.LOST_INDETERMINATE: ("is not stored", "are not stored"),
    State.LOST_IN_CRASH: (
        "was lost when its producer ended",
        "were lost when their producer ended",
    ),
    State.UNACCOUNTED: (
        "is not stored, and no outcome was reported",
        "are not stored, and no outcome was reported",
    ),
    State.SKIPPED_BY_CONSUMER: ("was skipped by {group}", "were skipped by {group}"),
    State.EXPIRED_BEFORE_READ: (
        "was deleted before {group} read it",
        "were deleted before {group} read them",
    ),
}
_OF_SENDS = (
    *(State.REJECTED, State.LOST_INDETERMINATE),
    *(State.LOST_UNACKED, State.LOST_IN_CRASH),
)
"""States in which the application may have got an error."""
_PROOFS: dict[str, str] = {
    # By the reason of the state; `{where}` is offsets where they are known.
    "scanned_past": "a scan after the ack read {where} and did not find them",
    "beyond_end": "the log ended below {where} under a higher leader epoch",
    "beyond_end_clock": "the log ended below {where} twice, long after the ack",
    "complete_scan": "a later scan of the whole log did not find them",
    "told": "the client reported {error}",
    "jumped_over": "a member read on after {where} without reading them",
    "reset_while_empty": "the commits moved past {where} while the group had no member",
    "committed_unprocessed": "the commit's own metadata shows that {where} were not processed",
    "expired": "the log begins after {where}",
}


def incident_sentence(events: Sequence[Event], largest: Event) -> str:
    """What happened to all *events*; cause and fix are those of the *largest*."""
    count = sum(e["count"] for e in events)
    state = State(largest["state"])
    acked = "acknowledged " if state is State.LOST_AFTER_ACK else ""
    what = f"{count} {acked}message{'' if count == 1 else 's'}"
    happened = _HAPPENED[state][count > 1].format(group=largest["group"])
    who, where = _who(events), _where(events)
    told = _told(events) if state in _OF_SENDS else ""
    said = [f"{what}{who} on {where} {happened}.{told}", f"Cause: {largest['because']}."]
    proof = _proof(events, largest)
    return " ".join([*said, f"Proof: {proof}."] if proof else said)


def _told(events: Sequence[Event]) -> str:
    if all(e["told"] for e in events):
        return " The application got an error."
    some = any(e["told"] for e in events)
    return f" The application got no error{' for some of them' if some else ''}."


def _who(events: Sequence[Event]) -> str:
    clients = sorted({e["client_id"] for e in events if e["client_id"]})
    hosts = sorted({e["host"] for e in events if e["host"]})
    sessions = len({e["session"] for e in events})
    on = f" ({_listed(hosts, 'host')})" if hosts else ""
    if len(clients) == 1:
        return f" of {clients[0]}{on}"
    if clients:
        return f" of {_names(clients, 'client')}{on}"
    return f" of {sessions} producers{on}" if sessions > 1 else f" of one producer{on}"


def _where(events: Sequence[Event]) -> str:
    topic = events[0]["topic"]
    partitions = sorted({e["partition"] for e in events if e["partition"] is not None})
    if len(partitions) == 1:
        return f"{topic}-{partitions[0]}"
    if not partitions:
        return str(topic)
    return f"{topic} ({_listed([str(p) for p in partitions], 'partition')})"


def _names(names: Sequence[str], noun: str) -> str:
    return f"{len(names)} {noun}s" if len(names) > _MOST else ", ".join(names)


def _listed(names: Sequence[str], noun: str) -> str:
    if len(names) > _MOST:
        return f"{len(names)} {noun}s"
    return f"{noun}{'' if len(names) == 1 else 's'} {', '.join(names)}"


def _proof(events: Sequence[Event], largest: Event) -> str:
    text = _PROOFS.get(largest["reason"], "")
    return text.format(where=_offsets(events), error=largest["error"] or "an error")


def _offsets(events: Sequence[Event]) -> str:
    """The offsets, where they are one partition's; else words that need none."""
    partitions = {e["partition"] for e in events}
    known = [e for e in events if e["first_offset"] is not None and e["last_offset"] is not None]
    if len(partitions) != 1 or not known:
        return "their offsets"
    first, last = min(e["first_offset"] for e in known), max(e["last_offset"] for e in known)
    return f"offset {first}" if first == last else f"offsets {first}-{last}"
