"""One row of the doctor's answer, and what a probe returns beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

OK, WARNING, FAILED = "ok", "warning", "failed"


class Row(NamedTuple):
    """What was looked at, how it is, and what to do about it."""

    what: str
    state: str
    remark: str


class Clock(NamedTuple):
    """How far a server's clock is ahead of this machine's, in seconds."""

    server: str
    ahead_s: float


@dataclass(frozen=True)
class Probe:
    """One thing to look at; *run* returns what it found, or raises what is wrong."""

    what: str
    run: Callable[[], list[Row | Clock]]


def failed(what: str, error: Exception) -> Row:
    """The row for a probe that raised."""
    from acktrail.errors import AcktrailError

    said = " ".join(str(error).split()) or type(error).__name__
    if not isinstance(error, AcktrailError):
        said = f"{type(error).__name__}: {said}"
    return Row(what, FAILED, said)


def counted(number: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
