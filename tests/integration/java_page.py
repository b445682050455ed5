"""The blocks for Java of docs/audit_your_application.md."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "audit_your_application.md"
_NAMED = re.compile(
    r"`(\w+)\.properties`[^`]*?\n\n```properties\n(.*?)^```", re.MULTILINE | re.DOTALL
)


def block(name: str, servers: str = "") -> dict[str, str]:
    """The settings in the block of that file."""
    (text,) = (text for found, text in _NAMED.findall(PAGE.read_text()) if found == name)
    pairs = [line.split("=", 1) for line in text.replace("kafka:9092", servers).splitlines()]
    return dict(pairs)
