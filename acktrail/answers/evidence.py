"""What was seen in a window, source by source, and what was not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from acktrail.answers.inquiry import Inquiry
from acktrail.answers.many import Row, Top, grouped, in_utc, top
from acktrail.answers.pending import pending_evidence
from acktrail.answers.sources import source_states
from acktrail.contracts.bronze import AUDIT_REPORTS
from acktrail.contracts.runs import COVERAGE
from acktrail.contracts.silver import UNREAD_RECORDS
from acktrail.contracts.vocabulary import SourceState
from acktrail.lake import Lake
from acktrail.window import hour_of

KINDS = {
    "audit": "No audit in this window: nothing is known about lost messages.",
    "logs": "No log in this window: retries, failed sends and elections are seen by metrics alone.",
    "metrics": "No metrics in this window: rates of errors and retries are not known.",
    "cluster": "No answer of the cluster in this window: leaders and offsets are not known.",
}
"""Kinds of evidence, and what is not known without them."""
_MISSING = 200
_REPORTERS = 20
_SILENT = timedelta(seconds=30)
_GOOD_PART = timedelta(minutes=10)
SKEW = timedelta(seconds=2)
"""Clocks that differ by less are taken for equal: receipts may be whole seconds."""


@dataclass(frozen=True)
class EvidenceSeen:
    """The evidence of a window."""

    hours: list[Row] = field(default_factory=list)
    """One row per cluster, source, kind and hour: rows, and `gap` where some are known missing."""
    missing: Top = field(default_factory=Top)
    """What sources said is missing."""
    clocks: list[Row] = field(default_factory=list)
    """Reporters whose clock is ahead of the agent's: `reporter`, `ahead_s` at least."""
    unread: int = 0
    """Records that look like evidence and could not be read."""
    asked_hours: frozenset[str] = frozenset()
    """The hours that the window has a good part of."""
    ends: list[Row] = field(default_factory=list)
    """Targets, reporters and topics whose evidence ends before the window does."""
    pending: list[str] = field(default_factory=list)
    down: list[str] = field(default_factory=list)

    @cached_property
    def kinds(self) -> set[str]:
        """The kinds of evidence there are rows of."""
        return {row["kind"] for row in self.hours if row["rows"]}

    def unseen(self) -> Iterator[str]:
        """What could not be seen, a sentence each."""
        for kind, sentence in KINDS.items():
            if kind not in self.kinds:
                yield sentence
        yield from self._silent_hours()
        yield from self.down
        if self.missing.of:
            named = sorted({row["source"] for row in self.missing.rows})
            yield f"{_count(self.missing.of, 'hour')} of {_some(named)} lack evidence."
        for kind in ("audit", "metrics", "cluster"):
            yield from _ending(kind, [row for row in self.ends if row["kind"] == kind])
        yield from self.pending
        if self.unread:
            yield (
                f"{_count(self.unread, 'log record')} looked like evidence and could not be read: "
                "see the table unread_records."
            )
        if self.clocks:
            worst = max(row["ahead_s"] for row in self.clocks)
            yield (
                f"The clocks of {_count(len(self.clocks), 'reporter')} are ahead, by up to "
                f"{worst:,.0f} s: orders of events may be wrong by as much."
            )

    def _silent_hours(self) -> Iterator[str]:
        """Hours without evidence of a kind that never is silent: logs may have nothing to tell."""
        for kind, words in (
            ("audit", "no audit"),
            ("metrics", "no metrics"),
            ("cluster", "no answer of the cluster"),
        ):
            known = {row["hour"] for row in self.hours if row["kind"] == kind and row["rows"]}
            silent = len(self.asked_hours - known)
            if known and silent:
                yield f"There is {words} in {silent:,} of {len(self.asked_hours):,} hours."


def evidence_seen(lake: Lake, asked: Inquiry) -> EvidenceSeen:
    """What was seen in the window of *asked*, and what was not."""
    where = Inquiry(asked.since, asked.until, asked.as_of, asked.cluster).hours(COVERAGE)
    keys = ("cluster", "source", "kind", "hour")
    measures = [("rows", "sum"), ("first_at", "min"), ("last_at", "max")]
    hours = grouped(lake, COVERAGE, where, keys, measures)
    columns = ("cluster", "source", "subject", "kind", "hour", "missing")
    known = pc.field("missing").is_valid()
    missing = top(
        lake,
        COVERAGE,
        where & known,
        columns,
        [("hour", "descending"), ("source", "ascending"), ("subject", "ascending")],
        _MISSING,
    )
    gaps = {(r["cluster"], r["source"], r["kind"], r["hour"]) for r in missing.rows}
    rows = sorted(
        (in_utc(r) for r in hours.to_pylist()), key=lambda r: tuple(str(r[k]) for k in keys)
    )
    for row in rows:
        row["gap"] = (row["cluster"], row["source"], row["kind"], row["hour"]) in gaps
    unread = asked.named(UNREAD_RECORDS)
    days = pc.field("day") >= f"{asked.since:%Y-%m-%d}"
    count = sum(
        b.num_rows
        for b in lake.batches(UNREAD_RECORDS, days if unread is None else days & unread, ["day"])
    )
    return EvidenceSeen(
        hours=rows,
        missing=missing,
        clocks=_clocks(lake, asked),
        unread=count,
        asked_hours=_asked_hours(asked),
        ends=_ends(lake, asked, where),
        pending=list(_pending(lake)),
        down=_down(lake, asked),
    )


def _ends(lake: Lake, asked: Inquiry, where: Any) -> list[Row]:
    """Who gave no evidence in the window's last part, and did not say that it had ended."""
    timed = where & pc.field("kind").isin(["audit", "metrics", "cluster"])
    open_ = timed & (pc.field("closed").is_null() | ~pc.field("closed"))
    keys = ("cluster", "source", "kind", "subject")
    rows = grouped(lake, COVERAGE, open_, keys, [("last_at", "max")]).to_pylist()
    late = asked.until - max(_SILENT, (asked.until - asked.since) / 50)
    found = [in_utc(r) for r in rows if r["last_at"] is not None and r["last_at"] < late]
    return sorted(found, key=lambda r: (r["kind"], r["last_at"], r["source"], r["subject"]))


def _short(subject: str) -> str:
    """*subject*; of a long name without words its beginning."""
    return f"{subject[:8]}…" if len(subject) == 32 and subject.isalnum() else subject


def _ending(kind: str, rows: list[Row]) -> Iterator[str]:
    what = {"audit": "Audits of", "metrics": "Metrics of", "cluster": "Answers about"}[kind]
    noun = {"audit": "reporter", "metrics": "target", "cluster": "topic"}[kind]
    if rows:
        named = [f"{_short(r['subject'])} after {r['last_at']:%H:%M:%SZ}" for r in rows]
        more = len(named) - 3
        listed = ", ".join(named[:3]) + (f" and {more} more" if more > 0 else "")
        yield f"{what} {_count(len(rows), noun)} end before the window does: {listed}."


def _clocks(lake: Lake, asked: Inquiry) -> list[Row]:
    """Reporters whose reports were received before they say they were made."""
    where = asked.at(AUDIT_REPORTS, "reported_at", "client_id", "group")
    early = pc.field("read_at") < pc.field("reported_at")
    rows = [
        batch.append_column(
            "ahead", pc.subtract(batch["reported_at"], batch["read_at"]).cast(pa.int64())
        )
        for batch in lake.batches(
            AUDIT_REPORTS, where & early, ["cluster", "reporter", "reported_at", "read_at"]
        )
    ]
    if not rows:
        return []
    worst = pa.concat_tables(rows).group_by(["cluster", "reporter"]).aggregate([("ahead", "max")])
    found = [
        {"cluster": r["cluster"], "reporter": r["reporter"], "ahead_s": r["ahead_max"] / 1e6}
        for r in worst.to_pylist()
        if timedelta(microseconds=r["ahead_max"]) >= SKEW
    ]
    return sorted(found, key=lambda r: (-r["ahead_s"], r["reporter"]))[:_REPORTERS]


def _pending(lake: Lake) -> Iterator[str]:
    """What no run has read yet, table by table."""
    for one in pending_evidence(lake):
        part = "" if one.counted else "at least "
        why = f" The last run failed: {one.failure.error}" if one.failure else ""
        if one.rows or one.failure:
            verb = "is" if one.rows == 1 else "are"
            yield (
                f"{part}{_count(one.rows, 'row')} of {one.source} {verb} "
                f"not in {one.table} yet: run `acktrail run`.{why}"
            )


def _down(lake: Lake, asked: Inquiry) -> list[str]:
    found = []
    for row in source_states(lake, asked.as_of):
        state = row["state"]
        if state in (SourceState.UP, SourceState.ENDED, SourceState.HELD):
            continue
        since = in_utc(row)["state_since_at"]
        why = row["error"] or "no reason given"
        found.append(f"Source {row['source']} is {state} since {_utc(since)}: {why}")
    return found


def _asked_hours(asked: Inquiry) -> frozenset[str]:
    """The hours of which the window has ten minutes; all that it touches, where none has."""
    hour = timedelta(hours=1)
    start = asked.since.replace(minute=0, second=0, microsecond=0)
    touched = [start + n * hour for n in range(int((asked.until - start) / hour) + 1)]
    large = [
        at for at in touched if min(at + hour, asked.until) - max(at, asked.since) >= _GOOD_PART
    ]
    return frozenset(hour_of(at) for at in large or touched)


def _some(names: list[str], most: int = 3) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more sources" if more > 0 else "")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _utc(at: datetime | None) -> str:
    return "an unknown time" if at is None else f"{at:%Y-%m-%d %H:%M:%SZ}"
