"""Which records are kept and read, by the words of all patterns, and the text that is kept.

A record without any of the words is put aside before it is looked at.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from acktrail.logs.patterns import PATTERNS
from acktrail.logs.redact import HIDDEN, redact


def _fewest(words: Iterable[str]) -> tuple[str, ...]:
    """*words* without those that hold another one."""
    known = dict.fromkeys(words)
    return tuple(w for w in known if not any(v in w for v in known if v != w))


_COMMONEST_FIRST = sorted(PATTERNS, key=lambda p: p.stock is None)
EVIDENCE: tuple[bytes, ...] = tuple(
    word.encode("ascii")
    for word in _fewest(w for p in _COMMONEST_FIRST for w in (*p.words, *p.sure))
)
"""A record that holds none of these is not kept by an agent. A superset: the reading decides."""

SURE_WORDS: tuple[str, ...] = tuple(dict.fromkeys(word for p in PATTERNS for word in p.sure))
"""A record that holds one of these is an event, or is counted as unread."""

UNREAD_WORDS: tuple[str, ...] = _fewest(
    word for p in PATTERNS for word in (*p.sure, *(p.words if p.may_refuse else ()))
)
"""The words of which one stands in every record that is unread."""


@cache
def words_of(side: str) -> tuple[str, ...]:
    """The words of which one stands in every record of *side*."""
    return _fewest(word for p in PATTERNS if p.side == side for word in p.words)


def may_be_evidence(text: bytes) -> bool:
    """Whether the reading should see this text at all."""
    return marker_of(text) is not None


def marker_of(text: bytes) -> str | None:
    """The first word for which the record is kept."""
    for literal in EVIDENCE:
        if literal in text:
            return literal.decode("ascii")
    return None


def clean_text(text: bytes) -> str:
    """A record as it is kept: as text, without credentials; what is not text is replaced.

    Where a credential has no visible end, the words of an event may be hidden with it: they are
    named on a line of their own, so that the record is counted as unread.
    """
    printed = text.decode("utf-8", "replace").replace("\0", "\ufffd")
    kept = redact(printed)
    if kept is printed or kept == printed:
        return kept
    hidden = [words for words in SURE_WORDS if words in printed and words not in kept]
    return "\n".join([kept, *(f"{HIDDEN} {words}" for words in hidden)])
