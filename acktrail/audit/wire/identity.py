"""Who a message is: a session and a number in it; and which partition of the lake it goes to."""

from __future__ import annotations

import hashlib
import re
import secrets
from datetime import UTC, datetime

BLOCK_BITS = 15
BLOCK_IDS = 1 << BLOCK_BITS
"""Ids in one block: 32,768, a bitmap of 4 KiB."""
BUCKET_BITS = 6
"""64 blocks of a session are in one bucket, a partition of the audit tables."""

_OURS = re.compile(r"[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}")


def new_session(now_ms: int) -> str:
    """A session id that carries its start: 48 bits of time, the rest random (as UUIDv7), as hex."""
    random_bits = secrets.randbits(74)
    high = (now_ms & (1 << 48) - 1) << 16 | 0x7000 | random_bits >> 62
    low = 0b10 << 62 | random_bits & (1 << 62) - 1
    return f"{high:016x}{low:016x}"


def session_started_ms(session: str) -> int | None:
    """When *session* started, where its id has the time; None for a foreign name."""
    return int(session[:12], 16) if _OURS.fullmatch(session) else None


def bucket_of(session: str, block: int) -> str:
    """The partition of the audit tables that *block* of *session* belongs to.

    A pure function of the two, so that a report alone is enough: the hour the session started (or
    a short hash of a foreign name), and the block in steps so that long sessions roll over.
    """
    started = session_started_ms(session)
    if started is None:
        place = "x" + hashlib.blake2b(session.encode(), digest_size=1).hexdigest()
    else:
        place = datetime.fromtimestamp(started // 1000, UTC).strftime("%Y-%m-%dT%H")
    return f"{place}.{max(block, 0) >> BUCKET_BITS}"


def topic_id_text(topic_id: object) -> str:
    """A topic's id as Kafka writes it; librdkafka writes the same bytes in standard base64."""
    return str(topic_id or "").replace("+", "-").replace("/", "_")
