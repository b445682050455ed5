"""Where names on a page lead: in a report to its parts, on the live page to other pages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from urllib.parse import quote

from acktrail.links import CLIENT, GROUP, INCIDENT, TOPIC, anchor

_LIVE: ContextVar[bool] = ContextVar("live", default=False)
_PAGES = {
    CLIENT: "/?client={}",
    TOPIC: "/?topic={}",
    GROUP: "/groups?group={}",
    INCIDENT: "/incidents?incident={}",
}


@contextmanager
def live_page() -> Iterator[None]:
    """Names that are written in this block lead to pages of their own."""
    before = _LIVE.set(True)
    try:
        yield
    finally:
        _LIVE.reset(before)


def address(kind: str, name: str) -> str:
    """The address of what is known of *name*."""
    if _LIVE.get():
        return _PAGES[kind].format(quote(name.encode("utf-8", "surrogatepass"), safe=""))
    return f"#{anchor(kind, name)}"
