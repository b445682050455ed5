"""A row of the results: our time against a peer's on the same data."""

from __future__ import annotations

from typing import Any


def ratio_row(
    name: str, ours: float, peer: str, theirs: float, bar: float | None = None
) -> dict[str, Any]:
    return {
        "name": name,
        "ours_s": round(ours, 3),
        "peer": peer,
        "peer_s": round(theirs, 3),
        "ratio": round(ours / theirs, 3),
        "bar": bar,
    }
