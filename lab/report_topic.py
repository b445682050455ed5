"""The audit topic of a run with audited clients: made, recorded as it grows, and who reported.

It lies on the cluster that is broken: what happens to an application's messages happens to its
reports, too.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from lab.scenario import Topic

NAME = "acktrail-reports"
TOPIC = Topic(NAME, ((1, 2, 3), (2, 3, 1), (3, 1, 2)))
FILE = "audit/reports.jsonl"
INTERVAL_S = 2.0
"""A run lasts a minute or two: with the default of ten seconds, clients would hardly report."""
CLOSE_S = 60.0
"""Clients often end while brokers are down: they wait for their last report."""


class Recorder:
    """A thread that appends what comes to the audit topic to the evidence, a message per line."""

    def __init__(
        self, bootstrap: str, evidence: Path, begins: Mapping[tuple[str, int], int]
    ) -> None:
        self._path = evidence / FILE
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._reader = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "lab-reports",
                "enable.auto.commit": False,
                "log_level": 0,
                "reconnect.backoff.max.ms": 500,
            }
        )
        self._next = {number: offset for (_, number), offset in begins.items()}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._record, name="reports", daemon=True)

    def start(self) -> None:
        """Record from where the topic ended when the run began."""
        places = [TopicPartition(NAME, number, at) for number, at in self._next.items()]
        self._reader.assign(places)
        self._thread.start()

    def has(self, ends: Mapping[tuple[str, int], int]) -> bool:
        """Whether all below these ends of the topic's partitions is in the file."""
        return all(self._next[number] >= end for (_, number), end in ends.items())

    def stop(self) -> None:
        """Record no more."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(30)
        self._reader.close()

    def _record(self) -> None:
        with self._path.open("ab") as file:
            while not self._stop.is_set():
                came = [m for m in self._reader.consume(100, 0.2) if m.error() is None]
                for message in came:
                    value: Any = message.value() or b""
                    file.write(value.replace(b"\n", b" ") + b"\n")
                file.flush()
                for message in came:
                    self._next[int(message.partition() or 0)] = int(message.offset() or 0) + 1


def sessions(evidence: Path) -> dict[tuple[str, str, str], str]:
    """The session that was reported of each client id, host and topic."""
    found = {}
    for row in _rows(evidence / FILE):
        if row.get("tier") == "heartbeat" and row.get("session"):
            settings: Mapping[str, str] = row.get("settings", {})
            name = (settings.get("client_id", ""), settings.get("host", ""), str(row["topic"]))
            found[name] = str(row["session"])
    return found


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    if path.exists():
        for line in path.read_bytes().splitlines():
            yield from json.loads(line)["reports"]
