"""Running one scenario: clients, faults, evidence, truth."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient

from acktrail.errors import LabError
from acktrail.kafka_defaults import DELIVERY_TIMEOUT_MS
from lab import report_topic, snapshots
from lab.client_choice import VERIFIABLE
from lab.clients import Client, start_consumer, start_producer
from lab.cluster import REPLICA_LAG_MS, Cluster
from lab.faults import Fault
from lab.live_scan import LiveScan
from lab.observer import Observer
from lab.processes import Process, now_ms
from lab.scenario import Producer, Scenario, Topic
from lab.steps import wait_until
from lab.supervisor import Supervisor
from lab.truth import Truth, establish

_IDLE_S = 20.0
_BROKER_LOGS = ("server.log", "controller.log", "state-change.log")


@dataclass
class Run:
    """One scenario under way on one cluster, leaving its traces in a directory."""

    scenario: Scenario
    cluster: Cluster
    evidence: Path
    clients: dict[str, Client] = field(default_factory=dict)
    journal: list[dict[str, Any]] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)
    marks: dict[str, int] = field(default_factory=dict)
    actions: list[dict[str, Any]] = field(default_factory=list)
    _deadline: float = 0.0

    def __post_init__(self) -> None:
        self._admin = snapshots.observer(self.cluster.direct)
        self._supervisor = Supervisor()
        self._observer = Observer(self.cluster, self.scenario, self.evidence)
        self._recorder: report_topic.Recorder | None = None
        self._under_way: list[Fault] = []
        self._began = self._ended = 0
        self._log_starts = {path: _size(path) for path in self._broker_logs()}

    def perform(self) -> Truth:
        """Do everything; whatever happens, the clients are stopped and the faults mended."""
        with LiveScan(self.cluster, self.scenario, self.evidence):
            self._enact(self._finish)
        self._write("scenario.json", self._settings())
        self._copy_broker_logs()
        return establish(self.evidence)

    def perform_steps(self) -> None:
        """Clients, steps and faults alone: no dust settles, and no truth is made."""
        self._enact(self._mend)

    def _enact(self, finish: Callable[[], None]) -> None:
        self._deadline = time.monotonic() + self.scenario.within_s
        self._began = now_ms()
        try:
            snapshots.create_topics(self._admin, self.scenario.topics)
            if self.scenario.clients != VERIFIABLE:
                self._record_reports()
            self._start_clients()
            for step in self.scenario.steps:
                self._check_time()
                self._check_clients()
                step.do(self)
            self._check_clients()
            finish()
            self._check_clients()
        finally:
            self._stop_all()
        self._write("faults.json", self.journal)

    # What steps and faults ask for.

    def process_of(self, broker: int) -> Process:
        """The process of a broker that was started."""
        process = self.cluster.brokers[broker].process
        if process is None:
            raise LabError(f"broker {broker} was never started")
        return process

    def client(self, name: str) -> Client:
        """A started client."""
        try:
            return self.clients[name]
        except KeyError:
            raise LabError(f"{self.scenario.name}: no client {name} has been started") from None

    def launch(self, name: str) -> None:
        """Start a client of the scenario."""
        for consumer in self.scenario.consumers:
            if consumer.name == name:
                client = start_consumer(self.cluster, consumer, self.evidence)
                self._join(client, "consumer")
        for producer in self.scenario.producers:
            if producer.name == name:
                client = start_producer(self.cluster, producer, self.evidence)
                self._join(client, "producer")

    def end_client(self, name: str, *, gracefully: bool) -> None:
        """End a client's process and wait until it is gone and its end is written down."""
        client = self.client(name)
        client.ended_by_us = True
        if gracefully:
            client.process.terminate(30)
        else:
            client.process.kill()
        self._supervisor.look()

    @property
    def admin(self) -> AdminClient:
        """Asks the cluster past the proxy."""
        return self._admin

    def act(self, action: str, **facts: Any) -> None:
        """Keep what an administrator did, now that it is done."""
        self.actions.append({"action": action, **facts, "at_ms": now_ms()})
        if "topic" in facts:
            self._observer.settings_changed(facts["topic"])

    def begin(self, fault: Fault) -> None:
        """Begin a fault and record when."""
        self._record(fault, "start")
        self._under_way.append(fault)
        fault.start(self)

    def end(self, fault: Fault) -> None:
        """End a fault and record when."""
        fault.stop(self)
        if fault in self._under_way:
            self._under_way.remove(fault)
        self._record(fault, "stop")

    def note(self, name: str, value: Any) -> None:
        """Keep a fact about what happened."""
        self.notes[name] = value

    def partition(self, topic: str, partition: int) -> dict[str, Any] | None:
        """The state of one partition now; None where the cluster did not answer."""
        for row in snapshots.partition_states(self._admin, [topic]):
            if row["partition"] == partition:
                return row
        self._admin = snapshots.observer(self.cluster.direct)  # It may wait for a dead broker.
        return None

    def wait_in_sync(self) -> None:
        """Wait until every replica of the scenario's topics is in sync."""
        topics = [topic.name for topic in self.scenario.topics]
        snapshots.wait_in_sync(self._admin, topics, min(90.0, self.seconds_left()))

    def seconds_left(self) -> float:
        """Until the bound of the run."""
        return max(0.0, self._deadline - time.monotonic())

    # The course of a run.

    def _record_reports(self) -> None:
        """Make the audit topic, unless an earlier run has, and record what comes to it."""
        if report_topic.NAME not in self._admin.list_topics(timeout=30).topics:
            snapshots.create_topics(self._admin, [report_topic.TOPIC])
        begins = self._ends([report_topic.TOPIC])
        self._recorder = report_topic.Recorder(self.cluster.direct, self.evidence, begins)
        self._recorder.start()

    def _start_clients(self) -> None:
        self._observer.start()
        self._supervisor.start()
        for consumer in self.scenario.consumers:
            if not consumer.starts_later:
                self.launch(consumer.name)
        for name, client in self.clients.items():
            if not wait_until(client.has_partitions, 60):
                raise LabError(f"consumer {name} was not assigned a partition within 60 s")
        for producer in self.scenario.producers:
            if not producer.starts_later:
                self.launch(producer.name)

    def _join(self, client: Client, role: str) -> None:
        self.clients[client.name] = client
        self._supervisor.add(client)
        if client.exporter_port is not None:
            self._observer.watch(client.host, role, client.exporter_port)

    def _finish(self) -> None:
        """Producers end, the cluster heals, consumers catch up, the dust settles, we look."""
        for producer in self.scenario.producers:
            client = self.client(producer.name)
            if not producer.unfinished and not wait_until(client.has_ended, self.seconds_left()):
                raise LabError(
                    f"{self.scenario.name}: {producer.name} had not finished after "
                    f"{self.scenario.within_s} s"
                )
        if not self.scenario.ends_broken:
            self._mend()
        self._catch_up()
        time.sleep(min(self._settling_seconds(), self.seconds_left()))
        self._await_reports()
        self._observer.snapshot()
        self._observer.scrape()
        for topic in self.scenario.topics:
            self._observer.scan(topic.name)
        self._observer.snapshot()
        self._ended = now_ms()

    def _await_reports(self) -> None:
        """Wait until the evidence has all that is on the audit topic."""
        recorder = self._recorder
        if recorder is None:
            return
        ends = self._ends([report_topic.TOPIC])
        if not wait_until(lambda: recorder.has(ends), 30):
            raise LabError(f"{self.scenario.name}: the audit topic could not be read to its end")

    def _mend(self) -> None:
        for fault in list(self._under_way):
            self.end(fault)
        self.wait_in_sync()

    def _catch_up(self) -> None:
        """Give consumers the time to read to the end, then let them leave in good order.

        The end may hold nothing for them (a transaction's marker): who is idle for long is there.
        """
        ends = self._ends(self.scenario.topics)

        def position(group: str, place: tuple[str, int]) -> int:
            members = [c.name for c in self.scenario.consumers if c.group == group]
            read = [self.client(name).progress.update().next_offsets for name in members]
            return max(each.get(place, 0) for each in read)

        wanted = {
            (consumer.group, place): end
            for consumer in self.scenario.consumers
            for place, end in ends.items()
            if place[0] == consumer.topic and self.client(consumer.name).process.alive
        }

        counts, since = -1, time.monotonic()

        def caught_up() -> bool:
            nonlocal counts, since
            if all(position(*each) >= end for each, end in wanted.items()):
                return True
            received = sum(
                self.client(c.name).progress.counts["record_data"] for c in self.scenario.consumers
            )
            if received != counts:
                counts, since = received, time.monotonic()
            return time.monotonic() - since > _IDLE_S

        wait_until(caught_up, min(60.0, self.seconds_left()))
        for consumer in self.scenario.consumers:
            if self.client(consumer.name).process.alive:
                self.end_client(consumer.name, gracefully=True)

    def _ends(self, of: Sequence[Topic]) -> dict[tuple[str, int], int]:
        """The end of every partition of the topics *of*, as soon as all are known."""
        topics = [topic.name for topic in of]
        wanted = sum(len(topic.replicas) for topic in of)
        rows: list[dict[str, Any]] = []

        def answered() -> bool:
            rows[:] = snapshots.partition_states(self._admin, topics)
            known = sum(row["latest_offset"] is not None for row in rows)
            if known < wanted:
                self._admin = snapshots.observer(self.cluster.direct)
            return known == wanted

        if not wait_until(answered, min(60.0, self.seconds_left())):
            raise LabError(f"{self.scenario.name}: not every partition has a leader at the end")
        return {(row["topic"], row["partition"]): row["latest_offset"] for row in rows}

    def _settling_seconds(self) -> float:
        """How long until a look at the log decides.

        Two answers under one epoch must lie 2 x replica.lag.time.max.ms apart; an id without an
        offset is decided by a scan that begins replica.lag.time.max.ms + delivery.timeout.ms after
        the producer's last word.
        """
        last_stop = max((entry["at_ms"] for entry in self.journal), default=0)
        ready = last_stop + 2 * REPLICA_LAG_MS + 1000
        for producer in self.scenario.producers:
            client = self.client(producer.name)
            if producer.unfinished:
                continue
            progress = client.progress.update()
            if producer.acks == "0" or progress.failed or not progress.counts["tool_data"]:
                said = int(client.output.stat().st_mtime * 1000)
                ready = max(ready, said + REPLICA_LAG_MS + _delivery_timeout(producer) + 1000)
        return max(0.0, (ready - now_ms()) / 1000)

    def _stop_all(self) -> None:
        """Clients end before the cluster is mended: what a broken run leaves says nothing more."""
        self._supervisor.stop()
        if self._recorder is not None:
            self._recorder.stop()
        self._observer.stop()
        for client in self.clients.values():
            client.process.kill()
        for fault in list(self._under_way):
            self._under_way.remove(fault)
            try:
                fault.stop(self)
            except LabError:
                continue  # The run's own error says more; the cluster ends with the run.

    def _check_time(self) -> None:
        if self.seconds_left() == 0:
            raise LabError(f"{self.scenario.name}: not done after {self.scenario.within_s} s")

    def _check_clients(self) -> None:
        self._supervisor.look()
        for name, code in self._supervisor.died.items():
            raise LabError(
                f"{self.scenario.name}: {name} ended by itself with code {code}; "
                f"see {self.client(name).output.parents[1] / 'logs'}"
            )

    # What is left on disk.

    def _record(self, fault: Fault, phase: str) -> None:
        self.journal.append(
            {"fault": fault.name, "target": fault.target, "phase": phase, "at_ms": now_ms()}
        )

    def _settings(self) -> dict[str, Any]:
        scenario = self.scenario
        sessions = report_topic.sessions(self.evidence)
        return {
            "name": scenario.name,
            "clients": scenario.clients,
            "question": scenario.question,
            "kafka": self.cluster.version,
            "began_at_ms": self._began,
            "ended_at_ms": self._ended,
            "replica_lag_time_max_ms": REPLICA_LAG_MS,
            "notes": self.notes,
            "marks": self.marks,
            "actions": self.actions,
            "exits": dict(self._supervisor.exits),
            "topics": [asdict(topic) for topic in scenario.topics],
            "producers": [
                {
                    **asdict(each),
                    "client_id": each.called,
                    "host": each.host,
                    "prefix": self.client(each.name).prefix,
                    "session": sessions.get((each.called, each.host, each.topic), ""),
                }
                for each in scenario.producers
            ],
            "consumers": [
                {**asdict(each), "host": each.host, "isolation": each.isolation}
                for each in scenario.consumers
            ],
            "expect": {name: _ranges(asdict(each)) for name, each in scenario.expect.items()},
            "owed": {group: _ranges(asdict(each)) for group, each in scenario.owed.items()},
        }

    def _write(self, name: str, content: Any) -> None:
        (self.evidence / name).write_text(json.dumps(content, indent=1) + "\n")

    def _broker_logs(self) -> list[Path]:
        return [b.logs / name for b in self.cluster.brokers.values() for name in _BROKER_LOGS]

    def _copy_broker_logs(self) -> None:
        for broker in self.cluster.brokers.values():
            target = self.evidence / "logs" / broker.host
            target.mkdir(parents=True, exist_ok=True)
            for name in _BROKER_LOGS:
                source = broker.logs / name
                if source.exists():
                    with source.open("rb") as file, (target / name).open("wb") as copy:
                        file.seek(self._log_starts.get(source, 0))
                        shutil.copyfileobj(file, copy)


def _ranges(expected: dict[str, Any]) -> dict[str, Any]:
    """What is expected, with ranges as their first and last number."""
    return {
        key: [value.start, value.stop - 1] if isinstance(value, range) else value
        for key, value in expected.items()
    }


def _delivery_timeout(producer: Producer) -> int:
    names = ("delivery.timeout.ms", "message.timeout.ms")
    given = [producer.settings[name] for name in names if name in producer.settings]
    default = 300_000 if producer.kind == "python" else DELIVERY_TIMEOUT_MS
    return int(given[0]) if given else default


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
