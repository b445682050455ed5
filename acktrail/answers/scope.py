"""What an answer about messages rests on: what is audited, how much of it, and until when.

An empty answer is good news only where something was audited. These functions decide which it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from acktrail.answers.known_names import require_known
from acktrail.answers.losses import INCIDENT_STATES, Row, Wanted
from acktrail.contracts import Table
from acktrail.contracts.bronze import AUDIT_REPORTS
from acktrail.contracts.gold import DELIVERY_LEDGER
from acktrail.contracts.silver import AUDIT_PARTS
from acktrail.errors import NoEvidence
from acktrail.lake import Lake

OLD = timedelta(hours=1)
"""Evidence that ends longer ago than this is called out."""
HOW_TO_AUDIT = "docs/audit_your_application.md shows how to audit producers."
_BLOCK = ("cluster", "session", "topic", "block")
_READ = (*_BLOCK, "group", "sent", "pending", "inconclusive", *INCIDENT_STATES, "last_at")


@dataclass(frozen=True)
class Scope:
    """The accounts that an answer was read from."""

    asked: Wanted
    topics: int
    """Audited topics with evidence in the asked window."""
    messages: int
    pending: int
    """Messages that are pending for the log or for a group."""
    inconclusive: int
    lost: int
    """Messages of any time that the accounts have as lost, rejected, skipped or expired."""
    until: datetime | None
    """The newest audited event, in the window or not."""
    unread: int
    """Audit reports that came in after the last run."""

    def all_clear(self) -> str:
        """What is proven where no loss was found, in one sentence."""
        what = "" if self.asked.topic is None else f" on {self.asked.topic}"
        when = "" if self.asked.since is None else f" since {utc(self.asked.since)}"
        known = f"{_count(self.topics, 'topic')} audited, {_count(self.messages, 'message')}"
        ends = "" if self.until is None else f", evidence until {utc(self.until)}"
        undecided = [
            f"{number:,} {state}"
            for number, state in (
                (self.pending, "pending"),
                (self.inconclusive, "inconclusive"),
            )
            if number
        ]
        if undecided:
            known += f", of them {' and '.join(undecided)}"
        found = " found" if undecided else ""
        return f"No losses{found}{what}{when}: {known}{ends}."

    def caveats(self, now: datetime, all_clear: bool = False) -> Iterator[str]:
        """What the answer does not cover, a line each; *all_clear* was printed before them."""
        if self.asked.since is not None and not self.topics:
            newest = "" if self.until is None else f" The newest is of {utc(self.until)}."
            yield (
                f"There is no audit evidence{_of(self.asked)} at or after "
                f"{utc(self.asked.since)}.{newest}"
            )
        elif self.until is not None and self.until < now - OLD and not all_clear:
            yield (
                f"Audit evidence{_of(self.asked)} ends at {utc(self.until)}; "
                "nothing is known about later messages."
            )
        if self.unread:
            yield (
                f"{_count(self.unread, 'audit report')} came in after the last `acktrail run`; "
                "this answer does not include them."
            )


def scope_of(lake: Lake, asked: Wanted, table: Table) -> Scope:
    """What is audited of what is *asked*; an error where *table* cannot answer for it.

    UsageError for a cluster or topic that no evidence names; NoEvidence for one that is not
    audited, or whose accounts no run has made yet.
    """
    rows: list[Row] = lake.read(
        DELIVERY_LEDGER, Wanted(asked.cluster, asked.topic).where("last_at"), _READ
    ).to_pylist()
    if not rows:
        _refuse(lake, asked, table)
    since = asked.since
    inside = [r for r in rows if since is None or r["last_at"] is None or r["last_at"] >= since]
    return Scope(
        asked=asked,
        topics=len({(r["cluster"], r["topic"]) for r in inside}),
        messages=sum(_per_block(inside, "sent")),
        pending=sum(_per_block(inside, "pending")),
        inconclusive=sum(_per_block(inside, "inconclusive")),
        lost=sum(sum(_per_block(rows, name)) for name in INCIDENT_STATES),
        until=max((r["last_at"] for r in rows if r["last_at"] is not None), default=None),
        unread=_unread_reports(lake),
    )


def require_listed(lake: Lake, scope: Scope, table: Table) -> None:
    """NoEvidence where the accounts have losses and *table* lists none: a run did not finish."""
    named = Wanted(scope.asked.cluster, scope.asked.topic).where("")
    if scope.lost and not lake.read(table, named, ["topic"]).num_rows:
        raise NoEvidence(
            f"The ledger has {_count(scope.lost, 'lost message')}{_of(scope.asked)} that "
            f"{table.name} does not list: the last run did not finish. Run `acktrail run`."
        )


def _refuse(lake: Lake, asked: Wanted, table: Table) -> None:
    reported = lake.read(AUDIT_REPORTS, Wanted(asked.cluster, asked.topic).where(""), ["topic"])
    if reported.num_rows:
        if not lake.exists(DELIVERY_LEDGER):
            raise NoEvidence(f"Table {table.name} does not exist yet. Run `acktrail run`.")
        raise NoEvidence(
            f"Audit reports{_of(asked)} are in the lake, but no run has read them yet. "
            "Run `acktrail run`."
        )
    require_known(lake, asked.cluster, asked.topic)
    if asked.topic or asked.cluster:
        what = asked.topic or f"Cluster {asked.cluster}"
        raise NoEvidence(
            f"{what} is not audited; nothing is known about its messages. {HOW_TO_AUDIT}"
        )
    raise NoEvidence(
        f"This lake has no audits; nothing is known about lost messages. {HOW_TO_AUDIT}"
    )


def _per_block(rows: list[Row], column: str) -> list[int]:
    """Of each block the highest number that any audience has: each message counts once."""
    highest: dict[tuple[Any, ...], int] = {}
    for row in rows:
        key = tuple(row[name] for name in _BLOCK)
        highest[key] = max(highest.get(key, 0), row[column])
    return list(highest.values())


def _unread_reports(lake: Lake) -> int:
    """Rows of `audit_reports` that no run has read."""
    consumed = lake.consumed(AUDIT_PARTS, AUDIT_PARTS.name)
    if consumed is None:
        return 0
    unread = lake.unread(AUDIT_REPORTS, consumed.get(AUDIT_REPORTS.name))
    return 0 if unread is None else unread.rows


def _of(asked: Wanted) -> str:
    topic = "" if asked.topic is None else f" of {asked.topic}"
    return topic + ("" if asked.cluster is None else f" from cluster {asked.cluster}")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def utc(at: datetime) -> str:
    """*at* to the second."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
