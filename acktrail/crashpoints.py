"""Named points at which a test may end the process as a power cut would.

`ACKTRAIL_CRASH_AT=name` (or `name#3` for the third time it is passed) ends the process there
without any clean-up. Unset, this costs one dictionary look-up.
"""

from __future__ import annotations

import os
from collections import Counter

VARIABLE = "ACKTRAIL_CRASH_AT"
_passed: Counter[str] = Counter()


def crash_point(name: str) -> None:
    """End the process here if the environment asks for it."""
    wanted = os.environ.get(VARIABLE)
    if not wanted:
        return
    _passed[name] += 1
    point, _, count = wanted.partition("#")
    if point == name and _passed[name] == int(count or 1):
        os._exit(137)
