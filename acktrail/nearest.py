"""The known names that are closest to one that was probably mistyped."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str], most: int = 3) -> list[str]:
    """Up to *most* of the *known* names that look like *name*, the most similar first."""
    by_lower = {each.lower(): each for each in sorted(known, reverse=True)}
    found = difflib.get_close_matches(name.lower(), sorted(by_lower), n=most, cutoff=0.6)
    return [by_lower[each] for each in found]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """` Did you mean a, b or c?`, to be put behind a sentence; empty where nothing is similar."""
    return suggestion(nearest(name, known))


def suggestion(names: list[str]) -> str:
    """` Did you mean a, b or c?` for these names; empty for none."""
    if not names:
        return ""
    *others, last = names
    listed = f"{', '.join(others)} or {last}" if others else last
    return f" Did you mean {listed}?"
