"""Whether the evidence itself can be trusted: complete, fresh, parsed, matched, on time."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import ClassVar

import pandas as pd

from expectations.domain.expectation import (
    DomainExpectation,
    failure,
    instant,
    keys_of,
    missing,
    texts,
)
from expectations.result import Finding

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
            failure(
                cluster=str(cluster),
                topic="",
                group="",
                state=MISSING,
                cause=str(kind),
                starts_at=gap_start(rows, self.asked_at),
                ends_at=None,
                because=f"Evidence of kind {kind} is missing: {rows['missing'].iloc[-1]}.",
                count=len(rows),
                keys=keys_of(rows, _KEY),
            )
            for (cluster, kind), rows in gaps.groupby(["cluster", "kind"])
        ]
        return [*found, *self._quiet(own)]

    def _quiet(self, own: pd.DataFrame) -> list[Finding]:
        # A reporter that said good-bye owes nothing.
        owing = own[own["closed"].map(lambda said: said is not True).astype(bool)]
        latest = owing.groupby(["cluster", "source", "kind"])["last_at"].max().reset_index()
        due = latest["last_at"] + pd.to_timedelta(self.limit(latest, "fresh_s"), unit="s")
        quiet = latest[due < pd.Timestamp(self.asked_at)]
        return [
            failure(
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
    """Logs, audits and cluster states have no known gap, and every source spoke lately."""

    thresholds: ClassVar[dict[str, float]] = {"fresh_s": 3600}
    kinds: ClassVar[tuple[str, ...]] = ("audit", "logs", "cluster")


class ExpectMetricsOfEverySource(_Covered):
    """Every source of metrics answers, and no configured metric is without series."""

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
                    because="No source of metrics has given anything. Collect client and broker "
                    "metrics, or name `metrics` under `not_collected` in the policy file.",
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
            failure(
                cluster=str(cluster),
                topic="",
                group="",
                state="clock_ahead",
                cause=str(source),
                starts_at=instant(rows["first_at"].min(), self.asked_at),
                ends_at=None,
                because=(
                    f"{len(rows)} reporter(s) of source {source} date their evidence up to "
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
                failure(
                    cluster=row["cluster"],
                    topic="",
                    group="",
                    state="log_lines_unread",
                    cause=row["reason"],
                    starts_at=_day(rows["day"].min()),
                    ends_at=None,
                    because=(
                        f"{row['count']} record(s) of {row['source']} look like "
                        f"{row['reason']} and could not be read, e.g. "
                        f"{str(rows['text'].iloc[0])[:120]!r}."
                    ),
                    count=row["count"],
                    keys=keys_of(rows, ("record_key",)),
                )
            )
        return found


class ExpectClientsMatchedAcrossSources(DomainExpectation):
    """Clients seen in one source are found in the others: host names and client ids agree."""

    thresholds: ClassVar[dict[str, float]] = {"unmatched_share": 0.05}

    def findings(self, frame: pd.DataFrame) -> list[Finding]:
        """One finding for each cluster with too many unmatched clients.

        Undecided where only one kind of evidence speaks of clients: there is nothing to match.
        """
        if not frame.empty and len(_kinds(frame)) < 2:
            return [self._unmatchable("", frame)]
        found = []
        for cluster, clients in frame.groupby("cluster"):
            sources = _kinds(clients)
            if len(sources) < 2:
                found.append(self._unmatchable(str(cluster), clients))
                continue
            alone = clients[clients[[f"in_{s}" for s in sources]].sum(axis=1) == 1]
            share = len(alone) / len(clients)
            if share <= self.limit(clients.head(1), "unmatched_share").iloc[0]:
                continue
            found.append(
                failure(
                    cluster=str(cluster),
                    topic="",
                    group="",
                    state="clients_unmatched",
                    cause="names_do_not_agree",
                    starts_at=instant(alone["first_seen_at"].min(), self.asked_at),
                    ends_at=None,
                    because=(
                        f"{len(alone)} of {len(clients)} clients are seen in one source only "
                        f"({', '.join(sources)} are collected): "
                        "add alias rules to the settings."
                    ),
                    count=len(alone),
                    keys=keys_of(alone, ("client_id", "host", "session")),
                    clients=texts(alone["client_id"]),
                )
            )
        return found

    def _unmatchable(self, cluster: str, clients: pd.DataFrame) -> Finding:
        # The cause is that of every check without this kind: one thing missing is one alert.
        kinds = _kinds(clients)
        needs = "logs" if "metrics" in kinds else "metrics"
        return missing(
            cluster=cluster,
            cause=f"no_{needs}",
            starts_at=self.asked_at,
            because=f"Clients are seen in {' and '.join(kinds) or 'nothing'} only, so nothing can "
            f"be matched. Collect {needs} of clients, or name `{needs}` under `not_collected` in "
            "the policy file.",
            needs=needs,
        )


def _kinds(clients: pd.DataFrame) -> list[str]:
    """The kinds of evidence that speak of any of *clients*."""
    return [kind for kind in ("logs", "metrics", "audits") if clients[f"in_{kind}"].any()]


def gap_start(rows: pd.DataFrame, otherwise: datetime) -> datetime:
    """The hour in which the first of the gaps *rows* began."""
    first = rows["hour"].min()
    try:
        return datetime.strptime(first, "%Y-%m-%dT%H").replace(tzinfo=UTC)
    except (TypeError, ValueError):
        return otherwise


def _day(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
