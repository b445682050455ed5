"""What the address of a live page asks: a range of time and names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from urllib.parse import urlencode

from acktrail.answers.inquiry import Inquiry
from acktrail.errors import UsageError
from acktrail.pages.html import Html, tag
from acktrail.window import instant

NAMES = {"cluster": "cluster", "topic": "topic", "client": "client_id", "group": "group"}
"""Names in an address, and what they are called in an inquiry."""
DEFAULT = "24h"
LONGEST = timedelta(days=31)
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


def inquiry_of(query: Mapping[str, str], now: datetime) -> Inquiry:
    """The inquiry that *query* writes; UsageError with what to write instead."""
    until = instant(query["until"]) if query.get("until") else now
    since = instant(query["since"]) if query.get("since") else until - _length(query)
    if since >= until:
        raise UsageError("The range of time ends before it begins.")
    if until - since > LONGEST:
        raise UsageError(
            "The range of time is longer than 31 days. Ask for less, or `acktrail report`."
        )
    names = {ours: query.get(name) or None for name, ours in NAMES.items()}
    return Inquiry(since, until, now, **names)


def _length(query: Mapping[str, str]) -> timedelta:
    text = query.get("last") or DEFAULT
    found = re.fullmatch(r"(\d{1,5})([mhd])", text.strip())
    if found is None or not int(found[1]):
        raise UsageError(f"last={text} is not a length of time. Write 30m, 24h or 7d.")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def kept(query: Mapping[str, str]) -> str:
    """The part of the address that goes along to the next page, with its question mark."""
    given = {n: query[n] for n in ("last", "since", "until", *NAMES) if query.get(n)}
    return f"?{urlencode(given)}" if given else ""


def form(path: str, query: Mapping[str, str]) -> Html:
    """The fields that change the address."""
    fields = (
        ("last", "Last", "24h"),
        ("since", "or since (UTC)", "2026-01-31T07:00"),
        ("until", "until (UTC)", "now"),
        ("cluster", "Cluster", "all"),
        ("topic", "Topic", "all"),
        ("client", "Client", "all"),
        ("group", "Group", "all"),
    )
    inputs = [
        tag(
            "label",
            words,
            tag("input", name=name, value=query.get(name, ""), placeholder=hint, maxlength="255"),
        )
        for name, words, hint in fields
    ]
    return tag(
        "form", *inputs, tag("button", "Show", type="submit"), method="get", action=path,
        class_="ask",
    )  # fmt: skip
