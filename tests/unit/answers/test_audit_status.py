"""Who is audited and who is not: named cases on a small lake."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from click.testing import CliRunner

from acktrail.answers.audit_status import audit_status
from acktrail.audit.wire import Report, row_of_report
from acktrail.cli import main
from acktrail.contracts.arrow import rows
from acktrail.contracts.bronze import AUDIT_REPORTS, GROUP_OFFSETS
from acktrail.contracts.silver import CLIENTS
from acktrail.contracts.vocabulary import Tier
from acktrail.lake import Lake

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
NOW_MS = int(NOW.timestamp() * 1000)
SHOP = {"client_id": "shop", "host": "shop-1"}


def beat(ago_s: float, session: str = "s1", topic: str = "orders", **more) -> Report:
    more = {"settings": SHOP, "outcomes": {"0": 8}, "records": 10, **more}
    return Report(
        "r", Tier.HEARTBEAT, topic, 1000 - int(ago_s), NOW_MS - int(ago_s * 1000), session, **more
    )


def member(ago_s: float, **more) -> Report:
    settings = {"client_id": "biller", "host": "b-1"}
    return beat(ago_s, "", settings=settings, outcomes={}, records=0, group="billing", **more)


def seen(client: str, host: str, **more):
    where = {"in_logs": True, "in_metrics": False, "in_audits": False, **more}
    row = {"cluster": "c", "client_id": client, "host": host, "session": "", **where}
    return row | {"first_seen_at": NOW - timedelta(hours=1), "last_seen_at": NOW}


def commit(group: str):
    same = {"cluster": "c", "source": "s", "topic": "orders", "topic_id": "t", "partition": 0}
    return {**same, "group": group, "at": NOW, "read_at": NOW, "day": "2026-01-31"}


CASES = {
    # case: reports, clients, groups -> (client, role, audit, mode, handed over, outcomes, dropped)
    "alive": ([beat(5)], [], [], [("shop", "producer", "on", "ids", 10, 8, 0)]),
    "silent": ([beat(300)], [], [], [("shop", "producer", "silent", "ids", 10, 8, 0)]),
    "closed": (
        [beat(400), beat(300, closed=True)], [], [],
        [("shop", "producer", "ended", "ids", 10, 8, 0)]),
    "the newest heartbeat of each session and topic counts": (
        [beat(9, records=3), beat(5), beat(5, topic="bills"), beat(5, "s2", dropped={"acked": 2})],
        [], [], [("shop", "producer", "on", "ids", 30, 24, 2)]),
    "acks without ids": (
        [beat(5, settings={**SHOP, "audit_mode": "acked_offsets"})], [], [],
        [("shop", "producer", "on", "acked_offsets", 10, 8, 0)]),
    "rows of files": (
        [beat(5, outcomes={}, records=0)], [], [],
        [("shop", "producer", "on", "files", 0, None, 0)]),
    "a member of a group": (
        [member(5)], [], [commit("billing")],
        [("biller", "group billing", "on", "reads", None, None, 0)]),
    "a group without reports": (
        [], [], [commit("billing")], [("", "group billing", "off", None, None, None, None)]),
    "a producer that only its log shows": (
        [beat(5)], [seen("shop", "shop-2"), seen("shop", "shop-1"), seen("till", "")], [],
        [("shop", "producer", "on", "ids", 10, 8, 0),
         ("shop", "producer", "off", None, None, None, None),
         ("till", "producer", "off", None, None, None, None)]),
    "long gone": ([beat(8 * 86_400)], [], [], []),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_who_is_audited(name, tmp_path):
    reports, clients, groups, wanted = CASES[name]
    lake = Lake(tmp_path)
    lake.append(
        AUDIT_REPORTS, rows(AUDIT_REPORTS, [row_of_report(r, "c", "s", NOW) for r in reports])
    )
    lake.append(CLIENTS, rows(CLIENTS, clients))
    lake.append(GROUP_OFFSETS, rows(GROUP_OFFSETS, groups))
    found = audit_status(lake, NOW)
    columns = ("client_id", "role", "audit", "mode", "handed_over", "outcomes", "dropped")
    assert [tuple(row[c] for c in columns) for row in found] == wanted


def test_the_command_says_where_to_begin(tmp_path):
    lake = Lake(tmp_path)
    lake.append(GROUP_OFFSETS, rows(GROUP_OFFSETS, [commit("billing")]))
    words = ["audit", "status", "--lake", str(tmp_path), "--as-of", "2026-01-31T12:00Z"]
    said = CliRunner().invoke(main, words)
    assert said.exit_code == 0, said.output
    assert "group billing" in said.output
    assert "docs/audit_your_application.md" in said.output
