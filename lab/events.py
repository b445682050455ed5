"""The JSON lines that clients print, read as they grow."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Event = dict[str, Any]


def read_events(path: Path) -> Iterator[Event]:
    """Every event of a finished file; lines that are not JSON are notes to people."""
    if path.exists():
        for line in path.read_bytes().splitlines():
            event = _event(line)
            if event is not None:
                yield event


class ClientProgress:
    """How far a client has come, by the events it has printed so far."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0
        self.counts: Counter[str] = Counter()
        self._acked_at: list[int] = []
        self.next_offsets: dict[tuple[str, int], int] = {}
        """Of a consumer: the offset after the last received, by topic and partition."""
        self.partitions: set[tuple[str, int]] = set()
        """Of a consumer: what it has been assigned."""

    def update(self) -> ClientProgress:
        """Read what was printed since the last time."""
        if not self._path.exists():
            return self
        with self._path.open("rb") as file:
            file.seek(self._position)
            new = file.read()
        whole = new[: new.rfind(b"\n") + 1]
        self._position += len(whole)
        for line in whole.splitlines():
            event = _event(line)
            if event is not None:
                self._take(event)
        return self

    def acked_since(self, at_ms: int) -> int:
        """Messages the producer was told are stored at or after a time, by its own clock."""
        return sum(at >= at_ms for at in reversed(self._acked_at))

    @property
    def failed(self) -> int:
        """Messages the producer was told have failed."""
        return self.counts["producer_send_error"]

    def _take(self, event: Event) -> None:
        name = event.get("name", "")
        self.counts[name] += 1
        if name == "producer_send_success":
            self._acked_at.append(event["timestamp"])
        elif name == "record_data":
            key = (event["topic"], event["partition"])
            self.next_offsets[key] = event["offset"] + 1
        elif name == "process_exited":
            self.partitions = set()
        elif name == "partitions_assigned":
            self.partitions = {(each["topic"], each["partition"]) for each in event["partitions"]}


def _event(line: bytes) -> Event | None:
    if not line.startswith(b"{"):
        return None
    try:
        event = json.loads(line)
    except ValueError:  # The last line of a killed client.
        return None
    return event if isinstance(event, dict) else None
