"""What is said of a chain that is over: when, how, and what proves it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

RECOVERED: Final = "recovered"
EXHAUSTED: Final = "exhausted"
RESTARTED: Final = "restarted"
ENDED_UNKNOWN: Final = "ended_unknown"
"""Its client was closed or failed for good: it is over, answered before or not."""


@dataclass(frozen=True)
class Ending:
    """When and how a chain ended, and what proves it.

    Without *at* and *by* nothing is proven: then *because* is only what was seen of it.
    """

    at: datetime | None
    by: str | None
    because: str
    evidence: tuple[str, ...]
