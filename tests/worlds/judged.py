"""The rules' verdicts of a world, without Spark: the same building blocks, called directly."""

from __future__ import annotations

from acktrail.audit.block_account import unpack_findings
from acktrail.audit.parts import Part, newest, pack_parts
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
                    "first": r.first_offset, "last": r.last_offset, "at_ms": r.began_ms,
                    "until_ms": r.ended_ms, "block": r.assignment, "flag": r.closed,
                }
            )  # fmt: skip
    for s in evidence.states:
        rows.append(
            {
                "kind": "state", "partition": s.partition, "at_ms": s.at_ms, "first": s.earliest,
                "last": s.latest, "epoch": s.epoch, "text": s.topic_id,
            }
        )  # fmt: skip
    for c in evidence.commits:
        rows.append(
            {
                "kind": "commit", "partition": c.partition, "group": c.group, "at_ms": c.at_ms,
                "last": c.offset, "text": c.metadata,
            }
        )  # fmt: skip
    rows.append({"kind": "policy", "partition": None, "flag": evidence.compacted})
    rows.append({"kind": "replica_lag", "partition": None, "last": LAG_MS})
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
                    "kind": "heartbeat", "until_ms": r.reported_ms, "number": r.number,
                    "reporter": r.reporter, "settings": dict(r.settings),
                    "minutes": list(r.minutes), "flag": r.closed,
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
                "kind": "block", "partition": partition, "text": tier.value, "group": group,
                "block": block, "blob": pack_parts(newest(found)),
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
        for finding in unpack_findings(account["findings"])
        if (finding.state, finding.reason) == ("skipped_by_consumer", "jumped_over")
        for seq in range(finding.first_seq, finding.last_seq + 1)
    }


def states_of(account: dict) -> dict[int, str]:
    """Every id that is neither delivered nor not owed; the rest only counts."""
    states = {
        seq: finding.state
        for finding in unpack_findings(account["findings"])
        for seq in range(finding.first_seq, finding.last_seq + 1)
    }
    quiet = account["delivered"] + account["not_owed"]
    assert len(states) + quiet == account["sent"]
    assert all(seq >> BLOCK_BITS == account["block"] for seq in states)
    return states
