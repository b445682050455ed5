"""What became of the ids of one session and topic, from one report to the next.

The application's threads append to lists, each with one call that no other thread can come
between; the reporter takes what is there, twice a second. Nothing here may wait.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import MethodType
from typing import Any

from acktrail_client.identity import BLOCK_BITS, BLOCK_IDS
from acktrail_client.rows import Row, encode64
from acktrail_client.run_lists import encode_ids, encode_offsets, encode_range
from acktrail_client.send_errors import tier_of_error

Callback = Callable[..., Any]
_Place = tuple[int | None, int, bool]
"""Partition, block, and whether offsets are known."""
ONE_MORE = 4
_TRIES, _NAPS, _NAP_S = 1_000, 200, 0.005
_MINUTE_MS = 60_000
_MINUTES = 30
_ONES = b"\x01" * BLOCK_IDS


@dataclass
class _Acks:
    """Numbers of one block that were acked on one partition, and where they lie."""

    seqs: array[int]
    offsets: array[int]

    def extend(self, seqs: list[int], offsets: list[Any]) -> None:
        self.seqs.extend(seqs)
        self.offsets.extend(offsets)

    def in_order(self) -> tuple[list[int], list[int]]:
        """Both, by number: mostly they came in that order."""
        seqs = self.seqs.tolist()
        ordered = sorted(seqs)
        if ordered == seqs:
            return seqs, self.offsets.tolist()
        at = dict(zip(seqs, self.offsets, strict=True))
        return ordered, [at[seq] for seq in ordered]


class SentIds:
    """One topic of one producer."""

    def __init__(self, topic: str, *, unacked: bool, only_errors: bool) -> None:
        self.topic = topic
        self.next = 0
        """The number of the next message; given by whoever has the turn."""
        self.turn = [None] * (ONE_MORE + 1)
        """Whoever deletes its last entry has the turn to hand over a message, and puts it back.

        `del` is one step: neither another thread nor a signal comes between it and the `try` that
        follows. The other entries are there so that the list never gives its memory back.
        """
        self.minute_ends = 0
        """From this millisecond on, the next minute's first number is to be noted."""
        self.minutes: list[int] = []
        self.unaudited = 0
        self.acked: list[int | None] = []
        """Number, partition and offset, one after the other, as callbacks note them."""
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
        self._only_errors = only_errors
        self._acks: dict[_Place, _Acks] = {}
        self.user: Callback | None = None
        self.note = _settler(self, None, only_errors)
        """What is called for a number that was answered, with the error and the message; it calls
        *user*, the application's own callback. Both are changed by whoever has the turn."""

    def note_and_tell(self, user: Callback | None) -> Callback:
        """As *note*, with another callback of the application; its next message has it, too."""
        if type(user) is MethodType and user == self.user:
            return self.note
        self.user, self.note = user, _settler(self, user, self._only_errors)
        return self.note

    def wait_for_turn(self) -> bool:
        """Wait while another thread hands over a message; False where it never ends doing so.

        A thread that was stopped between two steps keeps its turn: then the audit ends, and the
        application goes on.
        """
        for attempt in range(_TRIES + _NAPS):  # counted, not timed: a process may be stopped
            time.sleep(0 if attempt < _TRIES else _NAP_S)
            try:
                del self.turn[ONE_MORE]
            except IndexError:
                continue
            return True
        self.broken = RuntimeError("a thread was stopped while it handed over a message")
        self.unaudited += 1
        return False

    def note_minute(self, now_ms: int) -> None:
        """Remember which number was the first of this minute."""
        self.minute_ends = now_ms - now_ms % _MINUTE_MS + _MINUTE_MS
        self.minutes += (now_ms // _MINUTE_MS, self.next)
        del self.minutes[: -2 * _MINUTES]

    @property
    def size(self) -> int:
        """Bytes that wait for the next report."""
        folded = sum(len(acks.seqs) for acks in list(self._acks.values()))
        return len(self.acked) * 30 + folded * 16 + len(self.told) * 120

    @property
    def outcomes(self) -> dict[str, int]:
        """Per 64 blocks, of how many ids an outcome was reported."""
        return {str(bucket): count for bucket, count in self._outcomes.items()}

    def take(self, now_ms: int) -> list[Row]:
        """The rows of what came since the last report."""
        span = (self._since_ms, now_ms)
        self._since_ms = now_ms
        rows = list(self._sent(span))
        self.fold()
        acks, self._acks = self._acks, {}
        rows += [self._acked(place, found, span) for place, found in acks.items()]
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

    def fold(self) -> None:
        """Put acks that were noted to those of their partition and block, in less memory."""
        count = len(self.acked)
        if not count:
            return
        came = self.acked[:count]
        del self.acked[:count]
        seqs: list[int] = came[0::3]  # type: ignore[assignment]
        partitions, offsets = came[1::3], came[2::3]
        block = seqs[0] >> BLOCK_BITS
        if (
            partitions.count(partitions[0]) == len(seqs)
            and None not in offsets
            and min(seqs) >> BLOCK_BITS == max(seqs) >> BLOCK_BITS
        ):
            self._acks_of((partitions[0], block, True)).extend(seqs, offsets)
            return
        grouped: dict[_Place, tuple[list[int], list[int]]] = {}
        for seq, partition, offset in zip(seqs, partitions, offsets, strict=True):
            place = (partition, seq >> BLOCK_BITS, offset is not None)
            found = grouped.get(place)
            if found is None:
                found = grouped[place] = ([], [])
            found[0].append(seq)
            found[1].append(-1 if offset is None else offset)
        for place, (numbers, at) in grouped.items():
            self._acks_of(place).extend(numbers, at)

    def _acks_of(self, place: _Place) -> _Acks:
        found = self._acks.get(place)
        if found is None:
            found = self._acks[place] = _Acks(array("q"), array("q"))
        return found

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

    def _acked(self, place: _Place, acks: _Acks, span: tuple[int, int]) -> Row:
        partition, block, known = place
        base = block << BLOCK_BITS
        seqs, offsets = acks.in_order()
        if base:
            seqs = [seq - base for seq in seqs]
        self._settle(block, seqs)
        more: Row = {"partition": -1 if partition is None else partition}
        if not known:
            tier = "sent_unacked" if self._unacked else "acked_no_offset"
            return self._row(tier, block, encode_ids(seqs), len(seqs), span, **more)
        more |= {"first_offset": min(offsets), "last_offset": max(offsets)}
        ids = encode_offsets(seqs, offsets)
        return self._row("acked", block, ids, len(seqs), span, **more)

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


def _settler(ids: SentIds, user: Callback | None, only_errors: bool) -> Callback:
    """The callback of messages, which is bound to the number of each.

    The numbers of one message go to the list in one call, or not at all.
    """
    acked, told = ids.acked.extend, ids.told.append

    def failed(seq: int, error: Any, message: Any) -> None:
        place = message.partition()
        ids.errors += 1
        told((seq, -1 if place is None else place, error.name()))

    def noted(seq: int, error: Any, message: Any) -> None:
        if error is None:
            acked((seq, message.partition(), message.offset()))
        else:
            failed(seq, error, message)

    def thrown_in(seq: int, error: Any, message: Any, thrown: Exception) -> None:
        """Note it all the same, where confluent-kafka has thrown an error of its own in here.

        A fatal error is raised by `poll()` or `flush()`; until then, callbacks run with the error
        set, and whatever they call first fails with it. It is the application's to hear of.
        """
        try:
            noted(seq, error, message)
        except Exception as broken:
            ids.broken = broken
        if not isinstance(thrown, SystemError) and ids.broken is None:
            ids.broken = thrown

    def note(seq: int, error: Any, message: Any) -> None:
        try:
            if error is None:
                acked((seq, message.partition(), message.offset()))
            else:
                failed(seq, error, message)
        except Exception as thrown:
            thrown_in(seq, error, message, thrown)
            if isinstance(thrown, SystemError):
                raise thrown.__cause__ or thrown from None

    def note_and_tell(seq: int, error: Any, message: Any) -> None:
        try:
            if error is None:
                acked((seq, message.partition(), message.offset()))
            else:
                failed(seq, error, message)
        except Exception as thrown:
            thrown_in(seq, error, message, thrown)
            if isinstance(thrown, SystemError):
                if error is not None or not only_errors:
                    user(error, message)  # type: ignore[misc]
                raise
        user(error, message)  # type: ignore[misc]

    def note_and_tell_errors(seq: int, error: Any, message: Any) -> None:
        note(seq, error, message)
        if error is not None:
            user(error, message)  # type: ignore[misc]

    if user is None:
        return note
    return note_and_tell_errors if only_errors else note_and_tell


def _by_block(first: int, last: int) -> Iterator[tuple[int, int]]:
    """The numbers from *first* to *last*, cut where blocks end."""
    while first <= last:
        end = min(last, first | (BLOCK_IDS - 1))
        yield first, end
        first = end + 1
