"""Facts about the leaders of one partition, as brokers print them and as the cluster answers."""

from __future__ import annotations

from dataclasses import replace

from acktrail.audit.block_account import StateRange
from acktrail.audit.loss_evidence import SETTING, Fact

AT = 1_800_000_000_000
HOUR = 3_600_000
LOST = StateRange(
    600, 803, "lost_after_ack", "scanned_past", 0, 600, 803, AT, AT + 1_000, False, True, "",
    AT + 2_000, AT + 5_000,
)  # fmt: skip


def lost(first: int, last: int, **more: object) -> StateRange:
    return replace(
        LOST, first_seq=first, last_seq=last, first_offset=first, last_offset=last, **more
    )


def started(epoch: int, offset: int, leader: int, at: int, **more: object) -> Fact:
    """Leader orders-0 ... starts at leader epoch 1 from offset 600."""
    given = {"broker": leader, "host": f"kafka-{leader}", "high_watermark": offset, **more}
    key = f"start/{epoch}/{offset}"
    return Fact("leader_start", key, AT + at, partition=0, epoch=epoch, offset=offset, **given)


def answer(epoch: int | None, end: int | None, leader: int, at: int, **more: object) -> Fact:
    """An answer of the cluster."""
    given = {"isr": (1, 2, 3), "after_ms": AT + at - 100, **more}
    key = f"answer/{at}"
    return Fact(
        "cluster_state", key, AT + at, partition=0, epoch=epoch, offset=end, broker=leader, **given
    )


def elected(kind: str, epoch: int | None, leader: int | None, at: int, **more: object) -> Fact:
    """UNCLEAN partition change for orders-0 ...: leader: -1 -> 2, leaderEpoch: 7 -> 8."""
    given = {"partition": 0, "detail": "unclean_kraft", **more}
    return Fact(kind, f"{kind}/{epoch}/{at}", AT + at, epoch=epoch, leader=leader, **given)


def unclean(epoch: int | None, leader: int | None = 2, at: int = 2_000, **more: object) -> Fact:
    return elected("unclean_election", epoch, leader, at, **more)


def last_known(epoch: int, leader: int, at: int = 2_000) -> Fact:
    return elected("last_known_leader", epoch, leader, at)


def created(leader: int, at: int) -> Fact:
    """Created log for partition orders-0 in /var/lib/kafka/orders-0."""
    return Fact("log_created", f"created/{at}", AT + at, partition=0, host=f"kafka-{leader}")


def cut(offset: int, watermark: int, at: int = 9_000, detail: str = "below_high_watermark") -> Fact:
    return Fact(
        "truncation", f"cut/{offset}/{watermark}", AT + at, partition=0, offset=offset,
        high_watermark=watermark, detail=detail,
    )  # fmt: skip


def allowed(value: str, at: int = -HOUR) -> Fact:
    return Fact(SETTING, f"setting/{at}", AT + at, setting=value)
