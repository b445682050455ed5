"""The accounts of one block for one audience, and what is to be found in them as ranges of ids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from acktrail.audit.block import Block, Part, Places, in_offset_order
from acktrail.audit.groups import judge_groups
from acktrail.audit.reasons import Reason
from acktrail.audit.topic_evidence import SessionEvidence, TopicEvidence
from acktrail.audit.verdicts import (
    REASONS,
    STATES,
    Case,
    Verdicts,
    judge_log,
)
from acktrail.audit.wire.identity import BLOCK_BITS, BLOCK_IDS
from acktrail.audit.wire.run_lists import Longs, Mask, no_ids
from acktrail.contracts.vocabulary import PRODUCER_TIERS, State, Tier
from acktrail.window import epoch_ms, from_epoch_ms

LOG = ""
"""The audience that is the log itself: an id is delivered to it when it is stored."""

_QUIET = (State.DELIVERED, State.NOT_OWED)
"""Ids in these states are counted; of all others there are findings."""
_OPEN = (State.PENDING, State.SKIPPED_BY_CONSUMER, State.EXPIRED_BEFORE_READ)
"""Ids in these states may get another one by any news of their topic."""
_WAITING_FOR_SCAN = (Reason.TOLD_NOT_CHECKED, Reason.NO_COMPLETE_SCAN)
"""Ids without an offset that are pending for these reasons are decided by scans alone."""
_TOLD = (Tier.FAILED, Tier.INDETERMINATE)
_ACKED = (Tier.ACKED, Tier.ACKED_NO_OFFSET, Tier.COMMITTED)
INSTANTS = {
    "first_at": "first_ms",
    "last_at": "last_ms",
    "first_received_at": "first_received_ms",
    "last_received_at": "last_received_ms",
}
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
    first_received_ms: int | None = None
    """Receipt of the first report of what became of them; None: not known."""
    last_received_ms: int | None = None
    seen_epoch: int | None = None
    """All were seen in the log under this leader epoch, or a later one; None: not known."""

    @property
    def count(self) -> int:
        """Ids in the range."""
        return self.last_seq - self.first_seq + 1


_ALIKE = tuple(f.name for f in fields(StateRange) if f.name not in INSTANTS.values())


def fields_of(finding: StateRange) -> dict[str, Any]:
    """*finding* as a struct of `delivery_ledger.findings`."""
    found = {name: getattr(finding, name) for name in _ALIKE}
    for name, ms in INSTANTS.items():
        at = getattr(finding, ms)
        found[name] = None if at is None else from_epoch_ms(at)
    found["error"] = finding.error or None
    return found


def finding_of(row: Mapping[str, Any]) -> StateRange:
    """The finding in a struct of `delivery_ledger.findings`."""
    found: dict[str, Any] = {name: row.get(name) for name in _ALIKE}
    for name, ms in INSTANTS.items():
        at = row.get(name)
        found[ms] = None if at is None else epoch_ms(at)
    found["error"] = row["error"] or ""
    return StateRange(**found)


def account_block(
    block: Block, topic: TopicEvidence, session: SessionEvidence
) -> list[dict[str, Any]]:
    """One account for the log and one for each group that owes something of the block."""
    begun, heard = session.begun_ms, session.first_received_ms
    view = topic if begun is None or heard is None else topic.since(begun, heard)
    case = Case(block, view, session)
    log = judge_log(case)
    return [
        _account(case, LOG, log),
        *(_account(case, group, verdicts) for group, verdicts in judge_groups(case, log)),
    ]


def _account(case: Case, group: str, verdicts: Verdicts) -> dict[str, Any]:
    """One row of `delivery_ledger`, without the columns that name the block.

    Findings and instants are still as the rules have them: `StateRange`, milliseconds.
    """
    block = case.block
    counts = np.bincount(verdicts.state[verdicts.state >= 0], minlength=len(STATES))
    sent = int(np.count_nonzero(block.universe))
    ghosts = _any_of(block, _TOLD) & verdicts.having(State.DELIVERED)
    undecided = verdicts.having(State.PENDING) | verdicts.having(State.INCONCLUSIVE)
    reasons = np.bincount(verdicts.reason[undecided], minlength=len(REASONS))
    parts = [part for parts in block.tiers.values() for part in parts]
    return {
        "group": group,
        "sent": sent,
        "acked": int(np.count_nonzero(_any_of(block, _ACKED))),
        **{state.value: int(counts[i]) for i, state in enumerate(STATES)},
        "residual": sent - int(counts.sum()),
        **_records(case, group),
        "ghosts": int(np.count_nonzero(ghosts)),
        "forwarded": 0,
        "reasons": {REASONS[i].value: str(n) for i, n in enumerate(reasons.tolist()) if n},
        "findings": _findings(case, verdicts),
        "first_ms": min((p.began_ms for p in parts if p.began_ms is not None), default=None),
        "last_ms": max((p.ended_ms for p in parts if p.ended_ms is not None), default=None),
        "settles_ms": verdicts.settles_ms,
        "awaits_from": verdicts.awaits.lowest if verdicts.awaits else None,
        "awaits_to": verdicts.awaits.highest if verdicts.awaits else None,
        "open": _is_open(verdicts),
        **_latency(block.parts(Tier.DELIVERED, group)),
    }


def _is_open(verdicts: Verdicts) -> bool:
    """Whether any news of the topic may change the account.

    What is decided for another reason changes only by news about its own offsets or time, or by
    settings, a re-creation of the topic, or heartbeats of the session. What awaits a scan changes
    also by one that goes on where scans have come to.
    """
    waiting = no_ids()
    if verdicts.awaits is not None:
        for reason in _WAITING_FOR_SCAN:
            waiting |= verdicts.because(reason)
    if any((verdicts.having(state) & ~waiting).any() for state in _OPEN):
        return True
    reasons = [Reason.UNREPORTED_RANGE, Reason.MAY_BE_ANOTHER]
    if verdicts.settles_ms is not None:  # any further scan may decide ids without an offset
        reasons += [Reason.RETENTION, Reason.POLICY_UNKNOWN, Reason.UNNAMED]
    found = verdicts.reason[verdicts.having(State.INCONCLUSIVE)]
    return bool(np.isin(found, [REASONS.index(reason) for reason in reasons]).any())


def _any_of(block: Block, tiers: tuple[Tier, ...]) -> Mask:
    found = block.mask(tiers[0])
    for tier in tiers[1:]:
        found = found | block.mask(tier)
    return found


def _records(case: Case, group: str) -> dict[str, int]:
    """Duplicates, redeliveries and steps back, from offsets where they are known."""
    tier = Tier.DELIVERED if group else Tier.IN_LOG
    parts = case.block.parts(tier, group)
    records = sum(part.records for part in parts)
    if case.presence.each_once(parts, group):
        listed = sum(part.runs.count for part in parts)
        return {
            "duplicates": 0,
            "redelivered": records - listed if group else 0,
            "out_of_order": _steps_back(parts),
        }
    lanes = case.presence.offsets(tier, group)
    if not lanes and not group:
        lanes = _lanes_without_scan(case)
    distinct = sum(offsets.size for _, offsets in lanes.values())
    seen = no_ids()
    for ids, _ in lanes.values():
        seen[ids] = True
    blind = [part for part in parts if part.runs.offsets is None]
    blind_records = sum(part.records for part in blind)
    return {
        "duplicates": distinct
        - int(np.count_nonzero(seen))
        + sum(part.records - part.runs.count for part in blind),
        "redelivered": max(0, records - blind_records - distinct) if group else 0,
        "out_of_order": sum(int((np.diff(i) < 0).sum()) for i, _ in lanes.values())
        + sum(part.steps_back or 0 for part in blind),
    }


def _steps_back(parts: tuple[Part, ...]) -> int:
    """Steps back in offset order, from runs whose offsets are known and do not overlap."""
    steps = 0
    for number in {part.partition for part in parts}:
        runs = [part.runs for part in parts if part.partition == number]
        starts = np.concatenate([r.starts for r in runs])
        lasts = starts + np.concatenate([r.lengths for r in runs]) - 1
        order = np.argsort(np.concatenate([r.offsets for r in runs if r.offsets is not None]))
        steps += int((starts[order][1:] < lasts[order][:-1]).sum())
    return steps


def _lanes_without_scan(case: Case) -> dict[int, tuple[Longs, Longs]]:
    """Where no scan looked: per partition, the ids and offsets that groups have read."""
    found: dict[int, list[tuple[Longs, Longs]]] = {}
    for group in case.block.groups:
        for number, lane in case.presence.offsets(Tier.DELIVERED, group).items():
            found.setdefault(number, []).append(lane)
    return {number: in_offset_order(lanes) for number, lanes in found.items()}


def _latency(parts: tuple[Part, ...]) -> dict[str, int | None]:
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


def _findings(case: Case, verdicts: Verdicts) -> list[StateRange]:
    """What was not delivered, as ranges."""
    loud = verdicts.state >= 0
    for state in _QUIET:
        loud &= ~verdicts.having(state)
    ids = np.flatnonzero(loud)
    if not ids.size:
        return []
    errors, names = _errors(case.block, ids)
    places = _places(case, ids)
    told, acked = _any_of(case.block, _TOLD)[ids], _any_of(case.block, _ACKED)[ids]
    states, reasons = verdicts.state[ids], verdicts.reason[ids]
    kinds = (states, reasons, places.partition, errors, told, acked)
    changes = [np.diff(ids) != 1, *(kind[1:] != kind[:-1] for kind in kinds)]
    firsts = np.concatenate(([0], np.flatnonzero(np.any(changes, axis=0)) + 1))
    began, ended = _times(case, ids)
    heard, known_by = _receipts(case, ids)
    seen = _seen_under(case.block, ids)
    base = case.block.number << BLOCK_BITS
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
            first_received_ms=_known(heard[first : last + 1].min()),
            last_received_ms=_known_of_all(known_by[first : last + 1]),
            seen_epoch=_known(seen[first : last + 1].min()),
        )
        for first, last in zip(firsts, np.append(firsts[1:], ids.size) - 1, strict=True)
    ]


def _seen_under(block: Block, ids: Longs) -> Longs:
    """For each of *ids* the highest epoch of a record that was seen together with it; -1: none."""
    seen = np.full(ids.size, -1, np.int64)
    for tier, group in block.tiers:
        for part in block.parts(tier, group) if tier in (Tier.IN_LOG, Tier.DELIVERED) else ():
            if part.leader_epoch is not None:
                here = part.mask[ids]
                seen[here] = np.maximum(seen[here], part.leader_epoch)
    return seen


def _known(number: Any) -> int | None:
    return None if number < 0 else int(number)


def _known_of_all(numbers: Longs) -> int | None:
    return None if (numbers < 0).any() else int(numbers.max())


def _places(case: Case, ids: Longs) -> Places:
    """Where *ids* are or were: in the log where still there, else as the producer was told."""
    places = Places(ids.size)
    for tier in (Tier.SENT, Tier.SENT_UNACKED, Tier.INDETERMINATE, Tier.FAILED, Tier.ACKED):
        for part in case.block.parts(tier):
            if part.partition >= 0:
                places.put(part, ids)
    case.presence.locate(ids, places)
    return places


def _errors(block: Block, ids: Longs) -> tuple[Longs, list[str]]:
    """For each of *ids* the index of its error's name."""
    names, codes = [""], np.zeros(ids.size, np.int64)
    for tier in (Tier.INDETERMINATE, Tier.FAILED):
        for part in block.parts(tier):
            if part.error not in names:
                names.append(part.error)
            codes[part.mask[ids]] = names.index(part.error)
    return codes, names


def _times(case: Case, ids: Longs) -> tuple[Longs, Longs]:
    """For each of *ids* when it was sent, as near as known: earliest and latest; -1 unknown."""
    began, ended = _reported_times(case, ids)
    unknown, last_ms = began < 0, case.session.last_ms
    if unknown.any() and last_ms is not None:
        known, _ = _reported_times(case, np.arange(BLOCK_IDS))
        before = np.maximum.accumulate(known)[ids]
        began[unknown] = np.where(before < 0, last_ms, before)[unknown]
        ended[unknown] = last_ms
    return began, ended


def _spread(part: Part, ids: Longs) -> Longs:
    """When each of *ids* was reported, as if the part's ids came evenly, in order.

    A part may span ten seconds; its begin would be too early for an id near its end.
    """
    began, ended = part.began_ms or 0, part.ended_ms or 0
    steps = max(1, part.runs.count - 1)
    ranks: Longs = np.cumsum(part.mask)[ids] - 1
    return began + (ended - began) * np.minimum(ranks, steps) // steps


def _receipts(case: Case, ids: Longs) -> tuple[Longs, Longs]:
    """For each of *ids* when the first and the last report of it was received; -1 unknown."""
    never = np.iinfo(np.int64).max
    first, last = np.full(ids.size, never, np.int64), np.full(ids.size, -1, np.int64)
    for tier in PRODUCER_TIERS:
        for part in case.block.parts(tier) if tier is not Tier.SENT else ():
            if part.received_ms is not None:
                here = part.mask[ids]
                first[here] = np.minimum(first[here], part.received_ms)
                last[here] = np.maximum(last[here], part.received_ms)
    first[first == never] = -1
    return first, last


def _reported_times(case: Case, ids: Longs) -> tuple[Longs, Longs]:
    """Within the span of the producer's part; without one, the minute of the heartbeats."""
    began, ended = np.full((2, ids.size), -1, np.int64)
    for tier in reversed(PRODUCER_TIERS):
        for part in case.block.parts(tier):
            if part.began_ms is not None and part.ended_ms is not None:
                here = part.mask[ids]
                began[here] = ended[here] = _spread(part, ids[here])
    if case.session.minutes:
        minutes, firsts = np.array(case.session.minutes, np.int64).T
        at = np.searchsorted(firsts, (case.block.number << BLOCK_BITS) + ids, "right") - 1
        unknown = (at >= 0) & (began < 0)
        began[unknown] = minutes[at[unknown]] * 60_000
        ended[unknown] = began[unknown] + 59_999
    return began, ended
