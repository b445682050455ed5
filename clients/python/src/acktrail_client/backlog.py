"""Rows that wait to be sent, or to be acknowledged: bounded, oldest first.

Where memory ends, offsets of acks are forgotten first, then the oldest rows.
"""

from __future__ import annotations

import base64
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from acktrail_client.rows import Row, row_size, without_offsets
from acktrail_client.run_lists import ids_without_offsets


@dataclass
class Message:
    """Rows of one client on their way; its heartbeats come first, with each message."""

    key: str
    rows: list[Row]
    beats: list[Row]
    size: int


@dataclass
class _Client:
    rows: deque[Row] = field(default_factory=deque)
    beats: list[Row] = field(default_factory=list)
    """The newest heartbeats."""
    beats_due: bool = False
    in_flight: int = 0


class Backlog:
    """What all clients of a reporter have still to send. Used by one thread at a time."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._clients: dict[str, _Client] = {}
        self.bytes = 0
        """Of rows that wait or are on their way."""
        self.in_flight = 0

    def add(self, key: str, rows: Sequence[Row], beats: list[Row]) -> list[Row]:
        """More *rows*, and the newest heartbeats; the rows that had to be dropped for it."""
        client = self._clients.setdefault(key, _Client())
        client.rows.extend(rows)
        client.beats, client.beats_due = beats, bool(beats)
        self.bytes += sum(map(row_size, rows))
        if self.bytes > self._most:
            self._forget_offsets()
        return self._drop(client) if self.bytes > self._most else []

    def waiting(self, key: str) -> bool:
        """Whether anything of the client is still to be sent or answered."""
        client = self._clients.get(key)
        return client is not None and bool(client.rows or client.beats_due or client.in_flight)

    def next_message(self, most_bytes: int) -> Message | None:
        """The next message: rows of one client, behind its heartbeats."""
        for key, client in self._clients.items():
            if not client.rows and not client.beats_due:
                continue
            room = most_bytes - sum(map(row_size, client.beats))
            rows: list[Row] = []
            size = 0
            while client.rows and (not rows or size + row_size(client.rows[0]) <= room):
                row = client.rows.popleft()
                size += row_size(row)
                rows.append(row)
            client.beats_due = False
            client.in_flight += 1
            self.in_flight += size
            return Message(key, rows, client.beats, size)
        return None

    def sent(self, message: Message) -> None:
        """The audit topic has it."""
        client = self._landed(message)
        self.bytes -= message.size
        if not (client.rows or client.beats_due or client.in_flight):
            del self._clients[message.key]

    def failed(self, message: Message) -> None:
        """It has to be sent again, before what is newer."""
        client = self._landed(message)
        client.rows.extendleft(reversed(message.rows))
        client.beats_due = True

    def _landed(self, message: Message) -> _Client:
        client = self._clients[message.key]
        client.in_flight -= 1
        self.in_flight -= message.size
        return client

    def _forget_offsets(self) -> None:
        for client in self._clients.values():
            for at, row in enumerate(client.rows):
                if row["tier"] == "acked":
                    ids = ids_without_offsets(base64.b64decode(row["ids"]))
                    client.rows[at] = without_offsets(row, ids)
                    self.bytes += row_size(client.rows[at]) - row_size(row)

    def _drop(self, client: _Client) -> list[Row]:
        """The oldest rows of the client that has just added some."""
        gone: list[Row] = []
        while client.rows and self.bytes > self._most:
            row = client.rows.popleft()
            self.bytes -= row_size(row)
            gone.append(row)
        return gone
