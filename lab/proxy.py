"""A loopback proxy between clients and brokers that reads Kafka's framing.

A request is `size, api key, api version, correlation id, …`, a response `size, correlation id, …`;
a broker answers the requests of one connection in order. So the proxy knows which response answers
a produce request, and can lose or delay those and nothing else.

A byte stream cannot skip: once a response is lost, nothing more reaches the client on that
connection, until the client gives up and opens a new one. That is also what a client would see.
"""

from __future__ import annotations

import asyncio
import struct
import threading
from collections.abc import AsyncIterator, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from acktrail.errors import LabError

PRODUCE = 0
MAX_FRAME = 128 << 20
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Request:
    """The head of a request."""

    api_key: int
    api_version: int
    correlation_id: int


def read_request_head(frame: bytes) -> Request:
    """Read the head of a request frame (without its size)."""
    return Request(*struct.unpack_from(">hhi", frame))


def read_correlation_id(frame: bytes) -> int:
    """The correlation id that opens a response frame (without its size)."""
    (correlation_id,) = struct.unpack_from(">i", frame)
    return int(correlation_id)


def framed(frame: bytes) -> bytes:
    """A frame with its size in front, as it goes over the wire."""
    return struct.pack(">i", len(frame)) + frame


async def frames(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """The frames of a stream, until it ends. A cut-off last frame is not one."""
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            (size,) = struct.unpack(">i", await reader.readexactly(4))
            if not 0 <= size <= MAX_FRAME:
                raise LabError(f"the proxy read a frame of {size} bytes: not Kafka's protocol")
            yield await reader.readexactly(size)


@dataclass
class Weather:
    """What the network in front of one broker does now, and what it has done."""

    cut: bool = False
    """Nothing passes in either direction; connections stay open and wait."""
    refused: bool = False
    """Connections are closed, and new ones too."""
    delay_s: float = 0.0
    """Every response is held back this long."""
    drop_acks: bool = False
    """Responses to produce requests are lost."""
    delay_acks_s: float = 0.0
    """Responses to produce requests are held back this long."""
    dropped: int = 0
    """Responses to produce requests lost so far."""
    delayed: int = 0
    """Responses held back so far."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass
class _Route:
    """One broker: where it really listens, where clients are told to connect, and the weather."""

    broker: int
    target: int
    weather: Weather
    server: asyncio.Server
    connections: set[_Connection] = field(default_factory=set)


class _Connection:
    """One client's connection through the proxy."""

    def __init__(
        self, weather: Weather, writers: tuple[asyncio.StreamWriter, asyncio.StreamWriter]
    ) -> None:
        self.weather = weather
        self.to_client, self.to_broker = writers
        self.awaiting: dict[int, Request] = {}
        self.mute = False

    async def carry_requests(self, reader: asyncio.StreamReader) -> None:
        async for frame in frames(reader):
            head = read_request_head(frame)
            self.awaiting[head.correlation_id] = head
            await self._passable()
            self.to_broker.write(framed(frame))
            await self.to_broker.drain()

    async def carry_responses(self, reader: asyncio.StreamReader) -> None:
        async for frame in frames(reader):
            request = self.awaiting.pop(read_correlation_id(frame), None)
            is_ack = request is not None and request.api_key == PRODUCE
            if is_ack and self.weather.drop_acks:
                self.weather.dropped += 1
                self.mute = True
            if self.mute:
                continue
            await self._hold(is_ack)
            await self._passable()
            self.to_client.write(framed(frame))
            await self.to_client.drain()

    async def _hold(self, is_ack: bool) -> None:
        seconds = max(self.weather.delay_s, self.weather.delay_acks_s if is_ack else 0.0)
        if seconds:
            self.weather.delayed += 1
            await asyncio.sleep(seconds)

    async def _passable(self) -> None:
        while self.weather.cut:
            await self.weather.changed.wait()

    def close(self) -> None:
        for writer in (self.to_client, self.to_broker):
            with suppress(RuntimeError):
                writer.transport.abort()


class Proxy:
    """Routes for all brokers, run by one thread of its own; close it, or leave its `with` block."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._routes: dict[int, _Route] = {}
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._thread.start()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def route(self, broker: int, target: int) -> int:
        """Open a port for *broker*, whose own port is *target*; return the opened one."""
        return self._call(self._open(broker, target))

    def weather(self, broker: int) -> Weather:
        """What the network in front of *broker* does. Read it; change it with `change`."""
        return self._routes[broker].weather

    def change(self, broker: int, **what: bool | float) -> None:
        """Change the weather of one broker, e.g. `change(1, drop_acks=True)`."""
        self._call(self._change(self._routes[broker], what))

    def close(self) -> None:
        """Close every port and connection and end the thread."""
        if self._loop.is_closed():
            return
        self._call(self._shut())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _call(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _open(self, broker: int, target: int) -> int:
        weather = Weather()

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(asyncio.CancelledError):
                await self._serve(self._routes[broker], reader, writer)

        server = await asyncio.start_server(accept, "127.0.0.1", 0, limit=MAX_FRAME)
        self._routes[broker] = _Route(broker, target, weather, server)
        port: int = server.sockets[0].getsockname()[1]
        return port

    async def _serve(
        self, route: _Route, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if route.weather.refused:
            writer.transport.abort()
            return
        try:
            answers, upstream = await asyncio.open_connection("127.0.0.1", route.target)
        except OSError:
            writer.transport.abort()
            return
        connection = _Connection(route.weather, (writer, upstream))
        route.connections.add(connection)
        try:
            await self._carry(connection, reader, answers)
        finally:
            route.connections.discard(connection)
            connection.close()

    async def _carry(
        self,
        connection: _Connection,
        requests: asyncio.StreamReader,
        answers: asyncio.StreamReader,
    ) -> None:
        """Carry both ways until either side ends."""
        ways = [
            asyncio.ensure_future(connection.carry_requests(requests)),
            asyncio.ensure_future(connection.carry_responses(answers)),
        ]
        _, pending = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in pending:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)

    async def _change(self, route: _Route, what: dict[str, bool | float]) -> None:
        for name, value in what.items():
            setattr(route.weather, name, value)
        route.weather.changed.set()
        route.weather.changed = asyncio.Event()
        if route.weather.refused:
            for connection in list(route.connections):
                connection.close()

    async def _shut(self) -> None:
        for route in self._routes.values():
            route.server.close()
            for connection in list(route.connections):
                connection.close()
        mine = asyncio.current_task()
        others = [task for task in asyncio.all_tasks() if task is not mine]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
