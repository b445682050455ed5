"""Alias rules: which host and client id a log file or a metrics target means."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

_PORT = re.compile(r":\d{1,5}\Z")


class Aliases:
    """Rules from the settings, in order; the first that names a thing decides it."""

    def __init__(self, rules: Sequence[Mapping[str, Any]] = ()) -> None:
        self._rules = [(r["field"], re.compile(r["match"]), r) for r in rules]
        self._known: dict[tuple[tuple[str, str], ...], tuple[str | None, str | None]] = {}

    def name(self, facts: Mapping[str, str | None]) -> tuple[str | None, str | None]:
        """The host and the client id that the rules give for *facts*; None where none does."""
        if not self._rules:
            return None, None
        key = tuple(sorted((k, v) for k, v in facts.items() if v is not None))
        if key not in self._known:
            if len(self._known) > 100_000:
                self._known.clear()
            self._known[key] = self._look_up(dict(key))
        return self._known[key]

    def _look_up(self, facts: Mapping[str, str]) -> tuple[str | None, str | None]:
        host: str | None = None
        client_id: str | None = None
        for field, regex, rule in self._rules:
            found = regex.search(facts.get(field, "")) if field in facts else None
            if found is not None:
                host = host or _expanded(found, rule.get("host"))
                client_id = client_id or _expanded(found, rule.get("client_id"))
        return host, client_id


def _expanded(found: re.Match[str], template: str | None) -> str | None:
    if not template:
        return None
    try:
        return found.expand(template) or None
    except (re.error, IndexError):
        return template


@lru_cache(maxsize=65_536)
def host_of(instance: str | None) -> str | None:
    """The host of a target written host:port."""
    if not instance:
        return None
    return _PORT.sub("", instance) or None
