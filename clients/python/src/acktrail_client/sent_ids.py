"""What became of the ids of one session and topic, from one report to the next.

The application's threads append to arrays, each with one call that no other thread can come
between; the reporter takes what is there. Nothing here may wait.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterator
from typing import Any

from acktrail_client.identity import BLOCK_BITS, BLOCK_IDS
from acktrail_client.rows import Row, encode64
from acktrail_client.run_lists import encode_ids, encode_offsets, encode_range
from acktrail_client.send_errors import tier_of_error

Callback = Callable[[Any, Any], Any]
_MINUTE_MS = 60_000
_MINUTES = 30
_ONES = b"\x01" * BLOCK_IDS


class SentIds:
    """One topic of one producer."""

    def __init__(self, topic: str, *, unacked: bool, only_errors: bool) -> None:
        self.topic = topic
        self.next = 0
        """The number of the next message; given under the producer's lock."""
        self.minute_ends = 0
        """From this millisecond on, the next minute's first number is to be noted."""
        self.minutes: list[int] = []
        self.unaudited = 0
        self.acked = array("q")
        """Number, partition and offset, one after the other; negative: not known."""
        self.told: list[tuple[int, int, str]] = []
        """Number, partition and error."""
        self.ended: list[tuple[str, int, int]] = []
        """`committed` or `aborted`, first and last number."""
        self.errors = 0
        self.broken: Exception | None = None
        """What went wrong in a callback of ours."""
        self._unacked = unacked
        self._reported = 0
        self._since_ms = int(time.time() * 1000)
        self._outcomes: dict[int, int] = {}
        self._settled: dict[int, bytearray] = {}
        self._full: set[int] = set()
        self.note, self.note_for = _settlers(self, only_errors)

    def note_minute(self, now_ms: int) -> None:
        """Remember which number was the first of this minute."""
        self.minute_ends = now_ms - now_ms % _MINUTE_MS + _MINUTE_MS
        self.minutes += (now_ms // _MINUTE_MS, self.next)
        del self.minutes[: -2 * _MINUTES]

    @property
    def size(self) -> int:
        """Bytes that wait for the next report."""
        return len(self.acked) * 8 + len(self.told) * 120

    @property
    def outcomes(self) -> dict[str, int]:
        """Per 64 blocks, of how many ids an outcome was reported."""
        return {str(bucket): count for bucket, count in self._outcomes.items()}

    def take(self, now_ms: int) -> list[Row]:
        """The rows of what came since the last report."""
        span = (self._since_ms, now_ms)
        self._since_ms = now_ms
        rows = list(self._sent(span))
        count = len(self.acked) // 3 * 3
        if count:
            came = self.acked[:count]
            del self.acked[:count]
            rows += self._acked(came, span)
        many = len(self.told)
        if many:
            told = self.told[:many]
            del self.told[:many]
            rows += self._told(told, span)
        many = len(self.ended)
        for tier, first, last in self.ended[:many]:
            rows += [self._range(tier, f, n, span) for f, n in _by_block(first, last)]
        del self.ended[:many]
        return rows

    def left_open(self) -> list[int]:
        """The numbers without an outcome; all of which was taken before."""
        found: list[int] = []
        for block in range((self.next + BLOCK_IDS - 1) >> BLOCK_BITS):
            if block in self._full:
                continue
            base = block << BLOCK_BITS
            here = self._settled.get(block, b"")
            top = min(BLOCK_IDS, self.next - base)
            found += [base + i for i in range(top) if i >= len(here) or not here[i]]
        return found

    # -- rows -----------------------------------------------------------------------------------

    def _sent(self, span: tuple[int, int]) -> Iterator[Row]:
        end = self.next
        if end > self._reported:
            for first, last in _by_block(self._reported, end - 1):
                yield self._range("sent", first, last, span)
            self._reported = end

    def _range(self, tier: str, first: int, last: int, span: tuple[int, int]) -> Row:
        ids = encode_range(first & (BLOCK_IDS - 1), last & (BLOCK_IDS - 1))
        return self._row(tier, first >> BLOCK_BITS, ids, last - first + 1, span)

    def _row(
        self, tier: str, block: int, ids: bytes, count: int, span: tuple[int, int], **more: Any
    ) -> Row:
        return {
            "tier": tier,
            "topic": self.topic,
            "block": block,
            "ids": encode64(ids),
            "records": count,
            "began_ms": span[0],
            "ended_ms": span[1],
            **more,
        }

    def _acked(self, came: array[int], span: tuple[int, int]) -> Iterator[Row]:
        places: dict[tuple[bool, int, int], list[tuple[int, int]]] = {}
        for seq, place, offset in zip(came[0::3], came[1::3], came[2::3], strict=True):
            key = (offset >= 0, place, seq >> BLOCK_BITS)
            found = places.get(key)
            if found is None:
                found = places[key] = []
            found.append((seq & (BLOCK_IDS - 1), offset))
        for (known, place, block), pairs in places.items():
            pairs.sort()
            seqs = [seq for seq, _ in pairs]
            self._settle(block, seqs)
            count = len(pairs)
            if not known:
                tier = "sent_unacked" if self._unacked else "acked_no_offset"
                yield self._row(tier, block, encode_ids(seqs), count, span, partition=place)
                continue
            yield self._row(
                "acked",
                block,
                encode_offsets(pairs),
                count,
                span,
                partition=place,
                first_offset=min(offset for _, offset in pairs),
                last_offset=max(offset for _, offset in pairs),
            )

    def _told(self, told: list[tuple[int, int, str]], span: tuple[int, int]) -> Iterator[Row]:
        places: dict[tuple[str, int, int], list[int]] = {}
        for seq, place, error in told:
            places.setdefault((error, place, seq >> BLOCK_BITS), []).append(seq & (BLOCK_IDS - 1))
        for (error, place, block), seqs in places.items():
            seqs.sort()
            self._settle(block, seqs)
            tier, errors = tier_of_error(error), {error: str(len(seqs))}
            row = self._row(tier, block, encode_ids(seqs), len(seqs), span, errors=errors)
            yield row if place < 0 else {**row, "partition": place}

    def _settle(self, block: int, seqs: list[int]) -> None:
        """Note which ids of the block have an outcome; a full block needs no more memory."""
        bucket = block >> 6
        self._outcomes[bucket] = self._outcomes.get(bucket, 0) + len(seqs)
        marks = self._settled.get(block)
        if marks is None:
            marks = self._settled[block] = bytearray(BLOCK_IDS)
        first, last = seqs[0], seqs[-1]
        if last - first + 1 == len(seqs):
            marks[first : last + 1] = _ONES[: len(seqs)]
        else:
            for seq in seqs:
                marks[seq] = 1
        if self.next >> BLOCK_BITS > block and 0 not in marks:
            self._full.add(block)
            del self._settled[block]


def _settlers(ids: SentIds, only_errors: bool) -> tuple[Callback, Callback]:
    """The callbacks of a message: closures, which cost half of what methods do.

    The numbers of one message go to the array in one call, or not at all.
    """
    acked, told = ids.acked.extend, ids.told.append

    def note(seq: int, error: Any, message: Any) -> None:
        try:
            if error is None:
                place, offset = message.partition(), message.offset()
                known = (seq, -1 if place is None else place, -1 if offset is None else offset)
                acked(known)
            else:
                place = message.partition()
                ids.errors += 1
                told((seq, -1 if place is None else place, error.name()))
        except Exception as broken:
            ids.broken = broken

    def note_for(seq: int, user: Callback, error: Any, message: Any) -> None:
        if error is None:
            place, offset = message.partition(), message.offset()
            if place is None or offset is None:
                note(seq, None, message)
            else:
                acked((seq, place, offset))
        else:
            note(seq, error, message)
        if error is not None or not only_errors:
            user(error, message)

    return note, note_for  # type: ignore[return-value]


def _by_block(first: int, last: int) -> Iterator[tuple[int, int]]:
    """The numbers from *first* to *last*, cut where blocks end."""
    while first <= last:
        end = min(last, first | (BLOCK_IDS - 1))
        yield first, end
        first = end + 1
