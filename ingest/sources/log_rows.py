"""A record's text as both kinds of log source keep it."""

from __future__ import annotations

from acktrail.logs.prefilter import SURE_WORDS
from acktrail.logs.redact import HIDDEN, redact


def clean_text(text: bytes) -> str:
    """As text, without credentials; what is not text is replaced.

    Where a credential has no visible end, the words of an event may be hidden with it: they are
    named on a line of their own, so that the record is counted as unread.
    """
    said = text.decode("utf-8", "replace").replace("\0", "\ufffd")
    kept = redact(said)
    if kept is said or kept == said:
        return kept
    hidden = [words for words in SURE_WORDS if words in said and words not in kept]
    return "\n".join([kept, *(f"{HIDDEN} {words}" for words in hidden)])
