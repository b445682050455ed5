"""The proxy: any bytes through unharmed, and only the answers to produce requests lost or late."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acktrail.errors import LabError
from lab.proxy import PRODUCE, Proxy, Request, framed, frames, read_request_head

METADATA = 3


async def _read(chunks: list[bytes]) -> list[bytes]:
    reader = asyncio.StreamReader()
    for chunk in chunks:
        reader.feed_data(chunk)
    reader.feed_eof()
    return [frame async for frame in frames(reader)]


@given(st.lists(st.binary(max_size=200), max_size=20), st.data())
def test_frames_come_out_as_they_went_in_however_the_stream_is_cut(sent, data):
    stream = b"".join(map(framed, sent))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)))) | {0, len(stream)})
    chunks = [stream[a:b] for a, b in pairwise(cuts)]
    assert asyncio.run(_read(chunks)) == sent


@given(st.lists(st.binary(min_size=1, max_size=50), min_size=1, max_size=5), st.integers(1, 50))
def test_a_frame_cut_off_by_the_end_is_not_one(sent, missing):
    stream = b"".join(map(framed, sent))
    missing = min(missing, len(framed(sent[-1])))
    assert asyncio.run(_read([stream[:-missing]])) == sent[:-1]


@pytest.mark.parametrize("size", [-1, 1 << 30])
def test_what_is_not_kafka_is_refused(size):
    with pytest.raises(LabError, match="not Kafka's protocol"):
        asyncio.run(_read([struct.pack(">i", size)]))


@given(st.integers(0, 100), st.integers(0, 20), st.integers(0, 2**31 - 1), st.binary(max_size=30))
def test_the_head_of_a_request_is_read(key, version, correlation, rest):
    frame = struct.pack(">hhi", key, version, correlation) + rest
    assert read_request_head(frame) == Request(key, version, correlation)


class Answering(threading.Thread):
    """Listens like a broker and answers every request in order with `correlation id, "ok"`."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.received: list[Request] = []

    def run(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection:
            while (frame := receive(connection)) is not None:
                head = read_request_head(frame)
                self.received.append(head)
                connection.sendall(framed(struct.pack(">i", head.correlation_id) + b"ok"))


def receive(connection: socket.socket) -> bytes | None:
    try:
        size = connection.recv(4, socket.MSG_WAITALL)
        if len(size) < 4:
            return None
        return connection.recv(struct.unpack(">i", size)[0], socket.MSG_WAITALL)
    except (TimeoutError, ConnectionError):
        return None


class Client:
    opened: ClassVar[list[socket.socket]] = []

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=5)
        self.opened.append(self.socket)

    def ask(self, api_key: int, correlation_id: int, within: float = 5.0) -> bool:
        """Whether the answer with that correlation id came."""
        self.socket.sendall(framed(struct.pack(">hhi", api_key, 9, correlation_id)))
        self.socket.settimeout(within)
        answer = receive(self.socket)
        return answer == struct.pack(">i", correlation_id) + b"ok"


def eventually(holds: Callable[[], bool]) -> None:
    """Wait for what another thread does, however busy the machine is."""
    until = time.monotonic() + 10
    while not holds() and time.monotonic() < until:
        time.sleep(0.01)
    assert holds()


@pytest.fixture
def broker():
    server = Answering()
    server.start()
    yield server
    server.listener.close()


@pytest.fixture(autouse=True)
def closed_clients():
    yield
    while Client.opened:
        Client.opened.pop().close()


@pytest.fixture
def proxy():
    with Proxy() as running:
        yield running


def test_fair_weather_changes_nothing(broker, proxy):
    client = Client(proxy.route(1, broker.port))
    assert all(client.ask(key, number) for number, key in enumerate([18, METADATA, PRODUCE, 1]))


def test_only_answers_to_produce_requests_are_lost_and_the_broker_has_the_request(broker, proxy):
    port = proxy.route(1, broker.port)
    proxy.change(1, drop_acks=True)
    client = Client(port)
    assert client.ask(METADATA, 1)
    assert not client.ask(PRODUCE, 2, within=0.3)
    eventually(lambda: proxy.weather(1).dropped == 1)
    assert broker.received[-1].api_key == PRODUCE


def test_a_stream_that_lost_an_answer_stays_silent_and_a_new_one_does_not(broker, proxy):
    port = proxy.route(1, broker.port)
    proxy.change(1, drop_acks=True)
    client = Client(port)
    assert not client.ask(PRODUCE, 1, within=0.3)
    eventually(lambda: proxy.weather(1).dropped == 1)
    proxy.change(1, drop_acks=False)
    assert not client.ask(METADATA, 2, within=0.3)
    assert Client(port).ask(PRODUCE, 3)


def test_only_answers_to_produce_requests_are_late(broker, proxy):
    client = Client(proxy.route(1, broker.port))
    proxy.change(1, delay_acks_s=3.0)
    before = time.monotonic()
    assert client.ask(METADATA, 1)
    assert time.monotonic() - before < 3.0
    before = time.monotonic()
    assert client.ask(PRODUCE, 2)
    assert time.monotonic() - before >= 3.0


def test_a_cut_holds_everything_back_and_loses_nothing(broker, proxy):
    client = Client(proxy.route(1, broker.port))
    assert client.ask(METADATA, 1)
    proxy.change(1, cut=True)
    assert not client.ask(METADATA, 2, within=0.3)
    proxy.change(1, cut=False)
    client.socket.settimeout(5)
    assert receive(client.socket) == struct.pack(">i", 2) + b"ok"


def test_one_brokers_weather_is_not_anothers(broker, proxy):
    here, there = proxy.route(1, broker.port), proxy.route(2, broker.port)
    proxy.change(1, refused=True)
    with pytest.raises((ConnectionError, AssertionError)):
        assert Client(here).ask(METADATA, 1)
    assert Client(there).ask(METADATA, 1)


def test_refusing_closes_what_is_open(broker, proxy):
    client = Client(proxy.route(1, broker.port))
    assert client.ask(METADATA, 1)
    proxy.change(1, refused=True)
    assert receive(client.socket) is None


def test_a_broker_that_is_down_is_a_closed_connection(proxy):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    client = Client(proxy.route(1, port))
    assert receive(client.socket) is None
