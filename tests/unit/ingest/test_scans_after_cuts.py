"""The default scanner on a partition whose log is cut: what was seen and is gone is looked for.

The partition is a model of one: leaders append under their epoch, and a new one may begin below the
end. A group reads everything and reports some of it late. The scanner and the lake are the real
ones.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acktrail.audit.wire import Header, Sighting, encode_header, encode_sightings, row_of_report
from acktrail.contracts.arrow import rows
from acktrail.contracts.bronze import AUDIT_REPORTS
from acktrail.contracts.vocabulary import Tier
from acktrail.lake import Lake
from acktrail.settings.model import KafkaSettings
from acktrail.settings.sources import LogScanSource
from ingest.kafka.cluster_view import PartitionState
from ingest.registry import SourceContext
from ingest.sources import log_scan
from ingest.sources.scan_reports import LogRecord

SESSION = "5e" * 16
START = 1_790_000_000.0


@dataclass
class Partition:
    """The model: id and epoch by offset, what a group has read, and a clock."""

    log: list[tuple[int, int]] = field(default_factory=list)
    epoch: int = 3
    ids: int = 0
    now: float = START
    unread: int = 0
    unreported: list[tuple[int, int, int]] = field(default_factory=list)
    """Id, offset and epoch of what the group has read and not reported."""
    reported: list[tuple[int, int, int, int]] = field(default_factory=list)
    """The same with the receipt."""
    reads: int = 0

    def elect(self, kept: int) -> None:
        self.epoch += 1
        del self.log[max(0, len(self.log) - kept) :]
        self.unread = min(self.unread, len(self.log))

    def produce(self, count: int) -> None:
        self.log += [(self.ids + n, self.epoch) for n in range(count)]
        self.ids += count

    def consume(self) -> None:
        fresh = [(i, o, e) for o, (i, e) in enumerate(self.log) if o >= self.unread]
        self.unreported += fresh
        self.unread = len(self.log)

    def report(self, lake: Lake) -> None:
        if not self.unreported:
            return
        seen = [
            Sighting(SESSION, "t", i, Tier.DELIVERED, 0, 0, o, "g") for i, o, _ in self.unreported
        ]
        acks = [Sighting(SESSION, "t", i, Tier.ACKED, 0, 0, o) for i, o, _ in self.unreported]
        number, at = len(self.reported), datetime.fromtimestamp(self.now, UTC)
        made = encode_sightings(seen, "ab" * 16, number, 0, number)
        made += encode_sightings(acks, "cd" * 16, number, 0, number)
        data = rows(AUDIT_REPORTS, [row_of_report(r, "c", "clients", at) for r in made])
        lake.append(AUDIT_REPORTS, data)
        receipt = lake.receipt("c")
        self.reported += [(*one, receipt) for one in self.unreported]
        self.unreported = []

    # What the scanner asks.

    missing = ()

    @property
    def notes(self) -> list[str]:
        return []

    def partitions(self, _topics) -> list[PartitionState]:
        return [PartitionState("t", "id", 0, 1, (1,), (1,), 0, len(self.log), self.epoch)]

    def read(self, _topic, _partition, first, end, most):
        end = min(end, len(self.log), first + most)
        if end <= first:
            return [], first
        self.reads += end - first
        return [self._record(offset) for offset in range(first, end)], end

    def epoch_at(self, _topic, _partition, offset, end):
        return self.log[offset][1] if offset < min(end, len(self.log)) else None

    def _record(self, offset: int) -> LogRecord:
        id, epoch = self.log[offset]
        return LogRecord(offset, None, encode_header(Header(SESSION, id, 0)), epoch)

    def close(self) -> None:
        """Nothing to let go of."""


class Watched:
    """A lake, the partition, and a scanner that is started again now and then."""

    def __init__(self, lake: Lake, partition: Partition, patch: pytest.MonkeyPatch) -> None:
        self.lake, self.partition = lake, partition
        patch.setattr(log_scan, "ClusterView", lambda *_: partition)
        patch.setattr(log_scan, "PartitionReader", lambda *_: partition)
        self.scanner = self._started()

    def _started(self) -> log_scan.LogScanner:
        described = LogScanSource(kind="log_scan", name="look", topics=("t",), margin=2)
        context = SourceContext("c", KafkaSettings(bootstrap_servers="127.0.0.1:9"))
        scanner = log_scan.LogScanner(described, context, clock=lambda: self.partition.now)
        scanner.open(self.lake)
        return scanner

    def restart(self) -> None:
        self.scanner.close()
        self.scanner = self._started()

    def rounds(self, count: int) -> None:
        for _ in range(count):
            self.partition.now += 31
            for batch in self.scanner.poll(0):
                self.lake.append(batch.table, batch.rows, batch.positions)
                self.scanner.committed(batch)

    def check(self) -> None:
        """Naively, each sighting: its record is there, or a look begun since did not find it."""
        scans = [r for r in self.lake.read(AUDIT_REPORTS).to_pylist() if r["tier"] == "scanned"]
        epoch = datetime(1970, 1, 1, tzinfo=UTC)
        for id, offset, written, receipt in self.partition.reported:
            log = self.partition.log
            if offset < len(log) and log[offset] == (id, written):
                continue
            assert any(
                scan["after_at"] is not None
                and (scan["after_at"] - epoch) // timedelta(milliseconds=1) >= receipt
                and scan["leader_epoch"] > written
                and (
                    scan["first_offset"] <= offset <= scan["last_offset"]
                    or (scan["closed"] and scan["last_offset"] < offset)
                )
                for scan in scans
            ), f"{id} was seen at {offset} under epoch {written}, and nobody looked again"


steps = st.lists(
    st.one_of(
        st.tuples(st.just("produce"), st.integers(1, 12)),
        st.tuples(st.just("elect"), st.sampled_from([0, 0, 1, 3, 9])),
        st.tuples(st.just("consume"), st.just(0)),
        st.tuples(st.just("report"), st.just(0)),
        st.tuples(st.just("rounds"), st.integers(1, 2)),
        st.tuples(st.just("restart"), st.just(0)),
    ),
    max_size=16,
)


def play(story, lake: Lake, patch: pytest.MonkeyPatch) -> Partition:
    partition = Partition()
    watched = Watched(lake, partition, patch)
    partition.produce(3)
    partition.consume()
    partition.report(lake)
    watched.rounds(1)
    for step, number in story:
        if step == "report":
            partition.report(lake)
        elif step == "rounds":
            watched.rounds(number)
        elif step == "restart":
            watched.restart()
        elif step == "consume":
            partition.consume()
        else:
            getattr(partition, step)(number)
    partition.report(lake)
    watched.rounds(3)
    partition.produce(30)  # the log is longer again than it ever was
    watched.rounds(14)  # until late reports have come, and none is due
    watched.check()
    read = partition.reads
    watched.rounds(4)
    watched.restart()
    watched.rounds(2)
    assert partition.reads == read, "nothing is read for ever"
    return partition


CASES = {
    "nothing happens": ([("produce", 5), ("consume", 0), ("report", 0)], 0),
    "a clean election": ([("produce", 5), ("consume", 0), ("elect", 0), ("produce", 5)], 0),
    "what was read is cut": ([("produce", 9), ("consume", 0), ("report", 0), ("elect", 3)], 8),
    "and reported late": (
        [("produce", 9), ("consume", 0), ("elect", 3), ("produce", 9), ("rounds", 5)], 8,
    ),
    "cut twice, with a restart": (
        [("produce", 9), ("consume", 0), ("report", 0), ("elect", 3), ("produce", 2), ("rounds", 2),
         ("restart", 0), ("consume", 0), ("report", 0), ("elect", 9), ("rounds", 1)], 20,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_named_cases(case, tmp_path, monkeypatch):
    story, most = CASES[case]
    assert play(story, Lake(tmp_path), monkeypatch).reads <= most + 40 * bool(most)


@settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps)
def test_whatever_was_seen_and_is_gone_was_looked_for(monkeypatch, story):
    with tempfile.TemporaryDirectory() as directory:
        play(story, Lake(directory), monkeypatch)
