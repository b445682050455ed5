"""Alias rules: which host, client id and broker a log file, a target or an audit session means.

Every rule sees the same facts under the same names, whatever the evidence: `client_id` and `host`;
of logs also `path` and `source`, of metrics `instance`, `source` and every label, of audits
`session`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

_PORT = re.compile(r":\d{1,5}\Z")
_BROKER_NAME = re.compile(r"(?:\A|[-_])(?:(?:kafka|broker)[-_]?|b-)(\d{1,9})\Z", re.IGNORECASE)
_DIGITS = re.compile(r"\d{1,9}\Z", re.ASCII)


class Named(NamedTuple):
    """What the rules say; None where none says it."""

    host: str | None = None
    client_id: str | None = None
    broker: int | None = None
    broker_decided: bool = False
    """Whether a rule spoke of the broker, if only to say that the name holds no id."""


class Aliases:
    """Rules from the settings, in order; the first that names a thing decides it."""

    def __init__(self, rules: Sequence[Mapping[str, Any]] = ()) -> None:
        self._rules = [(r["field"], re.compile(r["match"]), r) for r in rules]
        self._known: dict[tuple[tuple[str, str], ...], Named] = {}

    def name(self, facts: Mapping[str, str | None]) -> Named:
        """What the rules give for *facts*."""
        if not self._rules:
            return Named()
        key = tuple(sorted((k, v) for k, v in facts.items() if v is not None))
        if key not in self._known:
            if len(self._known) > 100_000:
                self._known.clear()
            self._known[key] = self._look_up(dict(key))
        return self._known[key]

    def _look_up(self, facts: Mapping[str, str]) -> Named:
        host: str | None = None
        client_id: str | None = None
        broker: str | None = None
        for field, regex, rule in self._rules:
            found = regex.search(facts[field]) if field in facts else None
            if found is not None:
                host = host or _expanded(found, rule.get("host"))
                client_id = client_id or _expanded(found, rule.get("client_id"))
                if broker is None and rule.get("broker") is not None:
                    broker = found.expand(rule["broker"])
        number = int(broker) if broker is not None and _DIGITS.match(broker) else None
        return Named(host, client_id, number, broker is not None)


def _expanded(found: re.Match[str], template: str | None) -> str | None:
    return found.expand(template) or None if template else None


def named_session(
    settings: Mapping[str, str | None], session: str, aliases: Aliases
) -> dict[str, str | None]:
    """What an audit session said of itself, its client id and host after the rules."""
    facts = {name: settings.get(name) for name in ("client_id", "host")}
    named = aliases.name(facts | {"session": session})
    given = {"client_id": named.client_id, "host": named.host}
    return {**settings, **{name: text for name, text in given.items() if text is not None}}


@lru_cache(maxsize=65_536)
def host_of(instance: str | None) -> str | None:
    """The host of a target written host:port."""
    if not instance:
        return None
    return _PORT.sub("", instance) or None


@lru_cache(maxsize=65_536)
def broker_in_name(instance: str | None) -> int | None:
    """The broker id in a target's name: the number after `kafka`, `broker` or `b-` at the end of
    its first part. So kafka-2:7071, broker02.dc1, b-2.msk.example and prod-kafka2 are broker 2.
    """
    found = _BROKER_NAME.search((host_of(instance) or "").partition(".")[0])
    return None if found is None else int(found.group(1))
