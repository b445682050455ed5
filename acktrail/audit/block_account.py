"""The accounts of one block for one audience, and what is to be found in them as ranges of ids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

import numpy as np

from acktrail.audit.bitmaps import Longs, Mask, empty
from acktrail.audit.block import (
    Block,
    Places,
    Presence,
    in_offset_order,
    steps_back_of_runs,
)
from acktrail.audit.groups import audiences, is_concerned, judge_group
from acktrail.audit.reasons import Reason
from acktrail.audit.topic_evidence import SessionEvidence, TopicEvidence
from acktrail.audit.verdicts import REASONS, STATES, Case, Verdicts, judge_log, locate_by_producer
from acktrail.audit.wire.identity import BLOCK_BITS, BLOCK_IDS
from acktrail.contracts.vocabulary import PRODUCER_TIERS, State, Tier

HOUR_MS = 3_600_000
LOG = ""
"""The audience that is the log itself: an id is delivered to it when it is stored."""

_QUIET = (State.DELIVERED, State.NOT_OWED)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)
_INSTANTS = {"first_at": "first_ms", "last_at": "last_ms"}
"""Fields of the struct that are instants, and their names in `StateRange`."""


@dataclass(frozen=True)
class StateRange:
    """Contiguous ids that were not delivered, with one state, reason, partition and error."""

    first_seq: int
    last_seq: int
    state: str
    reason: str
    partition: int | None
    first_offset: int | None
    last_offset: int | None
    first_ms: int | None
    last_ms: int | None
    told: bool
    acked: bool
    error: str

    @property
    def count(self) -> int:
        """Ids in the range."""
        return self.last_seq - self.first_seq + 1


_ALIKE = tuple(f.name for f in fields(StateRange) if f.name not in _INSTANTS.values())


def fields_of(finding: StateRange) -> dict[str, Any]:
    """*finding* as a struct of `delivery_ledger.findings`."""
    found = {name: getattr(finding, name) for name in _ALIKE}
    for name, ms in _INSTANTS.items():
        at = getattr(finding, ms)
        found[name] = None if at is None else _EPOCH + at * _MS
    found["error"] = finding.error or None
    return found


def finding_of(row: Mapping[str, Any]) -> StateRange:
    """The finding in a struct of `delivery_ledger.findings`."""
    found = {name: row[name] for name in _ALIKE}
    for name, ms in _INSTANTS.items():
        found[ms] = None if row[name] is None else (row[name] - _EPOCH) // _MS
    found["error"] = row["error"] or ""
    return StateRange(**found)


def account_block(
    block: Block, topic: TopicEvidence, session: SessionEvidence
) -> list[dict[str, Any]]:
    """One account for the log and one for each group that owes something of the block."""
    view = topic if session.first_ms is None else topic.since(session.first_ms - HOUR_MS)
    book = Book(block, view, session)
    log = judge_log(Case(block, view, session, book.presence))
    accounts = [book.account(LOG, log)]
    for group in audiences(block, view):
        verdicts = judge_group(block, view, group, log, book.presence)
        if is_concerned(block, group, verdicts):
            accounts.append(book.account(group, verdicts))
    return accounts


class Book:
    """What the accounts of one block have in common."""

    def __init__(self, block: Block, topic: TopicEvidence, session: SessionEvidence) -> None:
        self.block, self.topic, self.session = block, topic, session
        self.presence = Presence(block, topic)

    @cached_property
    def _told(self) -> Mask:
        return self.block.mask(Tier.FAILED) | self.block.mask(Tier.INDETERMINATE)

    @cached_property
    def _acked(self) -> Mask:
        return self.block.mask(Tier.ACKED) | self.block.mask(Tier.ACKED_NO_OFFSET)

    def account(self, group: str, verdicts: Verdicts) -> dict[str, Any]:
        """One row of `delivery_ledger`, without the columns that name the block.

        Findings and instants are still as the rules have them: `StateRange`, milliseconds.
        """
        counts = np.bincount(verdicts.state[verdicts.state >= 0], minlength=len(STATES))
        sent = int(np.count_nonzero(self.block.universe))
        quiet = (*_QUIET, State.REJECTED, State.ABORTED)
        settled = sum(int(counts[STATES.index(s)]) for s in quiet)
        began, ended = self._span()
        return {
            "group": group,
            "sent": sent,
            "acked": int(np.count_nonzero(self._acked)),
            **{state.value: int(counts[i]) for i, state in enumerate(STATES)},
            "residual": sent - int(counts.sum()),
            **self._records(group),
            "ghosts": int(np.count_nonzero(self._told & verdicts.having(State.DELIVERED))),
            "forwarded": 0,
            "reasons": _reasons(verdicts),
            "findings": self.findings(verdicts),
            "first_ms": began,
            "last_ms": ended,
            "settles_ms": verdicts.settles_ms,
            "open": settled != sent,
            **self._latency(group),
        }

    def _span(self) -> tuple[int | None, int | None]:
        parts = [p.part for placed in self.block.tiers.values() for p in placed]
        return (
            min((p.began_ms for p in parts if p.began_ms is not None), default=None),
            max((p.ended_ms for p in parts if p.ended_ms is not None), default=None),
        )

    def _records(self, group: str) -> dict[str, int]:
        """Duplicates, redeliveries and steps back, from offsets where they are known."""
        tier = Tier.DELIVERED if group else Tier.IN_LOG
        placed = self.block.placed(tier, group)
        records = sum(p.part.records for p in placed)
        if self.presence.each_once(placed, group):
            listed = sum(p.part.runs.count for p in placed)
            return {
                "duplicates": 0,
                "redelivered": records - listed if group else 0,
                "out_of_order": steps_back_of_runs(placed),
            }
        lanes = self.presence.offsets(tier, group)
        if not lanes and not group:
            lanes = self._lanes_without_scan()
        distinct = sum(offsets.size for _, offsets in lanes.values())
        seen = empty()
        for ids, _ in lanes.values():
            seen[ids] = True
        blind = [p.part for p in placed if p.part.runs.offsets is None]
        blind_records = sum(p.records for p in blind)
        return {
            "duplicates": distinct
            - int(np.count_nonzero(seen))
            + sum(p.records - p.runs.count for p in blind),
            "redelivered": max(0, records - blind_records - distinct) if group else 0,
            "out_of_order": sum(int((np.diff(i) < 0).sum()) for i, _ in lanes.values())
            + sum(p.steps_back or 0 for p in blind),
        }

    def _lanes_without_scan(self) -> dict[int, tuple[Longs, Longs]]:
        """Where no scan looked: what groups have read, with what producers were told."""
        found: dict[int, list[tuple[Longs, Longs]]] = {}
        for group in self.block.groups:
            for number, lane in self.presence.offsets(Tier.DELIVERED, group).items():
                found.setdefault(number, []).append(lane)
        return {number: in_offset_order(lanes) for number, lanes in found.items()}

    def _latency(self, group: str) -> dict[str, int | None]:
        parts = [p.part for p in self.block.placed(Tier.DELIVERED, group)]
        medians = sorted(p.latency_p50_ms for p in parts if p.latency_p50_ms is not None)
        return {
            "latency_p50_ms": medians[len(medians) // 2] if medians else None,
            "latency_p99_ms": max(
                (p.latency_p99_ms for p in parts if p.latency_p99_ms is not None), default=None
            ),
            "latency_max_ms": max(
                (p.latency_max_ms for p in parts if p.latency_max_ms is not None), default=None
            ),
        }

    def findings(self, verdicts: Verdicts) -> list[StateRange]:
        """What was not delivered, as ranges."""
        loud = verdicts.state >= 0
        for state in _QUIET:
            loud &= ~verdicts.having(state)
        ids = np.flatnonzero(loud)
        if not ids.size:
            return []
        errors, names = self._errors(ids)
        places = self._places(ids)
        told, acked = self._told[ids], self._acked[ids]
        states, reasons = verdicts.state[ids], verdicts.reason[ids]
        kinds = (states, reasons, places.partition, errors, told, acked)
        changes = [np.diff(ids) != 1, *(kind[1:] != kind[:-1] for kind in kinds)]
        firsts = np.concatenate(([0], np.flatnonzero(np.any(changes, axis=0)) + 1))
        began, ended = self._times(ids)
        base = self.block.number << BLOCK_BITS
        return [
            StateRange(
                first_seq=base + int(ids[first]),
                last_seq=base + int(ids[last]),
                state=STATES[states[first]].value,
                reason=REASONS[reasons[first]].value,
                partition=_known(places.partition[first]),
                first_offset=_known(places.low[first : last + 1].min()),
                last_offset=_known(places.high[first : last + 1].max()),
                first_ms=_known(began[first : last + 1].min()),
                last_ms=_known(ended[first : last + 1].max()),
                told=bool(told[first]),
                acked=bool(acked[first]),
                error=names[int(errors[first])],
            )
            for first, last in zip(firsts, np.append(firsts[1:], ids.size) - 1, strict=True)
        ]

    def _places(self, ids: Longs) -> Places:
        """Where *ids* are or were: in the log where still there, else as the producer was told."""
        places = Places(ids.size)
        locate_by_producer(self.block, ids, places)
        self.presence.locate(ids, places)
        return places

    def _errors(self, ids: Longs) -> tuple[Longs, list[str]]:
        """For each of *ids* the index of its error's name."""
        names, codes = [""], np.zeros(ids.size, np.int64)
        for tier in (Tier.INDETERMINATE, Tier.FAILED):
            for placed in self.block.placed(tier):
                if placed.part.error not in names:
                    names.append(placed.part.error)
                codes[placed.part.mask[ids]] = names.index(placed.part.error)
        return codes, names

    def _times(self, ids: Longs) -> tuple[Longs, Longs]:
        """For each of *ids* when it was sent, as near as known: earliest and latest; -1 unknown."""
        began, ended = self._reported_times(ids)
        unknown = began < 0
        if unknown.any() and self.session.last_ms is not None:
            known, _ = self._reported_times(np.arange(BLOCK_IDS))
            before = np.maximum.accumulate(known)[ids]
            began[unknown] = np.where(before < 0, self.session.last_ms, before)[unknown]
            ended[unknown] = self.session.last_ms
        return began, ended

    def _reported_times(self, ids: Longs) -> tuple[Longs, Longs]:
        began, ended = np.full((2, ids.size), -1, np.int64)
        for tier in reversed(PRODUCER_TIERS):
            for placed in self.block.placed(tier):
                part = placed.part
                if part.began_ms is not None and part.ended_ms is not None:
                    here = part.mask[ids]
                    began[here], ended[here] = part.began_ms, part.ended_ms
        if self.session.minutes:
            self._narrow_by_minutes(ids, began, ended)
        return began, ended

    def _narrow_by_minutes(self, ids: Longs, began: Longs, ended: Longs) -> None:
        """The minute an id was created in is known: it is nearer than the part's whole span."""
        firsts = np.array([seq for _, seq in self.session.minutes], np.int64)
        starts = np.array([minute * 60_000 for minute, _ in self.session.minutes], np.int64)
        at = np.searchsorted(firsts, (self.block.number << BLOCK_BITS) + ids, "right") - 1
        known = (at >= 0) & (began < 0)
        began[known] = starts[np.maximum(at, 0)][known]
        ended[known] = began[known] + 59_999


def _known(number: Any) -> int | None:
    return None if number < 0 else int(number)


def _reasons(verdicts: Verdicts) -> Mapping[str, str]:
    """Reason to number of ids, for what is pending or inconclusive."""
    open_ids = verdicts.having(State.PENDING) | verdicts.having(State.INCONCLUSIVE)
    counts = np.bincount(verdicts.reason[open_ids], minlength=len(Reason))
    return {REASONS[i].value: str(n) for i, n in enumerate(counts.tolist()) if n}
