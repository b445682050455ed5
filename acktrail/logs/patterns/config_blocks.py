"""The configuration blocks that Java clients print at their start."""

from __future__ import annotations

from acktrail.logs.configs import read_block
from acktrail.logs.layout import Layout, Text
from acktrail.logs.pattern import Fields, Found, Pattern


def _read(shown: Text, flat: str) -> Found | None:
    block = read_block(shown.lines)
    if block is None:
        return None
    kind, settings = block
    fields: Fields = {"kind": kind, "detail": "config_block", "settings": settings}
    fields["client_id"] = settings.get("client.id") or None
    return Found(fields, flat.find("values:"), Layout())


PATTERNS: tuple[Pattern, ...] = tuple(
    Pattern(
        kind,
        "config_block",
        (f"{client}Config values:",),
        _read,
        example=f"{client}Config values: \n\tacks = -1\n\tclient.id = p-1",
    )
    for kind, client in (("config_block", "Producer"), ("consumer_config_block", "Consumer"))
)
