"""Watching a run from the side: scrapes, cluster snapshots, and how clients' output has grown."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException, TopicPartition

from acktrail import recorded_receipts as receipts
from lab import exporter, snapshots
from lab.cluster import Cluster
from lab.processes import now_ms
from lab.scan import scan_topic
from lab.scenario import Scenario

_SCRAPE_EVERY = 4.0
_SNAPSHOT_EVERY = 4.0
_RECEIPTS_EVERY = 1.0
_RECEIVED = ("verifiable", "python", "audit")
"""Where clients print what they report of messages, and what came to the audit topic."""


class Observer:
    """Threads that write what they see into the evidence directory until stopped."""

    def __init__(self, cluster: Cluster, scenario: Scenario, evidence: Path) -> None:
        self._cluster = cluster
        self._scenario = scenario
        self._evidence = evidence
        self._metrics = evidence / "metrics"
        self._states = evidence / "cluster"
        self._metrics.mkdir(parents=True, exist_ok=True)
        self._states.mkdir(parents=True, exist_ok=True)
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._receiving = threading.Lock()
        self._sizes: dict[str, int] = {}
        topics = [topic.name for topic in scenario.topics]
        self._configs = snapshots.config_resources(topics, cluster.brokers)
        """What was asked for its settings and has not answered yet."""
        self._admin = snapshots.observer(cluster.direct)
        groups = {consumer.group for consumer in scenario.consumers}
        self._commits = snapshots.Commits(cluster.direct, groups)
        self._targets = {b.host: ("broker", b.exporter_port) for b in cluster.brokers.values()}
        self._threads = [
            threading.Thread(target=self._repeat, args=each, daemon=True)
            for each in (
                (self.scrape, _SCRAPE_EVERY),
                (self.snapshot, _SNAPSHOT_EVERY),
                (self.receive, _RECEIPTS_EVERY),
            )
        ]

    def start(self) -> None:
        """Write the settings of topics and brokers, then begin to watch."""
        self._ask_settings()
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop watching, with what is under way finished."""
        self._stop.set()
        for thread in self._threads:
            if thread.ident is not None:  # a run may fail before anything is watched
                thread.join(30)
        self._commits.close()
        self.receive()

    def watch(self, host: str, role: str, port: int) -> None:
        """Scrape one more exporter from now on."""
        self._targets[host] = (role, port)

    def scrape(self) -> None:
        """Ask every exporter once; who does not answer leaves no line, as with any scraper."""
        for host, (role, port) in list(self._targets.items()):
            text = exporter.scrape(port)
            if text is not None:
                row = {"at_ms": now_ms(), "instance": f"{host}:{port}", "job": role, "text": text}
                self._append(self._metrics / f"{host}.jsonl", [row])

    def snapshot(self) -> None:
        """Ask the cluster for the state of every partition and group of the scenario."""
        topics = [topic.name for topic in self._scenario.topics]
        rows = snapshots.partition_states(self._admin, topics)
        if not rows:  # It keeps asking the broker that died: a new client asks another.
            self._admin = snapshots.observer(self._cluster.direct)
            rows = snapshots.partition_states(self._admin, topics)
        self._append(self._states / "states.jsonl", rows)
        groups: dict[str, list[TopicPartition]] = {}
        for consumer in self._scenario.consumers:
            groups[consumer.group] = [
                TopicPartition(row["topic"], row["partition"])
                for row in rows
                if row["topic"] == consumer.topic
            ]
        commits = self._commits.rows(self._admin, {g: p for g, p in groups.items() if p})
        ids = {row["topic"]: row["topic_id"] for row in rows}
        for commit in commits:
            commit["topic_id"] = ids.get(commit["topic"], "")
        self._append(self._states / "groups.jsonl", commits)

        if self._configs:
            self._ask_settings()

    def settings_changed(self, topic: str) -> None:
        """Ask *topic* for its settings again, with the next look at the cluster."""
        self._configs += snapshots.config_resources([topic], ())

    def receive(self) -> None:
        """Note how far each client's output has grown; the sizes are taken before the time."""
        with self._receiving:
            grown = {}
            for path in (p for folder in _RECEIVED for p in (self._evidence / folder).glob("*")):
                name, size = path.relative_to(self._evidence).as_posix(), path.stat().st_size
                if size > self._sizes.get(name, 0):
                    grown[name] = size
            if grown:
                self._sizes |= grown
                row = {"at_ms": now_ms(), "sizes": grown}
                self._append(self._evidence / receipts.FILE, [row])

    def scan(self, topic: str, name: str | None = None) -> None:
        """Read *topic* from end to end into `scan/`, after all that clients have printed so far."""
        self.receive()
        time.sleep(0.002)  # The scan begins in a later millisecond than the receipt.
        output = self._evidence / "scan" / f"{name or topic}.jsonl"
        scan_topic(self._cluster.direct, topic, output)

    def _ask_settings(self) -> None:
        """Ask topics and brokers for their settings; who does not answer is asked again later."""
        rows, self._configs = snapshots.config_states(self._admin, self._configs)
        self._append(self._states / "configs.jsonl", rows)

    def _repeat(self, work: Callable[[], None], seconds: float) -> None:
        while not self._stop.is_set():
            with suppress(KafkaException):  # A look that was refused is one look less.
                work()
            self._stop.wait(seconds)

    def _append(self, path: Path, rows: list[dict[str, Any]]) -> None:
        with self._lock, path.open("a") as file:
            for row in rows:
                file.write(json.dumps(row) + "\n")
