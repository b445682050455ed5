"""What the rules say of a view, in pure Python: the same building blocks as the Spark jobs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from acktrail.audit.block import FIELDS, newest_parts
from acktrail.audit.block_account import StateRange, finding_of
from acktrail.audit.causes import LOSSES, cause_of
from acktrail.audit.loss_evidence import Fact, Loss, TopicFacts
from acktrail.audit.session_account import accounts_of
from acktrail.audit.topic_evidence import topic_of
from acktrail.contracts.vocabulary import Tier
from tests.worlds.evidence import TOPIC, Evidence
from tests.worlds.truth import Explanation, Said

Row = dict[str, Any]


def topic_rows(evidence: Evidence) -> list[Row]:
    """The rows that the ledger's job gathers of a topic."""
    rows: list[Row] = []
    for r in evidence.reports:
        if r.tier is Tier.HEARTBEAT and r.group and r.closed:
            rows.append(
                {
                    "kind": "member_closed", "partition": None, "group": r.group,
                    "reporter": r.reporter,
                }
            )  # fmt: skip
        elif r.tier in (Tier.SCANNED, Tier.CONSUMED):
            rows.append(
                {
                    "kind": r.tier.value, "partition": r.partition, "group": r.group,
                    "reporter": r.reporter, "part": r.part, "number": r.number,
                    "first_offset": r.first_offset, "last_offset": r.last_offset,
                    "began_ms": r.began_ms, "ended_ms": r.ended_ms, "assignment": r.assignment,
                    "closed": r.closed, "after_ms": r.after_ms, "received_ms": r.received_ms,
                    "unnamed": r.unnamed, "records": r.records, "leader_epoch": r.leader_epoch,
                    "topic_id": r.topic_id,
                }
            )  # fmt: skip
    for s in evidence.states:
        rows.append(
            {
                "kind": "state", "partition": s.partition, "at_ms": s.at_ms,
                "earliest_offset": s.earliest, "latest_offset": s.latest,
                "leader_epoch": s.epoch, "topic_id": s.topic_id, "after_ms": s.after_ms,
            }
        )  # fmt: skip
    for c in evidence.commits:
        rows.append(
            {
                "kind": "commit", "partition": c.partition, "group": c.group, "at_ms": c.at_ms,
                "committed_offset": c.offset, "metadata": c.metadata, "topic_id": c.topic_id,
                "members": c.members, "group_state": c.state, "after_ms": c.after_ms,
            }
        )  # fmt: skip
    policies = [dict(c.settings)["cleanup.policy"] for c in evidence.configs if c.kind == "topic"]
    if policies:
        compacted = any("compact" in policy for policy in policies)
        at = min(c.after_ms for c in evidence.configs if c.kind == "topic")
        rows.append({"kind": "policy", "partition": None, "compacted": compacted, "at_ms": at})
    lags = [s for c in evidence.configs if c.kind == "broker" for s in c.settings]
    if lags:
        lag = max(int(value) for _, value in lags)
        rows.append({"kind": "replica_lag", "partition": None, "replica_lag_ms": lag})
    return rows


def session_rows(evidence: Evidence, session: str) -> list[Row]:
    """The rows of one session's blocks and heartbeats."""
    return rows_by_session(evidence).get(session, [])


def rows_by_session(evidence: Evidence) -> dict[str, list[Row]]:
    """The rows of each session's blocks and heartbeats."""
    found: dict[str, list[Row]] = {}
    parts: dict[tuple[Any, ...], list[Row]] = {}
    for r in evidence.reports:
        if not r.session:
            continue
        rows = found.setdefault(r.session, [])
        if r.tier is Tier.HEARTBEAT:
            rows.append(
                {
                    "kind": "heartbeat", "ended_ms": r.reported_ms, "number": r.number,
                    "reporter": r.reporter, "settings": dict(r.settings),
                    "minutes": list(r.minutes), "closed": r.closed, "exited": r.exited,
                    "received_ms": r.received_ms, "records": r.records,
                    "outcomes": dict(r.outcomes), "dropped": dict(r.dropped),
                }
            )  # fmt: skip
            continue
        if r.tier is Tier.ACKED_OFFSETS:
            names = ("partition", "reporter", "part", "number", "block", "ids", "records")
            row = {name: getattr(r, name) for name in names}
            rows.append({"kind": r.tier.value, "received_ms": r.received_ms} | row)
            continue
        made = {name: getattr(r, name) for name in FIELDS if name != "error"}
        made["error"] = "|".join(sorted(r.errors))
        parts.setdefault((r.session, r.partition, r.tier, r.group, r.block), []).append(made)
    for session, partition, tier, group, block in sorted(parts):
        rows = parts[session, partition, tier, group, block]
        found[session].append(
            {
                "kind": "block", "partition": partition, "tier": tier.value, "group": group,
                "block": block, "parts": newest_parts(rows),
            }
        )  # fmt: skip
    _add_successors(evidence, found)
    return found


def _add_successors(evidence: Evidence, found: dict[str, list[Row]]) -> None:
    """When other sessions of the same client and host were first heard of."""
    heard: dict[tuple[str, str], dict[str, int]] = {}
    for r in evidence.reports:
        if r.tier is Tier.HEARTBEAT and r.settings.get("host"):
            place = heard.setdefault((r.settings.get("client_id", ""), r.settings["host"]), {})
            place[r.session] = min(r.received_ms or 0, place.get(r.session, 1 << 62))
    for sessions in heard.values():
        for session in sessions:
            for other, ms in sessions.items():
                if other != session:
                    found[session].append({"kind": "successor", "received_ms": ms})


def accounts(evidence: Evidence) -> dict[tuple[str, str], list[Row]]:
    """Per session and group, the accounts."""
    topic = topic_of(topic_rows(evidence))
    found: dict[tuple[str, str], list[Row]] = {}
    for session, rows in rows_by_session(evidence).items():
        for account in accounts_of(rows, topic):
            found.setdefault((session, account["group"]), []).append(account)
    return found


def facts_of(evidence: Evidence) -> TopicFacts:
    """What may explain a loss: log lines and the cluster's answers."""
    answers = [
        Fact(
            "cluster_state", f"cluster_states:/{TOPIC}/{s.partition}/{s.at_ms}", s.at_ms,
            after_ms=s.after_ms, partition=s.partition, offset=s.latest, broker=s.leader,
            epoch=s.epoch, isr=s.isr, topic_id=s.topic_id,
        )
        for s in evidence.states
    ]  # fmt: skip
    return TopicFacts(vars(fact) for fact in (*evidence.facts, *answers))


def explained(made: list[Row], session: str, facts: TopicFacts) -> Iterator[Explanation]:
    """The cause of every loss in the accounts of one session for the log."""
    for account in made:
        for finding in findings_of(account):
            if finding.state in LOSSES:
                loss = Loss(
                    finding, account["group"], account["client_id"],
                    dict(account["settings"]),
                    facts.near(finding), account["host"],
                    f"delivery_ledger:{session}/{TOPIC}//{account['block']}", TOPIC,
                )  # fmt: skip
                yield finding, cause_of(loss)


def said(made: list[Row]) -> Said:
    """State and reason of every id of one session and group; without those not owed."""
    states: dict[int, tuple[str, str]] = {}
    for account in made:
        assert account["residual"] == 0, account
        first = account["block"] << 15
        loud = {}
        for finding in findings_of(account):
            for seq in range(finding.first_seq, finding.last_seq + 1):
                loud[seq] = (finding.state, finding.reason)
        quiet = account["delivered"] + account["not_owed"]
        assert len(loud) + quiet == account["sent"]
        if not account["not_owed"]:
            for seq in range(first, first + account["sent"]):
                states[seq] = loud.get(seq, ("delivered", ""))
        states |= loud
    return states


def findings_of(account: Row) -> list[StateRange]:
    """The findings of an account, fresh from the rules or read from the ledger."""
    return [f if isinstance(f, StateRange) else finding_of(f) for f in account["findings"]]
