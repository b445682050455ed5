"""The law: every claim of the rules holds in the world, at the time the evidence speaks of."""
# ruff: noqa: PLR0911

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from acktrail.audit.block_account import StateRange
from acktrail.audit.explained import Explained
from acktrail.audit.wire import Report, decode_runs
from acktrail.contracts.vocabulary import Cause, Confidence, State
from tests.worlds.evidence import Probe, Unit
from tests.worlds.groups import Group
from tests.worlds.partition import BENIGN, Copy, Span
from tests.worlds.producers import Fate, Producer
from tests.worlds.world import World

GONE = (
    State.LOST_AFTER_ACK, State.LOST_UNACKED, State.LOST_INDETERMINATE, State.LOST_IN_CRASH,
    State.REJECTED, State.UNACCOUNTED,
)  # fmt: skip
CLAIMS = (*GONE, State.SKIPPED_BY_CONSUMER, State.EXPIRED_BEFORE_READ)
TOLD = {
    State.LOST_AFTER_ACK: ("acked", "acked_no_offset"),
    State.LOST_UNACKED: ("sent_unacked",),
    State.LOST_INDETERMINATE: ("indeterminate", "failed"),
    State.REJECTED: ("failed", "indeterminate"),
}

_BY_ERROR = {
    "TimeoutException(metadata)": Cause.METADATA_TIMEOUT,
    "_UNKNOWN_TOPIC": Cause.METADATA_TIMEOUT,
    "RecordTooLargeException": Cause.RECORD_TOO_LARGE,
    "MSG_SIZE_TOO_LARGE": Cause.RECORD_TOO_LARGE,
    "BufferExhaustedException": Cause.BUFFER_EXHAUSTED,
    "_QUEUE_FULL": Cause.BUFFER_EXHAUSTED,
    "TimeoutException(expired)": Cause.DELIVERY_TIMEOUT,
    "_MSG_TIMED_OUT": Cause.DELIVERY_TIMEOUT,
    "KafkaException(closed)": Cause.DROPPED_AT_CLOSE,
    "_PURGE_QUEUE": Cause.DROPPED_AT_CLOSE,
}
"""By what the application was told."""
_BY_MOVE = {"commit_ahead": Cause.COMMIT_BEFORE_PROCESSING, "expired": Cause.RETENTION}
"""By how a group's position passed; everything else is a reset."""
_CAUSES = {
    "unclean_election": Cause.UNCLEAN_ELECTION,
    "acks_1_leader_change": Cause.ACKS_1_LEADER_CHANGE,
    "wiped": Cause.LOG_DIRECTORY_LOST,
}
"""By what took a record out of the log."""
Explanation = tuple[StateRange, Explained]
Said = Mapping[int, tuple[str, str]]
"""State and reason of every id that is not delivered; delivered ids are in it as such."""


@dataclass(frozen=True)
class Violation:
    """A claim that does not hold, or one that should have been made."""

    kind: str
    session: str
    group: str
    seq: int
    state: str
    reason: str

    @property
    def sort(self) -> str:
        return f"{self.kind} [{self.state}/{self.reason}]"


class Judge:
    """Knows the world, and what of it is in one view."""

    def __init__(self, world: World, units: Sequence[Unit]) -> None:
        self.world = world
        self.units = units
        self.end = max((u.tick for u in units), default=0)
        self.probes: list[Probe] = [p for u in units for p in u.probes]
        self.producers = {p.session: p for p in world.producers}
        self.groups = {g.name: g for g in world.groups}

    @cached_property
    def sighted(self) -> dict[Copy, int]:
        """Copies that scans of the view have read, with their name, and when last."""
        found: dict[Copy, int] = {}
        for probe in self.probes:
            for copy in probe.found:
                if copy.named:
                    found[copy] = max(probe.read, found.get(copy, 0))
        return found

    @cached_property
    def shows_transactions(self) -> set[str]:
        """Sessions whose transactional.id is in the view, or who reported an abort."""
        return {
            r.session
            for u in self.units
            if u.kind in ("heartbeat", "report")
            for r in u.rows
            if "transactional.id" in r.settings or r.tier.value == "aborted"
        }

    @cached_property
    def named_topics(self) -> set[str]:
        """The ids of the topics that answers and scans of the view are about."""
        rows = [r for u in self.units if u.kind in ("state", "scan") for r in u.rows]
        return {r.topic_id for r in rows}

    # -- soundness -------------------------------------------------------------------------------

    def wrong(self, session: str, group: str, said: Said) -> Iterable[Violation]:
        """Every claim about *session* for *group* (the log without a name) that is not so."""
        producer = self.producers[session]
        for seq, (state, reason) in said.items():
            fate = producer.fates.get(seq)
            if fate is None:
                kind: str | None = "no such id"
            elif group == "":
                kind = self._wrong_of_log(producer, fate, state)
            else:
                kind = self._wrong_of_group(self.groups[group], fate, state)
            if kind:
                yield Violation(kind, session, group, seq, state, reason)

    def _wrong_of_log(self, producer: Producer, fate: Fate, state: str) -> str | None:
        if state == State.DELIVERED:
            return self._wrongly_delivered(fate)
        if state == State.ABORTED:
            t = fate.transaction
            return None if t and t.aborted_at <= self.end else "not aborted"
        if state not in GONE:
            return None
        if state in TOLD and fate.told not in TOLD[State(state)]:
            return f"was told {fate.told or 'nothing'}"
        if state == State.LOST_IN_CRASH and not producer.ended:
            return "its process lives"
        if state == State.UNACCOUNTED and not producer.closed:
            return "its producer did not close"
        if fate.before_send and not fate.copies:
            return None
        return self._still_there(fate)

    def _wrongly_delivered(self, fate: Fate) -> str | None:
        there = [c for c in fate.copies if c.stored and c.stored[0].since <= self.end]
        if not there:
            return "was never stored"
        t = fate.transaction
        known = fate.session in self.shows_transactions
        if t is not None and known and t.committed_at > self.end:
            return "its transaction was not committed"
        return None

    def _still_there(self, fate: Fate) -> str | None:
        """None where a look of the view, after its outcome, was at a log without it."""
        after = fate.told_at if fate.told else fate.sent
        spans = [(c, s) for c in fate.copies for s in c.stored]
        whys = {s.why for c, s in spans if self._taken(c, s)}
        scans = [p for p in self.probes if p.began >= after and p.number]
        if whys and not any(all(s.since > p.read for _, s in spans) for p in scans):
            return f"taken by {'/'.join(sorted(whys))}"
        for copy in fate.copies:
            seen = self.sighted.get(copy)
            if seen is not None and any(
                s.since <= seen and self.end < s.until for s in copy.stored
            ):
                return "seen, and still there"
        looks = [p for p in self.probes if p.began >= after]
        if not looks:
            return "nobody looked after its outcome"
        if any(self._absent(fate, p) for p in looks):
            return None
        visible = any(c.visible_at(p.began) for c in fate.copies for p in looks)
        unnamed = any(not c.named and c.stored for c in fate.copies)
        return (
            "there, without its name" if unnamed else "there" if visible else "there, uncommitted"
        )

    def _taken(self, copy: Copy, span: Span) -> bool:
        """Whether it was to be deleted. What a cut would have taken later anyway, is lost."""
        if span.why not in BENIGN or span.until > self.end:
            return False
        if span.why == "recreated" and copy.topic_id not in self.named_topics:
            return False  # nothing shows that there was an earlier topic
        partition = self.world.partitions[copy.partition]
        cuts = partition.cuts if partition.topic_id == copy.topic_id else []
        cut = any(
            at > span.until and end <= copy.offset and why != "unchanged" for at, end, why in cuts
        )
        return not (cut or self._written_again(copy, span.until))

    def _written_again(self, copy: Copy, now: int) -> bool:
        """Whether another record came to its offset: a leader's log had parted below it."""
        others = self._at.get((copy.topic_id, copy.partition, copy.offset), [])
        return any(o is not copy and any(s.since > now for s in o.stored) for o in others)

    @cached_property
    def _at(self) -> dict[tuple[str, int, int], list[Copy]]:
        """The records of audited producers by topic, partition and offset."""
        found: dict[tuple[str, int, int], list[Copy]] = {}
        for copy in (c for fate in self.world.fates() for c in fate.copies):
            found.setdefault((copy.topic_id, copy.partition, copy.offset), []).append(copy)
        return found

    def _absent(self, fate: Fate, probe: Probe) -> bool:
        """Whether it was not stored; of what no ack was given, whether nobody could read it.

        A leader may hold it above the high watermark. If that passes it later, it is stored then.
        """
        acked = fate.told.startswith("acked")
        return any(
            not any(c.stored_at(at) if acked else c.visible_at(at) for c in fate.copies)
            for at in (probe.began, probe.read)
        )

    def _wrong_of_group(self, group: Group, fate: Fate, state: str) -> str | None:
        received = group.received.get((fate.session, fate.seq), 1 << 62) <= self.end
        if state == State.DELIVERED:
            return None if received else "never received"
        if state == State.SKIPPED_BY_CONSUMER:
            if received:
                return "received"
            t = fate.transaction
            if t is not None and group.committed_only and t.committed_at > self.end:
                return "not committed"
            passed = [c for c in fate.copies if group.passed.get(c, 1 << 62) <= self.end]
            return None if passed else "never passed over"
        if state == State.EXPIRED_BEFORE_READ:
            if received:
                return "received"
            gone = [c for c in fate.copies if group.expired.get(c, 1 << 62) <= self.end]
            return None if gone else "not expired while owed"
        return None

    # -- causes ----------------------------------------------------------------------------------

    def miscaused(self, session: str, found: Iterable[Explanation]) -> Iterable[Violation]:
        """Causes called exact that are others."""
        producer = self.producers[session]
        for finding, explained in found:
            fates = [producer.fates[q] for q in range(finding.first_seq, finding.last_seq + 1)]
            causes = {c for fate in fates if (c := self._cause(fate, finding.state))}
            if not causes or explained.cause in causes:
                continue
            if explained.confidence == Confidence.EXACT:
                wanted = "/".join(sorted(causes))
                kind = f"{explained.confidence} cause {explained.cause}, but {wanted}"
                yield Violation(kind, session, "", finding.first_seq, finding.state, finding.reason)

    def causes(
        self, session: str, group: str, found: Iterable[Explanation]
    ) -> Iterable[tuple[str, bool]]:
        """With all evidence, of every loss that has one cause: its state, and whether it was named.

        Of what the log lost, where the evidence decides: the settings and an offset are known.
        """
        producer = self.producers[session]
        for finding, explained in found if self.complete else ():
            fates = [producer.fates[q] for q in range(finding.first_seq, finding.last_seq + 1)]
            if finding.state in (State.SKIPPED_BY_CONSUMER, State.EXPIRED_BEFORE_READ):
                causes = {c for fate in fates for c in self._causes_for(self.groups[group], fate)}
            else:
                causes = {c for fate in fates if (c := self._cause(fate, finding.state))}
            decisive = producer.shows == "settings" and finding.first_offset is not None
            if len(causes) == 1 and (decisive or finding.state != State.LOST_AFTER_ACK):
                yield finding.state, explained.cause in causes

    def _causes_for(self, group: Group, fate: Fate) -> Iterable[Cause]:
        """How the group's position passed its records."""
        for now, number, first, last, kind in group.resets:
            for copy in fate.copies:
                here = copy.partition == number and first <= copy.offset <= last
                if here and copy.stored_at(now - 1):
                    yield _BY_MOVE.get(kind, Cause.CONSUMER_RESET)

    @property
    def complete(self) -> bool:
        """Whether all that was said is in the view."""
        return len(self.units) == len(self.world.lake.units)

    def _cause(self, fate: Fate, state: str) -> Cause | None:
        """Why it was lost; None where the world has no one cause."""
        if state == State.LOST_UNACKED:
            return Cause.FIRE_AND_FORGET
        if state == State.LOST_IN_CRASH:
            return Cause.PRODUCER_CRASH
        if state in (State.REJECTED, State.LOST_INDETERMINATE):
            return _BY_ERROR.get(fate.error)
        if state != State.LOST_AFTER_ACK or not fate.copies:
            return None
        spans = fate.copies[-1].stored
        why = spans[-1].why if spans else "acks_1_leader_change"  # an isolated leader had it
        return _CAUSES.get(why)

    # -- completeness ----------------------------------------------------------------------------

    def missed(self, session: str, said: Said) -> Iterable[Violation]:
        """Losses that the whole evidence decides, and that are not claimed."""
        producer = self.producers[session]
        for fate in producer.fates.values():
            wanted = self._decidable(producer, fate)
            if wanted is None:
                continue
            state, reason = said.get(fate.seq, ("unknown", ""))
            if state not in wanted:
                yield Violation(
                    f"not claimed as {'/'.join(wanted)}", session, "", fate.seq, state, reason
                )

    @cached_property
    def _plain(self) -> bool:
        """Nothing in the world's history makes absence ambiguous."""
        world = self.world
        taken = {s.why for f in world.fates() for c in f.copies for s in c.stored if s.until}
        return (
            world.policy == "delete" and world.policy_known and not world.policy_changed
            and not taken & set(BENIGN) and world.generation == 1
            and not any(p.log.start for p in world.partitions)
            and not any(not c.named and not c.marker for pr in self.probes for c in pr.found)
        )  # fmt: skip

    @cached_property
    def _last_scan(self) -> dict[int, Probe]:
        return {
            p.partition: p for p in self.probes if p.number == self.world.ended_scan and p.complete
        }

    @cached_property
    def _receipts(self) -> dict[tuple[str, int], int]:
        """When the outcome of each id was committed."""
        found: dict[tuple[str, int], int] = {}
        for unit in self.units:
            if unit.kind == "report":
                for row in unit.rows:
                    if row.tier.value not in ("sent", "aborted"):
                        for seq in seqs_of(row):
                            key = (row.session, seq)
                            found[key] = min(unit.tick, found.get(key, unit.tick))
        return found

    def _decidable(self, producer: Producer, fate: Fate) -> tuple[str, ...] | None:
        """The states of which one must be claimed; None where it need not be."""
        if not self._plain or producer.transactional or producer.shows == "nothing":
            return None
        scans = self._last_scan
        if len(scans) < len(self.world.partitions):
            return None
        look = min(scans.values(), key=lambda p: p.began)
        if any(
            c.stored_at(p.began) or c.stored_at(p.read) for c in fate.copies for p in scans.values()
        ):
            return None
        if not self._asked_before(producer.session):
            return None
        received = self._receipts.get((fate.session, fate.seq))
        if received is None:
            return self._decidable_crash(producer, fate, look)
        if received >= look.began:
            return None
        if fate.told == "acked":
            offset = fate.copies[-1].offset
            reach = scans[fate.partition].last
            return ("lost_after_ack",) if offset <= reach else None
        all_have_it = (producer.acks, producer.shows) == ("all", "settings")
        if fate.told == "acked_no_offset" and not all_have_it:
            return None  # its leader may hold it above the high watermark
        return {
            "acked_no_offset": ("lost_after_ack",),
            "sent_unacked": ("lost_unacked",),
            "failed": ("rejected",),
            "indeterminate": ("lost_indeterminate",),
        }.get(fate.told)

    def _asked_before(self, session: str) -> bool:
        """Whether the cluster named the topic's id before the session was heard of."""
        heard = [
            r.received_ms
            for u in self.units
            for r in u.rows
            if getattr(r, "session", "") == session
        ]
        asked = [r.after_ms for u in self.units if u.kind == "state" for r in u.rows if r.after_ms]
        return bool(heard and asked) and min(asked) < min(heard)

    def _decidable_crash(
        self, producer: Producer, fate: Fate, look: Probe
    ) -> tuple[str, ...] | None:
        """Known by a higher id, and the process is known to have ended before the last scan."""
        mine = [u for u in self.units if u.source == producer.session]
        known = [s for u in mine for r in u.rows if r.ids for s in seqs_of(r)]
        ends = [u.tick for u in mine if any(r.exited or r.closed for r in u.rows)]
        if max(known, default=-1) < fate.seq or not ends or min(ends) >= look.began:
            return None
        return ("lost_in_crash", "unaccounted")


def seqs_of(row: Report) -> list[int]:
    """The ids of a report."""
    if row.ids is None:
        return []
    return [(row.block << 15) + int(i) for i in decode_runs(row.ids).listed()[0]]
