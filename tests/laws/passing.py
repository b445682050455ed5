"""What of the code a value passes: the functions that are given it, or give it on, in a run.

A value is known by its marks, texts that stand nowhere else. A function *passes* it where one of
its arguments, or what it returns or yields, holds a mark; it *gives it on* where the result does.
Those that were on the stack at such a moment lie *around* it: the value went through them inside
of something else, a generator or an object.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).parents[2]
OFTEN = 100
"""A function that was called so often is not looked at again."""
_DEEP = 4
_MANY = 50
"""So many levels, and so many things on one level, are looked into."""
Function = tuple[str, str]
"""File below the root, and qualified name."""


@dataclass
class Passed:
    """What was seen."""

    passing: set[Function] = field(default_factory=set)
    giving: set[Function] = field(default_factory=set)
    around: set[Function] = field(default_factory=set)
    called: set[Function] = field(default_factory=set)
    kinds: set[Function] = field(default_factory=set)
    """Of the project's objects that held a mark: file and name of the class."""


def _texts(value: Any, depth: int = 0) -> Iterator[str]:
    kind = type(value).__module__
    if kind.startswith("great_expectations"):
        return
    if kind.startswith("pyarrow"):
        if hasattr(value, "to_pylist"):
            yield repr(value.slice(0, _MANY).to_pylist()) if hasattr(value, "slice") else ""
        return
    inside: list[Any] | None = None
    if isinstance(value, (list, tuple)):
        inside = list(value[:_MANY])
    elif isinstance(value, dict):
        inside = [each for pair in islice(value.items(), _MANY) for each in pair]
    elif is_dataclass(value) and not isinstance(value, type):
        inside = [getattr(value, f.name, None) for f in fields(value)]
    if inside is not None and depth < _DEEP:
        for each in inside:
            yield from _texts(each, depth + 1)
    else:
        yield repr(value)


def _name(code: CodeType) -> Function:
    """A comprehension or a lambda counts as the function around it."""
    return str(Path(code.co_filename).relative_to(ROOT)), code.co_qualname.split(".<locals>.<")[0]


def _forget(packages: tuple[str, ...]) -> None:
    """Clear caches: what was worked out in an earlier test is worked out again."""
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] in packages:
            for value in list(vars(module).values()):
                if hasattr(value, "cache_clear"):
                    value.cache_clear()


@contextmanager
def passed_by(marks: tuple[str, ...], packages: tuple[str, ...]) -> Iterator[Passed]:
    """Look on while code of *packages* runs, in all threads that begin meanwhile."""
    seen = Passed()
    looked: Counter[CodeType] = Counter()
    ours = tuple(f"{ROOT}/{package}/" for package in packages)
    looking = threading.local()
    _forget(packages)

    def holds(value: Any) -> bool:
        try:
            found = any(mark in text for text in _texts(value) for mark in marks)
        except Exception:  # of a value that is half made, or cannot be shown
            return False
        if found and type(value).__module__.split(".")[0] in packages:
            place = sys.modules[type(value).__module__].__file__ or ""
            seen.kinds.add((str(Path(place).relative_to(ROOT)), type(value).__name__))
        return found

    def look(frame: FrameType, event: str, result: Any) -> None:
        code = frame.f_code
        if event != "return" or not code.co_filename.startswith(ours):
            return
        if getattr(looking, "on", False) or looked[code] >= OFTEN:
            return
        looked[code] += 1
        looking.on = True
        try:
            name = _name(code)
            seen.called.add(name)
            count = code.co_argcount + code.co_kwonlyargcount
            given = [frame.f_locals.get(n) for n in code.co_varnames[:count]]
            gives = holds(result)
            if gives:
                seen.giving.add(name)
            given_it = [holds(value) for value in given]  # all: `kinds` is filled
            if gives or any(given_it):
                seen.passing.add(name)
                above = frame.f_back
                while above is not None:
                    if above.f_code.co_filename.startswith(ours):
                        seen.around.add(_name(above.f_code))
                    above = above.f_back
        finally:
            looking.on = False

    threading.setprofile(look)
    sys.setprofile(look)
    try:
        yield seen
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
