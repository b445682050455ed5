"""What both kinds of log source say of a record's text."""

from __future__ import annotations

from acktrail.evidence import EVIDENCE
from acktrail.redact import redact


def clean_text(text: bytes) -> str:
    """As text, without credentials; what is no text is replaced."""
    return redact(text.decode("utf-8", "replace").replace("\0", "\ufffd"))


def marker_of(text: bytes) -> str | None:
    """The first literal that made it worth keeping."""
    found = next((literal for literal in EVIDENCE if literal in text), None)
    return None if found is None else found.decode("ascii")
