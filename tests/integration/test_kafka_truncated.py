"""A log that an unclean election cut back: the scanner reads again what is there now."""

from __future__ import annotations

import itertools
import time
from datetime import UTC, datetime
from typing import Any

from confluent_kafka import ElectionType, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from acktrail.audit.wire import Sighting, encode_sightings, row_of_report
from acktrail.contracts.arrow import rows
from acktrail.contracts.bronze import AUDIT_REPORTS
from acktrail.contracts.vocabulary import Tier
from acktrail.errors import SourceUnavailable
from acktrail.lake import Lake
from acktrail.settings.sources import LogScanSource
from ingest.registry import build_source
from lab.snapshots import wait_in_sync
from lab.steps import wait_until
from tests.integration.jmx_values import jolokia_says_what_the_exporter_says, with_jolokia
from tests.integration.kafka_nodes import SESSION, TOPIC, around, drain, found, produce


def test_a_truncated_log_is_read_again_from_the_new_epoch(nodes, tmp_path):
    """Records that were scanned and then cut off by an unclean election: the log goes back."""
    lake = Lake(tmp_path)
    settings = LogScanSource(kind="log_scan", name="moved", topics=("moved",), mode="whole")
    # By default librdkafka waits a minute for a broker that hangs.
    admin = AdminClient({"bootstrap.servers": nodes.direct, "socket.timeout.ms": 2000})
    follower, leader = nodes.brokers[2].process, nodes.brokers[1].process
    kept = produce(nodes, "moved", range(100), 0)
    follower.pause()
    assert wait_until(lambda: _is(admin, "moved", isrs=[1]), 120)
    lost = produce(nodes, "moved", range(100, 150), 0, acks="1")
    _drain_in_the_end(build_source(settings, around(nodes)), lake)
    assert len(found(lake, Tier.IN_LOG)) == 150
    read = Lake(tmp_path / "read")
    _report_read(read, kept | lost)
    default = LogScanSource(kind="log_scan", name="look", topics=("moved",), settle_s=1, margin=5)
    _drain_in_the_end(build_source(default, around(nodes)), read)
    assert not _scans(read), "a group has received everything"
    leader.kill()
    follower.resume()
    assert wait_until(lambda: _is(admin, "moved", leader=2), 120)
    again = produce(nodes, "moved", range(200, 220), 0, acks="1")
    assert min(again.values()) == 100 == min(lost.values())
    _drain_in_the_end(build_source(settings, around(nodes)), lake)
    seen = found(lake, Tier.IN_LOG)
    assert seen == {(SESSION, 0, seq): o for seq, o in {**kept, **lost, **again}.items()}
    scanned = _scans(lake)
    ranges = [(r["first_offset"], r["last_offset"]) for r in scanned]
    assert sorted(ranges) == [(0, 149), (100, 119)]
    older, newer = sorted(scanned, key=lambda r: r["began_at"])
    assert newer["leader_epoch"] > older["leader_epoch"]
    assert _drain_in_the_end(build_source(settings, around(nodes)), lake) == 0
    _what_a_group_had_read_is_looked_at_again(nodes, default, read, set(again))
    with with_jolokia() as port:
        nodes.launch(1)
    nodes.wait_started(1)
    wait_in_sync(admin, ["moved", TOPIC])
    admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition("moved", 0)]).result(30)
    assert wait_until(lambda: _is(admin, "moved", leader=1), 60)
    seqs = itertools.count(300)

    def work() -> None:
        produce(nodes, "moved", [next(seqs)], 0)

    exporter_port = nodes.brokers[1].exporter_port
    jolokia_says_what_the_exporter_says(nodes, port, exporter_port, tmp_path, work)


def _what_a_group_had_read_is_looked_at_again(nodes, settings, lake: Lake, stored: set[int]):
    """By default nothing is read that a group has received: until a new epoch begins below it."""
    reported = lake.receipt("lab")
    for _ in range(20):
        _drain_in_the_end(build_source(settings, around(nodes)), lake)
        if _scans(lake):
            break
        time.sleep(0.5)
    (scan,) = _scans(lake)
    assert (scan["first_offset"], scan["last_offset"]) == (95, 119)
    assert scan["after_at"].timestamp() * 1000 >= reported
    assert {seq for _, _, seq in found(lake, Tier.IN_LOG)} == set(range(95, 100)) | stored
    _drain_in_the_end(build_source(settings, around(nodes)), lake)
    assert _scans(lake) == [scan], "once"


def _report_read(lake: Lake, offsets: dict[int, int]) -> None:
    """A producer's acks, and a group that has received them all."""
    for tier, group in ((Tier.ACKED, ""), (Tier.DELIVERED, "g")):
        seen = [
            Sighting(SESSION, "moved", seq, tier, 1_790_000_000_000, 0, offset, group)
            for seq, offset in offsets.items()
        ]
        made = encode_sightings(seen, tier.value, 0, 1_790_000_000_000)
        at = datetime.now(UTC)
        data = rows(AUDIT_REPORTS, [row_of_report(r, "lab", "clients", at) for r in made])
        lake.append(AUDIT_REPORTS, data)


def _scans(lake: Lake) -> list[dict[str, Any]]:
    """What was read; a look at the end of the log alone reads nothing."""
    rows = lake.read(AUDIT_REPORTS).to_pylist()
    return [r for r in rows if r["tier"] == "scanned" and r["last_offset"] >= r["first_offset"]]


def _is(admin: AdminClient, topic: str, **wanted) -> bool:
    """Whether the partition is so; a broker that hangs answers nothing, and that is no yes."""
    try:
        partition = admin.list_topics(topic, timeout=2).topics[topic].partitions[0]
    except KafkaException:
        return False
    return all(getattr(partition, name) == value for name, value in wanted.items())


def _drain_in_the_end(source, lake: Lake) -> int:
    """As the agent does it: a broker that hangs is an error, and the next try begins anew."""
    for _ in range(6):
        try:
            return drain(source, lake)
        except SourceUnavailable:
            time.sleep(1)
    raise AssertionError("the cluster never answered")
