"""The rules' verdicts of a world, without Spark: the same building blocks, called directly."""

from __future__ import annotations

from acktrail.audit.block_account import StateRange, finding_of
from acktrail.audit.parts import Part, fields_of, newest
from acktrail.audit.wire.identity import BLOCK_BITS
from acktrail.contracts.vocabulary import Tier
from pipelines.gold.delivery_ledger import accounts_of
from pipelines.gold.ledger_evidence import topic_of
from tests.worlds.world import LAG_MS, Evidence


def evidence_rows(evidence: Evidence) -> list[dict]:
    """The rows that the ledger's job gathers of a topic."""
    rows = []
    for r in evidence.reports:
        if r.tier in (Tier.SCANNED, Tier.CONSUMED):
            rows.append(
                {
                    "kind": r.tier.value, "partition": r.partition, "group": r.group,
                    "reporter": r.reporter, "part": r.part, "number": r.number,
                    "first_offset": r.first_offset, "last_offset": r.last_offset,
                    "began_ms": r.began_ms, "ended_ms": r.ended_ms, "assignment": r.assignment,
                    "closed": r.closed,
                }
            )  # fmt: skip
    for s in evidence.states:
        rows.append(
            {
                "kind": "state", "partition": s.partition, "at_ms": s.at_ms,
                "earliest_offset": s.earliest, "latest_offset": s.latest,
                "leader_epoch": s.epoch, "topic_id": s.topic_id,
            }
        )  # fmt: skip
    for c in evidence.commits:
        rows.append(
            {
                "kind": "commit", "partition": c.partition, "group": c.group, "at_ms": c.at_ms,
                "committed_offset": c.offset, "metadata": c.metadata,
            }
        )  # fmt: skip
    rows.append({"kind": "policy", "partition": None, "compacted": evidence.compacted})
    rows.append({"kind": "replica_lag", "partition": None, "replica_lag_ms": LAG_MS})
    return rows


def session_rows(evidence: Evidence, session: str) -> list[dict]:
    """The rows of one session's blocks and heartbeats."""
    rows, parts = [], {}
    for r in evidence.reports:
        if r.session != session:
            continue
        if r.tier is Tier.HEARTBEAT:
            rows.append(
                {
                    "kind": "heartbeat", "ended_ms": r.reported_ms, "number": r.number,
                    "reporter": r.reporter, "settings": dict(r.settings),
                    "minutes": list(r.minutes), "closed": r.closed,
                }
            )  # fmt: skip
            continue
        made = Part(
            r.reporter, r.part, r.number, r.ids, r.records, r.leader_epoch, r.first_offset,
            r.last_offset, r.began_ms, r.ended_ms, error="|".join(r.errors),
            topic_id=r.topic_id or "",
        )  # fmt: skip
        parts.setdefault((r.partition, r.tier, r.group, r.block), []).append(made)
    for (partition, tier, group, block), found in sorted(parts.items()):
        rows.append(
            {
                "kind": "block", "partition": partition, "tier": tier.value, "group": group,
                "block": block, "parts": [fields_of(part) for part in newest(found)],
            }
        )  # fmt: skip
    return rows


def judge(evidence: Evidence, session: str) -> dict[str, dict[int, str]]:
    """Per group (the log is the empty one), the state of every id."""
    topic = topic_of(evidence_rows(evidence))
    found: dict[str, dict[int, str]] = {}
    for account in accounts_of(session_rows(evidence, session), topic):
        assert account["residual"] == 0
        found.setdefault(account["group"], {}).update(states_of(account))
    return found


def jumped_over(evidence: Evidence, session: str) -> set[tuple[str, int]]:
    """Group and id of everything that a group is said to have jumped over."""
    topic = topic_of(evidence_rows(evidence))
    return {
        (account["group"], seq)
        for account in accounts_of(session_rows(evidence, session), topic)
        for finding in findings_of(account)
        if (finding.state, finding.reason) == ("skipped_by_consumer", "jumped_over")
        for seq in range(finding.first_seq, finding.last_seq + 1)
    }


def findings_of(account: dict) -> list[StateRange]:
    """The findings of an account, fresh from the rules or read from the ledger."""
    return [f if isinstance(f, StateRange) else finding_of(f) for f in account["findings"]]


def states_of(account: dict) -> dict[int, str]:
    """Every id that is neither delivered nor not owed; the rest only counts."""
    states = {
        seq: finding.state
        for finding in findings_of(account)
        for seq in range(finding.first_seq, finding.last_seq + 1)
    }
    quiet = account["delivered"] + account["not_owed"]
    assert len(states) + quiet == account["sent"]
    assert all(seq >> BLOCK_BITS == account["block"] for seq in states)
    return states
