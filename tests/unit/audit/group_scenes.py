"""One partition, one producer and one group: evidence written by hand, and the group's verdicts."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

from acktrail.audit.session_account import accounts_of
from acktrail.audit.topic_evidence import topic_of
from acktrail.audit.wire import Report, Sighting, encode_sightings
from acktrail.contracts.vocabulary import Tier
from tests.worlds.evidence import Evidence
from tests.worlds.judged import findings_of, session_rows

AT = 1_800_000_000_000
OPEN_SETTINGS = {"client_id": "shop", "host": "h"}
"""A session of which no more is known may be transactional."""

Row = dict[str, Any]


def read(first: int, last: int, received: int | None, **more: Any) -> Row:
    """A range that a member reported; *received*: its receipt."""
    made = {
        "kind": "consumed", "partition": 0, "group": "g", "reporter": "m", "assignment": 1,
        "part": first, "number": 1, "first_offset": first, "last_offset": last,
        "records": last - first + 1, "began_ms": AT, "ended_ms": AT, "closed": False,
        "received_ms": received, "leader_epoch": None, "topic_id": None,
    }  # fmt: skip
    return made | more


def state(
    after: int | None,
    latest: int | None,
    earliest: int | None = 0,
    epoch: int | None = 0,
    **more: Any,
) -> Row:
    """What the cluster answered for the partition; *after*: the newest receipt before."""
    made = {
        "kind": "state", "partition": 0, "at_ms": AT + (after or 0), "earliest_offset": earliest,
        "latest_offset": latest, "leader_epoch": epoch, "topic_id": "t1", "after_ms": after,
    }  # fmt: skip
    return made | more


def commit(after: int | None, offset: int, members: int | None = 1, **more: Any) -> Row:
    """What the group had committed."""
    made = {
        "kind": "commit", "partition": 0, "group": "g", "at_ms": AT + (after or 0),
        "committed_offset": offset, "metadata": "", "topic_id": "t1", "members": members,
        "group_state": None, "after_ms": after,
    }  # fmt: skip
    return made | more


@dataclass(frozen=True)
class Scene:
    """Evidence; offset n holds id n. Numbers are receipts."""

    log: Collection[int] = range(30)
    epoch: int | None = 0
    scanned_after: int | None = 900
    reads: tuple[Row, ...] = ()
    answers: tuple[Row, ...] = ()
    given: Collection[int] = ()
    """Ids that the group reported."""
    settings: dict[str, str] = field(default_factory=lambda: {"acks": "all"})
    compacted: bool | None = False
    closed: bool = False
    """The member ended in good order."""
    beside: Collection[int] = ()
    """Ids that are in the log once more, 100 offsets higher."""
    moved: Collection[int] = ()
    """Ids that are in the log 100 offsets higher only."""
    committed: Collection[int] = ()
    """Ids whose transaction was committed, by a report or a scan."""
    aborted: Collection[int] = ()

    def but(self, **changes: Any) -> Scene:
        """The same with changes."""
        return replace(self, **changes)

    def without(self, **wanted: Any) -> Scene:
        """The same without reads and answers that have all the values *wanted*."""
        keep = lambda rows: tuple(  # noqa: E731
            r for r in rows if not all(r.get(k) == v for k, v in wanted.items())
        )
        return replace(self, reads=keep(self.reads), answers=keep(self.answers))

    def having(self, kind: str, **changed: Any) -> Scene:
        """The same with *changed* values in all rows of *kind*."""
        change = lambda rows: tuple(  # noqa: E731
            {**r, **changed} if r["kind"] == kind else r for r in rows
        )
        return replace(self, reads=change(self.reads), answers=change(self.answers))

    def also(self, *rows: Row) -> Scene:
        """The same and more answers or reads."""
        return replace(self, answers=(*self.answers, *rows))

    def rows(self) -> list[Row]:
        """The rows of the topic."""
        asked = state(0, None, None, None)  # before anything was received
        known = [asked, *self.reads, *self.answers]
        if self.closed:
            known.append({"kind": "member_closed", "group": "g", "reporter": "m"} | _NOWHERE)
        if self.compacted is not None:
            known.append({"kind": "policy", "compacted": self.compacted, "at_ms": 0} | _NOWHERE)
        return known

    def reports(self) -> list[Report]:
        """What the producer, the scan and the group reported of ids."""
        places = [(n, n + 100 * (n in self.moved)) for n in self.log]
        places += [(n, n + 100) for n in self.beside]
        seen = [
            Sighting("s", "t", n, Tier.IN_LOG, AT, 0, o, leader_epoch=self.epoch, topic_id="t1")
            for n, o in places
        ]
        got = [Sighting("s", "t", n, Tier.DELIVERED, AT, 0, n, group="g") for n in self.given]
        scanned = [
            replace(r, after_ms=self.scanned_after, received_ms=950)
            for r in encode_sightings(seen, "scan", 1, AT)
        ]
        ended = [Sighting("s", "t", n, Tier.COMMITTED, AT) for n in self.committed]
        ended += [Sighting("s", "t", n, Tier.ABORTED, AT) for n in self.aborted]
        scanned += encode_sightings(ended, "p", 2, AT)
        beat = Report("p", Tier.HEARTBEAT, "t", 1, AT, session="s", settings=self.settings)
        return [*scanned, *encode_sightings(got, "m", 1, AT), beat]

    def verdicts(self) -> dict[int, tuple[str, str]]:
        """The state and reason of each id for the group; quiet ones have no reason."""
        topic = topic_of(self.rows())
        found: dict[int, tuple[str, str]] = {}
        for account in accounts_of(session_rows(Evidence(self.reports()), "s"), topic):
            if account["group"] == "g":
                assert account["residual"] == 0
                for f in findings_of(account):
                    for seq in range(f.first_seq, f.last_seq + 1):
                        found[seq] = (f.state, f.reason)
        return found


_NOWHERE: Row = {"partition": None}
