"""The name that an incident, client or topic has in the address of a page.

Pages give their parts these names, and alerts link to them.
"""

from __future__ import annotations

import hashlib
import re

INCIDENT, CLIENT, TOPIC, GROUP = "incident", "client", "topic", "group"


def anchor(kind: str, name: str) -> str:
    """The fragment for *name*: readable, and of another name never the same."""
    plain = re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:60]
    if plain == name and plain:
        return f"{kind}-{plain}"
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    return f"{kind}-{plain}~{digest}"


def link(url: str, kind: str, name: str) -> str:
    """The address of that part of the report at *url*."""
    return f"{url.partition('#')[0]}#{anchor(kind, name)}"
