"""Whether the evidence itself can be trusted: complete, fresh, parsed, matched, on time."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import ClassVar

import pandas as pd

from acktrail.alerts.finding import Finding
from acktrail.contracts.vocabulary import Outcome
from expectations.domain.expectation import (
    DomainExpectation,
    hour_start,
    instant,
    keys_of,
    missing,
    not_collected,
    number,
)

MISSING = "evidence_missing"
STALE = "evidence_stale"
_KEY = ("source", "subject", "hour")


class _Covered(DomainExpectation):
    """Findings about what sources gave, and when last."""

    kinds: ClassVar[tuple[str, ...]] = ()

    def findings(self, frame: pd.DataFrame) -> list[Finding]:
        """One finding for each kind with a gap, and for each source that went quiet."""
        own = frame[frame["kind"].isin(self.kinds)]
        gaps = own[own["missing"].notna()]
        found = [
            Finding(
                outcome=Outcome.FAIL,
                cluster=str(cluster),
                topic="",
                group="",
                state=MISSING,
                cause=str(kind),
                starts_at=hour_start(rows["hour"].min(), self.asked_at),
                ends_at=None,
                because=gap_sentence(str(kind), rows),
                count=len(rows),
                keys=keys_of(rows, _KEY),
            )
            for (cluster, kind), rows in gaps.groupby(["cluster", "kind"])
        ]
        return [*found, *self._quiet(own)]

    def _quiet(self, own: pd.DataFrame) -> list[Finding]:
        # A reporter that said good-bye owes nothing.
        owing = own[own["closed"].map(lambda said: said is not True).astype(bool)]
        # A log without lines is not a source without a reader.
        heard = owing[["last_at", "read_at"]].max(axis=1)
        owing = owing.assign(last_at=heard.where(owing["kind"] == "logs", owing["last_at"]))
        latest = owing.groupby(["cluster", "source", "kind"])["last_at"].max().reset_index()
        due = latest["last_at"] + pd.to_timedelta(self.limit(latest, "fresh_s"), unit="s")
        quiet = latest[due < pd.Timestamp(self.asked_at)]
        return [
            Finding(
                outcome=Outcome.FAIL,
                cluster=row["cluster"],
                topic="",
                group="",
                state=STALE,
                cause=row["source"],
                starts_at=instant(row["last_at"], self.asked_at),
                ends_at=None,
                because=(
                    f"Source {row['source']} ({row['kind']}) has given nothing since "
                    f"{instant(row['last_at'], self.asked_at).isoformat(timespec='seconds')}."
                ),
                keys=(row["source"],),
            )
            for row in quiet.to_dict("records")
        ]


class ExpectEvidenceCompleteAndFresh(_Covered):
    """Logs, audits and cluster states have no known gap, and every source gave evidence lately."""

    thresholds: ClassVar[dict[str, float]] = {"fresh_s": 3600, "pending_s": 600}
    kinds: ClassVar[tuple[str, ...]] = ("audit", "logs", "cluster")


class ExpectMetricsOfEverySource(_Covered):
    """Every source of metrics answers: no scrape failed, and every source gave samples lately."""

    thresholds: ClassVar[dict[str, float]] = {"fresh_s": 3600}
    kinds: ClassVar[tuple[str, ...]] = ("metrics",)

    def findings(self, frame: pd.DataFrame) -> list[Finding]:
        """As of any evidence; undecided where there are no metrics at all."""
        if not (frame["kind"] == "metrics").any():
            return [
                missing(
                    cluster="",
                    cause="no_metrics",
                    starts_at=self.asked_at,
                    because=not_collected("metrics"),
                    needs="metrics",
                )
            ]
        return super().findings(frame)


class ExpectClocksWithinBound(DomainExpectation):
    """No evidence is dated after the moment it was read: its host's clock would be ahead."""

    thresholds: ClassVar[dict[str, float]] = {"clock_skew_s": 5}

    def findings(self, frame: pd.DataFrame) -> list[Finding]:
        """One finding for each source whose evidence comes from the future."""
        bound = pd.to_timedelta(self.limit(frame, "clock_skew_s"), unit="s")
        ahead = frame[frame["last_at"] - bound > frame["computed_at"]]
        return [
            Finding(
                outcome=Outcome.FAIL,
                cluster=str(cluster),
                topic="",
                group="",
                state="clock_ahead",
                cause=str(source),
                starts_at=instant(rows["first_at"].min(), self.asked_at),
                ends_at=None,
                because=(
                    f"{number(len(rows), 'reporter')} of source {source}: evidence is dated up to "
                    f"{(rows['last_at'] - rows['computed_at']).max().total_seconds():.0f} s "
                    "after it was read."
                ),
                count=len(rows),
                keys=keys_of(rows, _KEY),
            )
            for (cluster, source), rows in ahead.groupby(["cluster", "source"])
        ]


class ExpectKnownLogLinesParsed(DomainExpectation):
    """Every log record that looks like evidence was read."""

    thresholds: ClassVar[dict[str, float]] = {"unread_records": 0}

    def findings(self, frame: pd.DataFrame) -> list[Finding]:
        """One finding for each source and thing that could not be read."""
        groups = frame.groupby(["cluster", "source", "reason"])
        counts = groups.size().reset_index(name="count")
        above = counts[counts["count"] > self.limit(counts, "unread_records")]
        found = []
        for row in above.to_dict("records"):
            rows = groups.get_group((row["cluster"], row["source"], row["reason"]))
            found.append(
                Finding(
                    outcome=Outcome.FAIL,
                    cluster=row["cluster"],
                    topic="",
                    group="",
                    state="log_lines_unread",
                    cause=row["reason"],
                    starts_at=_day(rows["day"].min()),
                    ends_at=None,
                    because=(
                        f"Could not read {number(row['count'], 'record')} of {row['source']} "
                        f"that look like {row['reason']}, e.g. {str(rows['text'].iloc[0])[:120]!r}."
                    ),
                    count=row["count"],
                    keys=keys_of(rows, ("record_key",)),
                )
            )
        return found


def gap_sentence(kind: str, rows: pd.DataFrame) -> str:
    """What is missing of *kind*: the last of the gaps *rows*."""
    last = rows.sort_values("hour").iloc[-1]
    more = f" ({number(len(rows), 'gap')} in the window)" if len(rows) > 1 else ""
    what = str(last["missing"]).rstrip(".")
    return f"Evidence of kind {kind} is missing: {last['source']}: {what}{more}."


def _day(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
