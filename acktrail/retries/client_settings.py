"""The settings of one client: printed, reported by its audit sessions, or listed by the user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any, Final

from acktrail.retries.client_sessions import AuditSession
from acktrail.retries.signs import RetrySettings

SETTINGS: Final = {
    "retries": "retries",
    "delivery.timeout.ms": "delivery_timeout_ms",
    "request.timeout.ms": "request_timeout_ms",
    "linger.ms": "linger_ms",
    "retry.backoff.ms": "retry_backoff_ms",
    "retry.backoff.max.ms": "retry_backoff_max_ms",
}
"""What a client prints to the name it has here, which is also its column in `client_configs`."""
_ALIASES: Final = {
    "message.timeout.ms": "delivery.timeout.ms",
    "queue.buffering.max.ms": "linger.ms",
}
"""librdkafka's own names."""
VERSION: Final = "client.version"
INVENTORY_NAMES: Final = (*SETTINGS, *_ALIASES, VERSION)
"""What `[inventory]` may hold for a client."""


def read_settings(
    known_from: str, settings: Mapping[str, str], since: datetime | None = None, origin: str = ""
) -> RetrySettings:
    """Settings by their Kafka names (dots or underscores); what is not a number is unknown."""
    numbers: dict[str, int] = {}
    for name, value in settings.items():
        dotted = name.replace("_", ".")
        field = SETTINGS.get(_ALIASES.get(dotted, dotted))
        if field is not None:
            try:
                numbers[field] = int(float(value))
            except (TypeError, ValueError, OverflowError):
                continue
    version = settings.get(VERSION) or settings.get("client_version")
    known = RetrySettings(known_from, since=since, client_version=version, origin=origin)
    return replace(known, **numbers)  # type: ignore[arg-type]


def settings_known(
    rows: Sequence[Mapping[str, Any]],
    host: str,
    audited: Sequence[AuditSession],
    inventory: RetrySettings | None,
) -> list[RetrySettings]:
    """The settings known of a client on *host*: printed there, audited, else printed anywhere.

    The inventory fills in what a session leaves out, and is used where nothing else is known.
    """
    own = [r for r in rows if (r["host"] or "") == host]
    sessions = [_session_settings(s, inventory) for s in audited]
    sessions = [s for s in sessions if s != replace(s, **_UNKNOWN)]
    known = [
        read_settings(
            r["key"], dict(r["settings"] or ()), r["at"] and r["at"].astimezone(UTC), r["origin"]
        )
        for r in own or ([] if sessions else rows)
    ]
    return [*known, *sessions, *([] if inventory is None else [inventory])]


_UNKNOWN: Final[Mapping[str, Any]] = dict.fromkeys(SETTINGS.values())


def _session_settings(session: AuditSession, inventory: RetrySettings | None) -> RetrySettings:
    """What a session reported, and the rest from the inventory."""
    known = read_settings(f"audit session {session.name}", session.settings, session.since)
    known = replace(known, until=session.until)
    if inventory is None:
        return known
    more = {n: getattr(inventory, n) for n in _UNKNOWN if getattr(known, n) is None}
    if known == replace(known, **more):
        return known
    return replace(known, **more, known_from=f"{known.known_from}, {inventory.known_from}")


def listed(client_id: str, inventory: Mapping[str, Mapping[str, str]]) -> RetrySettings | None:
    """What the inventory holds for a client: by its name, else by the first pattern that fits."""
    fitting = [client_id] if client_id in inventory else []
    fitting = fitting or sorted(p for p in inventory if fnmatchcase(client_id, p))
    return read_settings(f"inventory/{fitting[0]}", inventory[fitting[0]]) if fitting else None
