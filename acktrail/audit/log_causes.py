"""Why the log lost what it had: the change of leader that cut the lost offset off, and its kind.

Which change it was is decided first, by epochs and offsets (`leaders`); then what kind of change:
an unclean election elsewhere, or of another epoch, explains nothing.
"""

from __future__ import annotations

from acktrail.audit.explained import Explained, Rule, keys, place
from acktrail.audit.leaders import Cut, HandOver, cut_of
from acktrail.audit.loss_evidence import SETTING, Fact, Loss
from acktrail.contracts.vocabulary import Cause, Confidence

_COPIES = "acks=all with min.insync.replicas=2"


def unclean_election(loss: Loss) -> Explained | None:
    """Rule 1: who took over was not in sync, as a controller logged."""
    cut = cut_of(loss)
    if cut is None:
        return None
    lines = _unclean_lines(cut.hand_over, loss)
    if not lines:
        return None
    by_force = unclean_allowed(loss, cut.hand_over) is False
    how = (
        "a replica that was not in sync was made its leader by force"
        if by_force
        else "an unclean election gave it a leader that lacked them"
    )
    return Explained(
        Cause.UNCLEAN_ELECTION,
        _confidence(cut, only=loss.acks == "all"),
        f"{how} ({place(loss)}{_epoch(cut.hand_over)}{_start(cut.hand_over)})",
        keys(lines, cut.hand_over.told_by, cuts_at(loss)),
        "elect only replicas in sync" if by_force else "unclean.leader.election.enable=false",
    )


def log_directory_lost(loss: Loss) -> Explained | None:
    """Rule 2: the leader took over with a log that it had just created."""
    cut = cut_of(loss)
    if cut is None or not cut.hand_over.emptied:
        return None
    now = cut.hand_over
    broker = "its broker" if now.leader is None else f"broker {now.leader}"
    return Explained(
        Cause.LOG_DIRECTORY_LOST,
        _confidence(cut, only=_in_sync(now, loss)),
        f"{broker} had lost the log directory of {place(loss)} and led it again from offset 0"
        f"{_epoch(now)}",
        keys(now.emptied, now.told_by, now.elections),
        "three replicas, and acks=all with min.insync.replicas=2",
    )


def acks_1_leader_change(loss: Loss) -> Explained | None:
    """Rule 3: acknowledged by the leader alone, and another broker took over without them."""
    cut = cut_of(loss)
    if loss.acks != "1" or cut is None or cut.hand_over.same_broker:
        return None
    now = cut.hand_over
    last_known = bool(now.of_kind("last_known_leader"))
    if last_known and now.previous is None:
        return None
    alone = now.previous is not None and not last_known and _in_sync(now, loss)
    return Explained(
        Cause.ACKS_1_LEADER_CHANGE,
        _confidence(cut, only=alone),
        f"acks=1, and the leader of {place(loss)} failed before its followers had them"
        f"{_taken_over(now)}",
        keys(now.told_by, now.elections),
        _COPIES,
    )


def truncated(loss: Loss) -> Explained | None:
    """Rule 4: a leader came back with less than it had, or a replica cut committed records."""
    cut, cuts = cut_of(loss), cuts_at(loss)
    if cut is not None and _came_back(cut, loss):
        now = cut.hand_over
        broker = "its last leader" if now.leader is None else f"broker {now.leader}"
        return Explained(
            Cause.TRUNCATED,
            # From offset 0, it may as well have lost its log directory.
            _confidence(cut, only=loss.acks == "all" and bool(now.start)),
            f"{broker} came back as leader of {place(loss)} without records that it held "
            f"before{_epoch(now)}{_start(now)}",
            keys(now.told_by, now.elections, cuts),
            f"more replicas, and {_COPIES}",
        )
    if not cuts:
        return None
    first = cuts[0]
    return Explained(
        Cause.TRUNCATED,
        Confidence.SAME_CLIENT,
        f"{place(loss)} was cut to offset {first.offset}, below its high watermark "
        f"{first.high_watermark}",
        keys(cuts, () if cut is None else cut.hand_over.told_by),
        _COPIES,
    )


def another_leader(loss: Loss) -> Explained | None:
    """Rule 5: who took over is known, and not why it lacked them."""
    cut = cut_of(loss)
    if cut is None:
        return None
    acks = "" if loss.acks is not None else "; the producer's acks are not known"
    return Explained(
        Cause.UNKNOWN,
        Confidence.NONE,
        f"unknown; {place(loss)} got a leader without them{_taken_over(cut.hand_over)}, and no "
        f"evidence shows why it lacked them{acks}",
        keys(cut.hand_over.told_by, cut.hand_over.elections),
    )


RULES: tuple[Rule, ...] = (
    unclean_election,
    log_directory_lost,
    acks_1_leader_change,
    truncated,
    another_leader,
)


def unclean_allowed(loss: Loss, hand_over: HandOver) -> bool | None:
    """What unclean.leader.election.enable was when it happened; None: not known."""
    known = [f for f in loss.facts if f.kind == SETTING and f.setting is not None]
    before = [
        f for f in known if hand_over.at_ms is None or f.at_ms is None or f.at_ms <= hand_over.at_ms
    ]
    newest = max(before, key=lambda f: (f.at_ms or 0, f.key), default=None)
    if newest is None:  # first asked for after it happened
        values = {f.setting for f in known}
        return values == {"true"} if len(values) == 1 else None
    return newest.setting == "true"


def cuts_at(loss: Loss) -> list[Fact]:
    """Cuts of a replica below its high watermark, and at or below the lost offsets."""
    last = loss.finding.last_offset
    return [
        f
        for f in loss.of_partition("truncation")
        if loss.finding.partition is not None
        and f.offset is not None
        and f.high_watermark is not None
        and last is not None
        and f.offset < f.high_watermark
        and f.offset <= last
    ]


def _unclean_lines(now: HandOver, loss: Loss) -> tuple[Fact, ...]:
    """The lines by which the leader was not in sync.

    "Marked as RECOVERING" alone is printed for the last known leader too: then another broker must
    have led before, or unclean elections must be allowed.
    """
    lines = now.of_kind("unclean_election")
    if lines:
        return (*lines, *now.of_kind("leader_recovering"))
    if now.of_kind("last_known_leader") or now.same_broker:
        return ()
    if now.previous is None and not unclean_allowed(loss, now):
        return ()
    return () if unclean_allowed(loss, now) is False else now.of_kind("leader_recovering")


def _in_sync(now: HandOver, loss: Loss) -> bool:
    """Whether it is known that no unclean election made it leader.

    The line of one may be missing where they are allowed.
    """
    return bool(now.of_kind("last_known_leader")) or unclean_allowed(loss, now) is False


def _came_back(cut: Cut, loss: Loss) -> bool:
    """Whether the last leader took over again, and its log ended at or below the lost offsets.

    The "last known leader" of a controller may never have led: the last that was in sync when all
    brokers had died counts as one. So where another is known to have led before, that one did.
    """
    now = cut.hand_over
    if now.same_broker or (now.of_kind("last_known_leader") and now.previous is None):
        return True
    forbidden = unclean_allowed(loss, now) is False
    return forbidden and now.previous is None and bool(now.of_kind("leader_recovering"))


def _confidence(cut: Cut, only: bool) -> Confidence:
    """*only*: nothing else was needed for the loss as well."""
    return Confidence.EXACT if cut.exact and only else Confidence.SAME_CLIENT


def _epoch(now: HandOver) -> str:
    return "" if now.epoch is None else f", leader epoch {now.epoch}"


def _start(now: HandOver) -> str:
    return "" if now.start is None else f", from offset {now.start}"


def _taken_over(now: HandOver) -> str:
    broker = "" if now.leader is None else f": broker {now.leader} took over"
    return broker if not broker else f"{broker}{_start(now)}{_epoch(now)}"
