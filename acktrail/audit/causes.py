"""Why ids were lost: numbered rules, strongest evidence first.

A broker's own record outranks a client's, which outranks timing. An unclean election outranks the
truncation it leads to: the cut is how the records went, the election is why.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from acktrail.audit.block_account import StateRange
from acktrail.audit.reasons import CLAUSES, Reason
from acktrail.contracts.vocabulary import Cause, Confidence, State

WINDOW_MS = 600_000
"""Evidence this long before or after a loss may speak of it."""


@dataclass(frozen=True)
class Fact:
    """One thing that happened, from a log, a metric or the cluster; *key* names its row."""

    kind: str
    key: str
    at_ms: int | None = None
    partition: int | None = None
    client_id: str | None = None
    group: str | None = None
    error: str | None = None
    offset: int | None = None
    high_watermark: int | None = None
    broker: int | None = None
    epoch: int | None = None
    attempts_left: int | None = None
    isr: tuple[int, ...] = ()


@dataclass(frozen=True)
class Loss:
    """A finding with everything that may bear on it: facts of its topic, client and cluster."""

    finding: StateRange
    group: str = ""
    client_id: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    facts: Sequence[Fact] = ()

    @property
    def acks(self) -> str | None:
        """The session's acks, as 0, 1 or all."""
        acks = self.settings.get("acks")
        return "all" if acks == "-1" else acks

    def near(self, *kinds: str) -> list[Fact]:
        """Facts of *kinds* about the loss's partition (or none named), within the window."""
        return [f for f in self.facts if f.kind in kinds and self._place(f) and self._time(f)]

    def _place(self, fact: Fact) -> bool:
        wanted = self.finding.partition
        return wanted is None or fact.partition is None or fact.partition == wanted

    def _time(self, fact: Fact) -> bool:
        first, last = self.finding.first_ms, self.finding.last_ms
        if fact.at_ms is None or first is None or last is None:
            return fact.at_ms is not None and first is None
        return first - WINDOW_MS <= fact.at_ms <= last + WINDOW_MS


@dataclass(frozen=True)
class Explained:
    """A cause with its evidence, and a clause a person can act on."""

    cause: Cause
    confidence: Confidence
    because: str
    evidence: tuple[str, ...] = ()


Rule = Callable[[Loss], "Explained | None"]


def cause_of(loss: Loss) -> Explained:
    """The first rule that applies."""
    for rule in RULES[State(loss.finding.state)]:
        found = rule(loss)
        if found is not None:
            return found
    ground = CLAUSES[Reason(loss.finding.reason)]
    return Explained(Cause.UNKNOWN, Confidence.NONE, f"{ground}; no evidence says why")


# -- the log lost it ---------------------------------------------------------------------------


def unclean_election(loss: Loss) -> Explained | None:
    """Rule 1: a replica that lacked it was made leader, as the controller or a leader says."""
    said = loss.near("unclean_election", "leader_recovering")
    if said:
        cuts = _cuts_below_watermark(loss)
        sure = any(f.partition == loss.finding.partition for f in said)
        return Explained(
            Cause.UNCLEAN_ELECTION,
            Confidence.EXACT
            if cuts
            else Confidence.SAME_CLIENT
            if sure
            else Confidence.SAME_BROKER,
            f"{_place(loss)} was given a leader that lacked committed records "
            "(unclean.leader.election.enable)",
            _keys(said, cuts),
        )
    outsiders = _leaders_from_outside(loss)
    if outsiders:
        return Explained(
            Cause.UNCLEAN_ELECTION,
            Confidence.SAME_CLIENT,
            f"{_place(loss)} got a leader that was not in sync just before",
            _keys(outsiders),
        )
    return None


def truncated(loss: Loss) -> Explained | None:
    """Rule 2: a replica cut committed records at or below its offset."""
    cuts = _cuts_below_watermark(loss)
    if not cuts:
        return None
    return Explained(
        Cause.TRUNCATED,
        Confidence.EXACT,
        f"{_place(loss)} was cut to offset {cuts[0].offset}, below its high watermark "
        f"{cuts[0].high_watermark}",
        _keys(cuts),
    )


def acks_1_leader_change(loss: Loss) -> Explained | None:
    """Rule 3: acked by the leader alone, and another broker leads since."""
    if loss.acks not in ("1", None):
        return None
    changes = _leader_changes(loss)
    if not changes:
        return None
    known = loss.acks == "1"
    return Explained(
        Cause.ACKS_1_LEADER_CHANGE,
        Confidence.SAME_CLIENT if known else Confidence.SAME_BROKER,
        f"{'acks=1: o' if known else 'O'}nly the leader of {_place(loss)} had it when it failed; "
        "acks=all with min.insync.replicas=2 keeps such records",
        _keys(changes),
    )


def fire_and_forget(loss: Loss) -> Explained | None:
    """Rule 4: acks=0, so nobody was asked whether it arrived."""
    said = loss.near("acks0_close")
    return Explained(
        Cause.FIRE_AND_FORGET,
        Confidence.EXACT,
        "acks=0: the client never asks whether a record was stored",
        _keys(said),
    )


# -- the client gave up ------------------------------------------------------------------------

_BY_ERROR: tuple[tuple[tuple[str, ...], Cause, str], ...] = (
    (
        ("TimeoutException(metadata)", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION"),
        Cause.METADATA_TIMEOUT,
        "no broker told the client where the topic is within max.block.ms",
    ),
    (
        ("TimeoutException(buffer)", "BufferExhausted", "_QUEUE_FULL"),
        Cause.BUFFER_EXHAUSTED,
        "the client's buffer was full: it sends slower than the application produces",
    ),
    (
        ("RecordTooLarge", "RecordBatchTooLarge", "MSG_SIZE_TOO_LARGE", "INVALID_MSG_SIZE"),
        Cause.RECORD_TOO_LARGE,
        "the record is larger than max.request.size or max.message.bytes allows",
    ),
    (
        ("Authorization", "AUTHORIZATION", "_AUTHENTICATION", "SaslAuthentication"),
        Cause.AUTHORIZATION,
        "the client may not write to the topic",
    ),
    (
        ("Serialization", "InvalidRecord", "INVALID_RECORD"),
        Cause.SERIALIZATION,
        "the record could not be serialized, or the broker refused its form",
    ),
    (
        ("_PURGE_", "_DESTROY", "KafkaException(closed)", "ForcedClose"),
        Cause.DROPPED_AT_CLOSE,
        "the producer was closed before the record was sent",
    ),
)


def refused_by_error(loss: Loss) -> Explained | None:
    """Rule 5: the error itself says it: metadata, buffer, size, rights, form, close."""
    for signs, cause, because in _BY_ERROR:
        if any(sign in loss.finding.error for sign in signs):
            return Explained(cause, Confidence.EXACT, because, _keys(_of_client(loss, _FAILURES)))
    return None


def delivery_timed_out(loss: Loss) -> Explained | None:
    """Rule 6: its time ran out, however many retries were left."""
    expired = ("TimeoutException(expired)", "_MSG_TIMED_OUT", "_TIMED_OUT_QUEUE")
    if not any(sign in loss.finding.error for sign in expired):
        return None
    retries = _of_client(loss, ("retry", "split_retry", "expired", "connection_failure"))
    burnt = _most_common([f.error for f in retries if f.error])
    timeout = loss.settings.get("delivery.timeout.ms") or loss.settings.get("message.timeout.ms")
    return Explained(
        Cause.DELIVERY_TIMEOUT,
        Confidence.EXACT,
        f"not acknowledged within {f'{timeout} ms' if timeout else 'delivery.timeout.ms'}"
        + (f"; {burnt} used the time up" if burnt else ""),
        _keys(retries[-20:]),
    )


def retries_exhausted(loss: Loss) -> Explained | None:
    """Rule 7: an error that is retried came once more than `retries` allows."""
    if not any(sign in loss.finding.error for sign in _RETRIABLE):
        return None
    lines = [f for f in _of_client(loss, ("retry", "split_retry")) if f.attempts_left is not None]
    retries = loss.settings.get("retries", "")
    if not lines and retries in ("", "0"):
        return None
    return Explained(
        Cause.RETRIES_EXHAUSTED,
        Confidence.EXACT if any(f.attempts_left == 0 for f in lines) else Confidence.SAME_CLIENT,
        f"{loss.finding.error} outlasted all {retries or 'configured'} retries",
        _keys(lines[-20:]),
    )


def not_enough_replicas(loss: Loss) -> Explained | None:
    """Rule 8: fewer replicas in sync than the topic demands, and the client does not retry."""
    if not any(sign in loss.finding.error for sign in ("NotEnoughReplicas", "NOT_ENOUGH_REPLICAS")):
        return None
    said = loss.near("broker_append_error", "isr_shrink")
    return Explained(
        Cause.NOT_ENOUGH_REPLICAS,
        Confidence.EXACT,
        f"fewer replicas of {_place(loss)} were in sync than min.insync.replicas demands, "
        "and the client does not retry",
        _keys(said[:20]),
    )


def gave_up_at_once(loss: Loss) -> Explained | None:
    """Rule 9: a passing error, but `retries` is 0: the first one is the last."""
    if loss.settings.get("retries") != "0":
        return None
    if not any(sign in loss.finding.error for sign in _RETRIABLE):
        return None
    return Explained(
        Cause.RETRIES_EXHAUSTED,
        Confidence.SAME_CLIENT,
        f"retries=0: {loss.finding.error} was not tried again",
        _keys(_of_client(loss, _FAILURES)),
    )


def dropped_at_close(loss: Loss) -> Explained | None:
    """Rule 10: the client says it was closed with records unsent."""
    said = _of_client(loss, ("dropped_at_close",))
    if not said:
        return None
    return Explained(
        Cause.DROPPED_AT_CLOSE,
        Confidence.SAME_CLIENT,
        "the producer was closed with records still unsent; close it with a time-out that suffices",
        _keys(said),
    )


def producer_crashed(_loss: Loss) -> Explained | None:
    """Rule 11: its process ended without a word."""
    return Explained(
        Cause.PRODUCER_CRASH,
        Confidence.EXACT,
        "the producer's process ended with the record still in its buffer",
    )


# -- the group did not get it ------------------------------------------------------------------


def consumer_reset(loss: Loss) -> Explained | None:
    """Rule 12: the group's position was moved past it."""
    if loss.finding.reason != Reason.JUMPED_OVER:
        return None
    said = [f for f in loss.near("offset_reset") if f.group in (None, "", loss.group)]
    return Explained(
        Cause.CONSUMER_RESET,
        Confidence.EXACT if said else Confidence.SAME_CLIENT,
        f"a member of {loss.group} jumped over {_offsets(loss)} of {_place(loss)}",
        _keys(said),
    )


def _offsets(loss: Loss) -> str:
    first, last = loss.finding.first_offset, loss.finding.last_offset
    if first is None:
        return "its offset"
    return f"offset {first}" if first == last else f"offsets {first} to {last}"


def commit_before_processing(loss: Loss) -> Explained | None:
    """Rule 13: committed, and the process ended before it was done."""
    if loss.finding.reason != Reason.COMMITTED_UNPROCESSED:
        return None
    return Explained(
        Cause.COMMIT_BEFORE_PROCESSING,
        Confidence.EXACT,
        f"{loss.group} committed past it before processing it; commit after processing",
    )


def retention(loss: Loss) -> Explained | None:
    """Rule 14: deleted by retention before the group came."""
    return Explained(
        Cause.RETENTION,
        Confidence.EXACT,
        f"retention deleted offsets up to {loss.finding.last_offset} of {_place(loss)} before "
        f"{loss.group} read them",
    )


_GIVEN_UP: tuple[Rule, ...] = (
    refused_by_error,
    delivery_timed_out,
    retries_exhausted,
    not_enough_replicas,
    gave_up_at_once,
    dropped_at_close,
)
_LOG: tuple[Rule, ...] = (unclean_election, truncated, acks_1_leader_change)

RULES: Mapping[State, tuple[Rule, ...]] = {
    State.LOST_AFTER_ACK: _LOG,
    State.LOST_UNACKED: (fire_and_forget,),
    State.REJECTED: _GIVEN_UP,
    State.LOST_INDETERMINATE: _GIVEN_UP,
    State.LOST_IN_CRASH: (dropped_at_close, producer_crashed),
    State.UNACCOUNTED: (dropped_at_close,),
    State.SKIPPED_BY_CONSUMER: (commit_before_processing, consumer_reset),
    State.EXPIRED_BEFORE_READ: (retention,),
}
"""The rules for each state that is a loss, in order."""

LOSSES = tuple(RULES)

_FAILURES = ("send_failed", "expired", "fatal_sequence", "connection_failure")
_RETRIABLE = (
    *("NotEnoughReplicas", "NOT_ENOUGH_REPLICAS", "NotLeader", "NOT_LEADER", "TimeoutException"),
    *("NetworkException", "_TRANSPORT", "_TIMED_OUT", "REQUEST_TIMED_OUT", "DisconnectException"),
    *("UnknownTopicOrPartition", "UNKNOWN_TOPIC_OR_PART", "LeaderNotAvailable"),
    *("LEADER_NOT_AVAILABLE", "CorruptRecord", "CORRUPT_MESSAGE", "KafkaStorage"),
    *("KAFKA_STORAGE_ERROR", "OutOfOrderSequence", "_ALL_BROKERS_DOWN"),
)


def _of_client(loss: Loss, kinds: tuple[str, ...]) -> list[Fact]:
    """Facts of the loss's own client; of any client of the topic where it is not known."""
    return [
        f
        for f in loss.near(*kinds)
        if loss.client_id in (None, "") or f.client_id in (None, loss.client_id)
    ]


def _cuts_below_watermark(loss: Loss) -> list[Fact]:
    last = loss.finding.last_offset
    return [
        f
        for f in loss.near("truncation")
        if f.offset is not None
        and f.high_watermark is not None
        and f.offset < f.high_watermark
        and (last is None or f.offset <= last)
        and f.partition is not None
    ]


def _answers(loss: Loss) -> list[Fact]:
    """The cluster's answers about the partition, in order."""
    found = [f for f in loss.near("cluster_state") if f.partition == loss.finding.partition]
    return sorted(found, key=lambda f: (f.at_ms or 0, f.key))


def _leader_changes(loss: Loss) -> list[Fact]:
    """The answers just before and after each change of the leader epoch."""
    found: list[Fact] = []
    answers = [f for f in _answers(loss) if f.epoch is not None]
    for before, after in itertools.pairwise(answers):
        if after.epoch is not None and before.epoch is not None and after.epoch > before.epoch:
            found += [before, after]
    return found


def _leaders_from_outside(loss: Loss) -> list[Fact]:
    """Answers with a leader that the answer before did not count among the in-sync replicas."""
    found: list[Fact] = []
    answers = [f for f in _answers(loss) if f.broker is not None and f.broker >= 0 and f.isr]
    for before, after in itertools.pairwise(answers):
        if after.broker != before.broker and after.broker not in before.isr:
            found += [before, after]
    return found


def _keys(*facts: Sequence[Fact]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(f.key for some in facts for f in some))[:50]


def _most_common(names: list[str]) -> str | None:
    return max(sorted(set(names)), key=names.count, default=None)


def _place(loss: Loss) -> str:
    partition = loss.finding.partition
    return "the topic" if partition is None else f"partition {partition}"
