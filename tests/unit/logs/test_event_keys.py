"""One key for one event, however often and by whomever it is printed."""

# ruff: noqa: E501 - tables.

from __future__ import annotations

import pytest

from acktrail.aliases import Aliases
from acktrail.logs.event import Event
from acktrail.logs.event_rows import Origin, broker_row, producer_row
from acktrail.logs.reader import read_record

UNCLEAN = (
    "[{at},000] INFO [QuorumController id={by}] UNCLEAN partition change for rates-3 with topic ID "
    "3DxQ8q2dTvC: isr: [1] -> [2], leader: -1 -> 2, leaderEpoch: {epoch} -> {after}"
)
EXPIRED = (
    "[{at},000] ERROR send failed (com.example.App)\norg.apache.kafka.common.errors."
    "TimeoutException: Expiring {records} record(s) for rates-{partition}:120001 ms has passed "
    "since batch creation"
)


def key(text: str, position: int) -> str:
    event = read_record(text)
    assert isinstance(event, Event)
    row = broker_row if event.kind == "unclean_election" else producer_row
    origin = Origin("c", "s", "h", "f", None, position, "UTC")
    return str(row(event, origin, Aliases(()))["event_key"])


def unclean(at: str, by: int = 1, epoch: int = 7) -> str:
    return UNCLEAN.format(at=at, by=by, epoch=epoch, after=epoch + 1)


def expired(at: str, records: int = 2, partition: int = 3) -> str:
    return EXPIRED.format(at=at, records=records, partition=partition)


@pytest.mark.parametrize(
    ("case", "one", "other", "same"),
    [
        ("two controllers", unclean("2026-01-31 07:00:00"), unclean("2026-01-31 07:00:01", 2), True),
        ("the next election", unclean("2026-01-31 07:00:00"), unclean("2026-01-31 07:00:01", 1, 8), False),
        ("the topic made anew, weeks later", unclean("2026-01-31 07:00:00"), unclean("2026-02-28 07:00:00"), False),
        ("two callbacks of a batch", expired("2026-01-31 07:00:00"), expired("2026-01-31 07:00:00"), True),
        ("a batch of another size", expired("2026-01-31 07:00:00"), expired("2026-01-31 07:00:00", 3), False),
        ("another partition's", expired("2026-01-31 07:00:00"), expired("2026-01-31 07:00:00", 2, 4), False),
        ("an hour later", expired("2026-01-31 07:00:00"), expired("2026-01-31 08:00:00"), False),
    ],
)  # fmt: skip
def test_what_is_one_event(case, one, other, same):
    assert (key(one, 10) == key(other, 20)) is same, case
