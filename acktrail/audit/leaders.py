"""Who led a partition, from which epoch and offset on; and which of them cut a lost offset off.

A record at offset o, written in epoch e, is lost by the first leader of a later epoch whose log
ended at or below o when it took over. What tells:

* a broker's "starts at leader epoch E from offset S": its log ended at S;
* an answer of the cluster: the leader of epoch E took over at or below the end it answered;
* a controller's lines about elections, which have epochs and no offsets.

Epochs and offsets decide. Only between leaders that could all have cut the offset off do times
choose, and then nothing is called exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from acktrail.audit.loss_evidence import WINDOW_MS, Fact, Loss, spans_of
from acktrail.contracts.vocabulary import ELECTIONS

_KINDS = (*ELECTIONS, "leader_start", "leader_recovering", "log_created", "cluster_state")
_SAME_HOST_MS = 10_000
"""Lines of one broker about one election lie so near to each other."""
_ELECTION_MS = 60_000
"""An election line without an epoch belongs to a change of leader that is no further away."""
_CLOCKS_MS = 15_000
"""How far the clocks of hosts that seem to agree may be apart, with an election's own time."""
_REPORTED_MS = 60_000
"""How long after its ack a record is usually reported."""


@dataclass(frozen=True)
class HandOver:
    """A broker took over a partition."""

    epoch: int | None
    """Its leader epoch; None where only an old controller's line tells of it."""
    leader: int | None = None
    before: int | None = None
    """The newest epoch below it that is known to have had a leader."""
    previous: int | None = None
    """Who led in that epoch."""
    start: int | None = None
    """Where its log ended when it took over, as the broker printed; None: not known."""
    most: int | None = None
    """Its log ended at or below this offset when it took over."""
    at_ms: int | None = None
    """When, on the agent's clock where answers of the cluster bound it."""
    told_by: tuple[Fact, ...] = ()
    """What says that it leads: it has the epoch and, where known, the offset."""
    elections: tuple[Fact, ...] = ()
    """Lines of controllers and brokers about the elections since the leader before."""
    emptied: tuple[Fact, ...] = ()
    """The leader created the log just before it took over at offset 0: its directory was lost."""
    reached: int = 0
    """Its log has reached this offset while it led, as far as it was answered."""
    shorter: bool = False
    """Its log ended below what the leader before had begun with, or had answered."""

    @property
    def same_broker(self) -> bool:
        """Whether the leader before took over again."""
        return self.leader is not None and self.leader == self.previous

    @property
    def gapless(self) -> bool:
        """Whether no leader between the two can be unknown."""
        if self.epoch is None or self.before is None:
            return False
        known = {epoch_of(f) for f in self.elections}
        return self.epoch == self.before + 1 or self.epoch in known

    def of_kind(self, kind: str) -> tuple[Fact, ...]:
        """Its election lines of one kind."""
        return tuple(f for f in self.elections if f.kind == kind)

    def may_lack(self, acks: str | None) -> bool:
        """Whether it may have lacked what was acknowledged under *acks*.

        A leader that returns has its log, if nothing shows that it lost it. Who was in sync has
        all that acks=all acknowledged.
        """
        if self.shorter or self.emptied or self.of_kind("unclean_election"):
            return True
        if self.same_broker or self.of_kind("last_known_leader"):
            return False
        return acks != "all"


@dataclass(frozen=True)
class Cut:
    """The hand-over by which a record was lost."""

    hand_over: HandOver
    certain: bool
    """A row says that the log ended at or below the lost offset when the leader took over."""
    alone: bool
    """No other known hand-over can have cut it off."""

    @property
    def exact(self) -> bool:
        """Partition, offset and epoch are named, and no clock chose."""
        return self.certain and self.alone and self.hand_over.gapless


def epoch_of(election: Fact) -> int | None:
    """The epoch after the election; this text has the one before."""
    if election.epoch is not None and election.detail == "unclean_triggered":
        return election.epoch + 1
    return election.epoch


def cut_of(loss: Loss) -> Cut | None:
    """The hand-over that explains a loss of the log; None where no evidence shows one."""
    facts, only_topic = _of_one_topic(loss.of_partition(*_KINDS))
    facts = tuple(sorted(facts, key=lambda f: (f.at_ms or 0, f.key)))
    finding = loss.finding
    if finding.partition is None:
        return _by_time(loss, facts)
    seen = finding.seen_epoch or 0  # the leader of that epoch still had them
    known = [h for h in hand_overs(facts) if h.epoch is None or h.epoch > seen]
    low, high = finding.first_offset, finding.last_offset
    if low is not None and high is not None:
        gone = _gone_by(facts, low, finding.last_received_ms)
        known = [
            h
            for h in known
            if (h.start is None or h.start <= high)
            and (gone is None or h.epoch is None or h.epoch <= gone)
        ]
        whole = [h for h in known if h.most is not None and h.most <= low]
    else:
        whole = []
        if not any(_near(h, span) for h in known for span in spans_of(finding)):
            return None
    able = [h for h in known if h.may_lack(loss.acks)]
    chosen = _chosen([h for h in able if h in whole] or able or whole or known, loss)
    if chosen is None:
        return None
    certain = low is not None and chosen.most is not None and chosen.most <= low
    if not certain and not any(_near(chosen, span) for span in spans_of(finding)):
        return None  # neither an offset nor the time says that it is this one
    return Cut(chosen, certain, only_topic and len(known) == 1)


def _of_one_topic(facts: Sequence[Fact]) -> tuple[Sequence[Fact], bool]:
    """*facts* without those of another topic of the name, and whether they are of one for sure.

    The topic that the cluster answered about: a loss is claimed only where it was the only one. A
    topic that was created again begins with leader epoch 0 again.
    """
    answered = {f.topic_id for f in facts if f.kind == "cluster_state"} - {None}
    if len(answered) == 1:
        facts = [f for f in facts if f.topic_id is None or f.topic_id in answered]
    named = {f.topic_id for f in facts} - {None}
    starts = {(f.epoch, f.broker, f.offset) for f in facts if f.kind == "leader_start"}
    twice = len({epoch for epoch, _, _ in starts}) < len(starts)
    return facts, len(named) <= 1 and not twice


def _by_time(loss: Loss, facts: tuple[Fact, ...]) -> Cut | None:
    """Where the partition is not known: the only change of leader of the topic near it, if any."""
    partitions = {f.partition for f in facts}
    near = [
        h
        for number in sorted(p for p in partitions if p is not None)
        for h in hand_overs(tuple(f for f in facts if f.partition == number))
        if (h.epoch is None or h.epoch > 0) and any(_near(h, s) for s in spans_of(loss.finding))
    ]
    return Cut(near[0], certain=False, alone=False) if len(near) == 1 else None


def _near(hand_over: HandOver, span: tuple[int, int]) -> bool:
    at = hand_over.at_ms
    return at is not None and span[0] - WINDOW_MS <= at <= span[1] + WINDOW_MS


def _gone_by(facts: Sequence[Fact], offset: int, received_ms: int | None) -> int | None:
    """The first epoch under which an answer shows the record gone.

    An ack has no epoch. The epoch of an answer that was asked for after the ack had reached the
    lake is one that the record's cannot exceed.
    """
    if received_ms is None:
        return None
    later = [
        (f.epoch, f.offset)
        for f in facts
        if f.kind == "cluster_state"
        and f.epoch is not None
        and f.after_ms is not None
        and f.after_ms >= received_ms
    ]
    highest = min((epoch for epoch, _ in later), default=None)
    if highest is None:
        return None
    return min(
        (e for e, end in later if e > highest and end is not None and 0 <= end <= offset),
        default=None,
    )


def _chosen(able: Sequence[HandOver], loss: Loss) -> HandOver | None:
    """Of leaders that could all have cut the record off, the first after it was stored.

    The clocks of hosts may differ a little: of those that can be the first, the one whose log ended
    closest below the record. A leader whose log held the first of the records did not cut them all.
    """
    low = loss.finding.first_offset
    known = [h for h in able if low is None or h.start is None or h.start <= low] or able
    if len(known) < 2:
        return known[0] if known else None
    timed = [(h.at_ms, h) for h in known if h.at_ms is not None]
    began, slack = _stored_at(loss, [at for at, _ in timed])
    if began is None or not timed:
        return max(known, key=_closest_below)
    after = [(at, h) for at, h in timed if at >= began - slack]
    if not after:
        return max(timed, key=lambda t: (t[1].shorter, t[0], t[1].epoch or 0))[1]
    first = min(at for at, _ in after)
    next_ = min((at for at, _ in after if at >= began), default=began)
    together = [h for at, h in after if at <= max(first + slack, began + slack, next_)]
    return max(together, key=_closest_below)


def _closest_below(hand_over: HandOver) -> tuple[int, int]:
    """The log that ended closest below the record; of two, the earlier leader's."""
    return (-1 if hand_over.most is None else hand_over.most, -(hand_over.epoch or 0))


def _stored_at(loss: Loss, changes: Sequence[int]) -> tuple[int | None, int]:
    """When the record was stored, on the agent's clock as near as can be told, and how near.

    An ack comes shortly before its receipt. A producer's own time counts where it agrees; where
    nothing changed near the receipts, the reports were late.
    """
    finding = loss.finding
    own, received = finding.first_ms, finding.first_received_ms
    last = finding.last_ms if finding.last_ms is not None else own
    if received is not None:
        agrees = own is not None and last is not None and received - _REPORTED_MS <= own <= received
        at = own if agrees and own is not None else received - _REPORTED_MS
        slack = _CLOCKS_MS if agrees else _REPORTED_MS
        if own is None or any(at - WINDOW_MS <= change <= at + WINDOW_MS for change in changes):
            return at, slack
    return own, _CLOCKS_MS


@lru_cache(maxsize=256)
def hand_overs(facts: tuple[Fact, ...]) -> tuple[HandOver, ...]:
    """Every known change of leader of one partition, by epoch; *facts* in the order of time."""
    answers = [f for f in facts if f.kind == "cluster_state" and f.epoch is not None]
    starts = {f.epoch: f for f in facts if f.kind == "leader_start" and f.epoch is not None}
    elections = [f for f in facts if f.kind in ELECTIONS]
    serving = sorted({*starts, *(f.epoch for f in answers if f.epoch is not None)})
    found: list[HandOver] = []
    before: HandOver | None = None
    for epoch in serving:
        under = [f for f in answers if f.epoch == epoch]
        since = -1 if before is None or before.epoch is None else before.epoch
        among = [f for f in elections if since < (e := epoch_of(f) or -1) <= epoch and e > 0]
        start = starts.get(epoch)
        now = _taking_over(epoch, start, under, before)
        now = replace(
            now,
            at_ms=_at(now, [*among, *([start] if start else ())], answers),
            elections=tuple(among),
            told_by=((start,) if start else ()) + _around(answers, epoch),
            emptied=_emptied(start, facts),
        )
        if before is not None or start is not None or among:
            found.append(now)
        before = now
    newest = serving[-1] if serving else -1
    found += _not_seen_to_lead(elections, newest, before)
    return tuple(_with_lines_without_epoch(found, facts))


def _taking_over(
    epoch: int, start: Fact | None, under: Sequence[Fact], before: HandOver | None
) -> HandOver:
    leaders = [f.broker for f in under if f.broker is not None and f.broker >= 0]
    known = [f.offset for f in under if f.offset is not None and f.offset >= 0]
    ends = [start.offset] if start is not None and start.offset is not None else []
    end = min([*ends, *known], default=None)
    return HandOver(
        epoch=epoch,
        leader=start.broker if start is not None else (leaders[-1] if leaders else None),
        before=None if before is None else before.epoch,
        previous=None if before is None else before.leader,
        start=ends[0] if ends else None,
        most=end,
        reached=max([*ends, *known], default=0),
        shorter=before is not None and end is not None and end < before.reached,
    )


def _around(answers: Sequence[Fact], epoch: int) -> tuple[Fact, ...]:
    """The last answer under an earlier epoch and the first under this one."""
    earlier = [f for f in answers if f.epoch is not None and f.epoch < epoch]
    here = [f for f in answers if f.epoch == epoch]
    return (*earlier[-1:], *here[:1])


def _at(now: HandOver, lines: Sequence[Fact], answers: Sequence[Fact]) -> int | None:
    """The brokers' time, where the agent's answers before and after allow it."""
    printed = [f.at_ms for f in lines if f.at_ms is not None]
    epoch = now.epoch or 0
    earlier = [f.at_ms for f in answers if f.at_ms is not None and (f.epoch or 0) < epoch]
    later = [f.at_ms for f in answers if f.at_ms is not None and (f.epoch or 0) >= epoch]
    least = max((at for at in earlier if not later or at <= min(later)), default=None)
    most = min(later, default=None)
    at = min(printed, default=None)
    if at is None:
        return None if least is None else most
    if most is not None:
        at = min(at, most)
    return at if least is None else max(at, least)


def _emptied(start: Fact | None, facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """Whether the leader of a later epoch began with a log that it had just created.

    All lines are of one broker, so of one clock: the log was created after anything else that the
    broker printed of leading it, and the broker had had one before.
    """
    if start is None or start.offset != 0 or not start.epoch or start.at_ms is None:
        return ()
    same = [f for f in facts if f.host == start.host and f.host is not None]
    created = [
        f
        for f in same
        if f.kind == "log_created" and f.at_ms is not None and f.at_ms <= start.at_ms
    ]
    if not created:
        return ()
    last = created[-1]
    since = last.at_ms or 0
    had_it = len(created) > 1 or any(
        f.kind == "leader_start" and (f.at_ms or since) < since for f in same
    )
    if not had_it:  # the topic was young, and the broker had fetched nothing of it
        return ()
    led_before = any(
        f.kind == "leader_start" and f is not start and since <= (f.at_ms or 0) <= start.at_ms
        for f in same
    )
    return () if led_before else (last,)


def _not_seen_to_lead(
    elections: Sequence[Fact], newest: int, before: HandOver | None
) -> list[HandOver]:
    """Elections after the last leader that is known to have served."""
    later = [f for f in elections if (epoch_of(f) or -1) > newest]
    leading = [f for f in later if f.leader is None or f.leader >= 0]
    if not leading:
        return []
    last = max(leading, key=lambda f: (epoch_of(f) or 0, f.key))
    among = tuple(f for f in later if (epoch_of(f) or 0) <= (epoch_of(last) or 0))
    return [
        HandOver(
            epoch=epoch_of(last),
            leader=last.leader,
            before=None if before is None else before.epoch,
            previous=None if before is None else before.leader,
            at_ms=min((f.at_ms for f in among if f.at_ms is not None), default=None),
            elections=among,
        )
    ]


def _with_lines_without_epoch(found: Sequence[HandOver], facts: Sequence[Fact]) -> list[HandOver]:
    """Lines that name a partition and no epoch, beside the hand-over nearest to them in time."""
    result = list(found)
    for line in facts:
        if line.at_ms is None:
            continue
        recovering = line.kind == "leader_recovering"
        if not recovering and (line.kind not in ELECTIONS or epoch_of(line) is not None):
            continue
        if line.kind == "leader_change":
            continue
        leader = line.broker if recovering else line.leader
        allowed = _SAME_HOST_MS if recovering else _ELECTION_MS
        near = [
            (abs(printed - line.at_ms), index)
            for index, h in enumerate(result)
            if leader in (None, h.leader)
            and (printed := _printed_at(h)) is not None
            and abs(printed - line.at_ms) <= allowed
        ]
        if near:
            _, index = min(near)
            at = result[index]
            result[index] = replace(at, elections=(*at.elections, line))
        elif not recovering:
            result.append(HandOver(None, leader, at_ms=line.at_ms, elections=(line,)))
    return result


def _printed_at(hand_over: HandOver) -> int | None:
    """When brokers printed it, by their own clocks; else when it was answered."""
    lines = [f for f in (*hand_over.elections, *hand_over.told_by) if f.at_ms is not None]
    printed = [f.at_ms for f in lines if f.kind != "cluster_state" and f.at_ms is not None]
    return min(printed) if printed else hand_over.at_ms
