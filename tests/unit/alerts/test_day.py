"""A simulated day with twenty faults: pages are faults, and each ends as it should.

Signs come as they do: retries while a fault lasts, rates half a minute late and a minute too long,
counts of brokers, losses once they are settled, and a replica that is missing all day. What lies
within the last 24 hours is found again in every round.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest

from acktrail.alerts.alert import OPEN, RESOLVED, newest
from acktrail.alerts.finding import Finding
from acktrail.alerts.lifecycle import NothingKnown, acknowledged, alerts_due
from acktrail.contracts.vocabulary import Grade, Outcome

T0 = datetime(2026, 1, 31, tzinfo=UTC)
CHECK = "table.check"
ROUND = 120
FAULTS = 20


@dataclass(frozen=True)
class Outage:
    """Something that breaks *at* a second of the day, for so long."""

    kind: str
    at: int
    lasts: int
    owners: tuple[str, ...]

    @property
    def lost(self) -> bool:
        return self.kind in ("acks_1", "gave_up", "skips")


def found(state, cause, topic, owner, start, end, **facts) -> Finding:
    return Finding(
        outcome=Outcome.FAIL, cluster="east", topic=topic, group=facts.pop("group", ""),
        state=state, cause=cause, starts_at=T0 + timedelta(seconds=start),
        ends_at=None if end is None else T0 + timedelta(seconds=end), because=f"{state} {topic}",
        check="check", owner=owner, found_by=(CHECK,), **facts,
    )  # fmt: skip


def lasting(now, start, end):
    """Start and end of what goes on from *start* to *end*, as it is known now; None: not yet."""
    return None if now < start else (start, None if now < end else end)


def signs(outage: Outage, now: int) -> list[Finding]:
    """What is found of *outage* at second *now*."""
    begin, end = outage.at, outage.at + outage.lasts
    made = []
    for owner in outage.owners:
        topic = f"{owner}-orders"
        told = {"topic": topic, "owner": owner}
        warn = {**told, "grade": Grade.WARN}
        if outage.kind == "skips":
            if now >= end + 60:
                group = f"{owner}-billing"
                made.append(found("skipped_by_consumer", "consumer_reset", start=begin, end=end,
                                  loss=True, group=group, count=3, **told))  # fmt: skip
            continue
        if outage.kind == "too_large":
            span = lasting(now, begin, end)
            if span:
                made.append(found("non_retriable_error", "MESSAGE_TOO_LARGE", start=span[0],
                                  end=span[1], **told))  # fmt: skip
            continue
        if begin + 3 <= now < end:
            made.append(found("retries_running_out", "NOT_ENOUGH_REPLICAS", start=begin + 3,
                              end=None, count=now - begin, **told))  # fmt: skip
        late = lasting(now, begin + 30, end + 60)
        if late:
            made.append(
                found("error_rate_high", f"{owner}-api", start=late[0], end=late[1], **told)
            )
            made.append(
                found("retry_rate_high", f"{owner}-api", start=late[0], end=late[1], **warn)
            )
        counted = lasting(now, begin + 15, end)
        if counted:
            made.append(found("failed_produce_requests", "NOT_ENOUGH_REPLICAS", start=counted[0],
                              end=counted[1], **told))  # fmt: skip
            made.append(found("under_min_isr", "", start=counted[0], end=counted[1],
                              **{**warn, "topic": ""}))  # fmt: skip
        if outage.lost and now >= end + 240:
            cause = {"acks_1": "acks_1_leader_change", "gave_up": "delivery_timeout"}[outage.kind]
            state = {"acks_1": "lost_after_ack", "gave_up": "rejected"}[outage.kind]
            grade = Grade.FAIL if state == "lost_after_ack" else Grade.WARN
            made.append(found(state, cause, start=begin, end=begin + 20, loss=True, count=40,
                              grade=grade, **told))  # fmt: skip
    return made


def day(seed: int) -> list[Outage]:
    """Twenty faults with recovery between them."""
    chance = random.Random(seed)
    slot = 86_400 // (FAULTS + 1)
    kinds = ("stopped", "gave_up", "acks_1", "skips", "too_large")
    return [
        Outage(
            chance.choice(kinds),
            n * slot + chance.randrange(slot // 4),
            chance.choice((75, 150, 400)),
            chance.choice((("pay",), ("pay", "shop"), ("shop",))),
        )
        for n in range(FAULTS)
    ]


@pytest.mark.parametrize("seed", range(30 if os.environ.get("ACKTRAIL_SOAK") else 1))
def test_pages_are_faults_and_none_is_false(seed):
    outages, rows, live = day(seed), [], {}
    missing = found("under_replicated", "", "", "pay", -1000, None, grade=Grade.WARN)
    pages_open_from: dict[str, int] = {}
    for now in range(0, 86_400, ROUND):
        findings = [missing, *(f for o in outages if o.at <= now for f in signs(o, now))]
        moment = T0 + timedelta(seconds=now)
        changes = alerts_due(findings, live, {CHECK}, moment)
        for alert in live.values():  # a person reads each loss half an hour later
            if (
                alert.status == OPEN
                and alert.lost
                and alert.changed_at < moment - timedelta(minutes=30)
            ):
                changes = [c for c in changes if c.fingerprint != alert.fingerprint]
                changes.append(acknowledged(alert, "maria", "seen", moment, NothingKnown()))
        for change in changes:
            rows.append(change.row())
            live[change.fingerprint] = change
            if change.severity == "page":
                pages_open_from.setdefault(change.fingerprint, now)
    pages = [a for a in newest(rows).values() if a.severity == "page"]
    expected = sorted((owner, o.at) for o in outages for owner in o.owners)
    assert len(pages) == len(expected), "one page for each fault and owner"
    begun = sorted((p.owner, round((p.starts_at - T0).total_seconds())) for p in pages)
    for (owner, start), (of, at) in zip(begun, expected, strict=True):
        assert owner == of
        assert 0 <= start - at <= 15
    # Each is told within a round of its first sign, keeps its labels, and is over in the end.
    for page in pages:
        first = (page.starts_at - T0).total_seconds()
        settled = next(o for o in outages if 0 <= first - o.at <= 15)
        wait = settled.lasts + 60 if settled.kind == "skips" else 0
        assert pages_open_from[page.fingerprint] - first <= wait + ROUND
        labels = {tuple(r["labels"]) for r in rows if r["fingerprint"] == page.fingerprint}
        assert len(labels) == 1
        assert page.status == RESOLVED
        assert bool(page.acknowledged) == settled.lost
    tickets = [a for a in newest(rows).values() if a.severity != "page" and a.status == OPEN]
    assert [t.cause for t in tickets] == [""], "the replica that is missing all day"
    assert replace(tickets[0], step=0).topics == frozenset()
