"""Which brokers and partitions are behind what was found, by what the cluster itself answered.

A client's line names the leader that refused it; the cluster's answer names the replica that is
missing. A broker that is back by the time a check looks was behind it all the same: all answers
since the finding began count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds

from acktrail.alerts.fault import BROKER_STATES, BROKERS, UNEXPLAINED, fault_of
from acktrail.alerts.finding import OUT_OF_SYNC, Finding, first_keys
from acktrail.alerts.grouping import NEAR
from acktrail.contracts.bronze import CLUSTER_STATES
from acktrail.contracts.vocabulary import Grade, Outcome
from acktrail.window import day_of
from expectations.domain.expectation import clock

if TYPE_CHECKING:
    from acktrail.lake import Lake

_FRESH = timedelta(minutes=10)
"""How old the cluster's answer may be."""
_ASKED_BEFORE = timedelta(seconds=30)
"""How long before a sign an answer may have been given that explains it."""

Row = Mapping[str, Any]


def with_isr(lake: Lake, findings: Sequence[Finding], as_of: datetime) -> list[Finding]:
    """*findings*, those that go on with the partitions of their topic that lack a replica.

    A loss that brokers are behind, too, as long as answers of its time are fresh.
    """
    topics = {(f.cluster, f.topic) for f in findings if _is_meant(f, as_of)}
    answers = _answers(lake, topics, as_of) if topics else {}
    return [_placed(f, _of(answers, f)) if _is_meant(f, as_of) else f for f in findings]


def _of(answers: Mapping[tuple[str, str], Sequence[Row]], finding: Finding) -> Sequence[Row]:
    """Of each partition of *finding*'s topic, the newest answer in its time that lacks a replica.

    Of all topics where it names none. What was answered shortly before it began counts too: the
    cluster is asked only now and then.
    """
    if finding.topic:
        mine = answers.get((finding.cluster, finding.topic), ())
    else:
        mine = [row for (c, _), rows in answers.items() if c == finding.cluster for row in rows]
    since = finding.starts_at - _ASKED_BEFORE
    until = finding.ends_at + NEAR if finding.ends_at else datetime.max.replace(tzinfo=UTC)
    newest = {(r["topic"], r["partition"]): r for r in mine if since <= r["at"] <= until}
    return list(newest.values())


def _is_meant(finding: Finding, as_of: datetime) -> bool:
    if finding.outcome is not Outcome.FAIL:
        return False
    if finding.loss:
        lately = (finding.ends_at or as_of) >= as_of - _FRESH
        return lately and bool(finding.topic) and fault_of(finding).kind == BROKERS
    if finding.ends_at is not None:
        return False
    if finding.state in BROKER_STATES:
        return True
    # A retry rate is a mean over a minute: what lacks a replica by now need not be behind it.
    concerned = bool(finding.topic) and finding.grade is Grade.FAIL
    return concerned and fault_of(finding).kind in (BROKERS, UNEXPLAINED)


def _answers(
    lake: Lake, topics: Iterable[tuple[str, str]], as_of: datetime
) -> dict[tuple[str, str], list[Row]]:
    """The answers about partitions of *topics* that lacked a replica then, the newest last."""
    since = as_of - _FRESH
    where = (
        (ds.field("day") >= day_of(since)) & (ds.field("at") >= since) & (ds.field("at") <= as_of)
    )
    if all(topic for _, topic in topics):
        where &= ds.field("topic").isin(sorted({topic for _, topic in topics}))
    wanted = ["cluster", "topic", "partition", "at", "leader", "replicas", "isr"]
    rows = lake.read(CLUSTER_STATES, where, wanted).to_pylist()
    rows.sort(key=lambda row: row["at"])
    newest: dict[tuple[str, str, int], Row] = {
        (row["cluster"], row["topic"], row["partition"]): row for row in rows
    }
    found: dict[tuple[str, str], list[Row]] = {}
    for row in sorted(rows, key=lambda row: (row["partition"], row["at"])):
        if missing_replicas(row) or is_leaderless(row):
            now = newest[row["cluster"], row["topic"], row["partition"]]
            over = not (missing_replicas(now) or is_leaderless(now))
            found.setdefault((row["cluster"], row["topic"]), []).append({**row, "over": over})
    return found


def _placed(finding: Finding, rows: Sequence[Row]) -> Finding:
    if not rows:
        return finding
    said = {f"{r['topic']}-{r['partition']}": partition_text(r) for r in rows}
    others = [p for p in finding.partitions if p not in said]
    missing = sorted({broker for row in rows for broker in missing_replicas(row)})
    return replace(
        finding,
        partitions=first_keys((*said.values(), *others)),
        brokers=tuple(f"{broker} {OUT_OF_SYNC}" for broker in missing) or finding.brokers,
    )


def missing_replicas(row: Row) -> list[int]:
    """Replicas of a partition that are not in sync, as a row of `cluster_states` has it."""
    return sorted(set(row["replicas"] or ()) - set(row["isr"] or ()))


def is_leaderless(row: Row) -> bool:
    """Whether nobody leads the partition."""
    return row["leader"] is None or row["leader"] < 0


def partition_text(row: Row) -> str:
    """`orders-1 (leader 2, in sync 2 of replicas 1 2 3)`."""
    leader = "no leader" if is_leaderless(row) else f"leader {row['leader']}"
    isr = " ".join(str(b) for b in sorted(row["isr"] or ())) or "none"
    replicas = " ".join(str(b) for b in sorted(row["replicas"] or ()))
    when = f" at {clock(row['at'])}" if row.get("over") else ""
    said = f"{leader}, in sync {isr} of replicas {replicas}{when}"
    return f"{row['topic']}-{row['partition']} ({said})"
