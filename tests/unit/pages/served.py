"""A live page that is really served, on loopback, by a thread of the test."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

import requests
import uvicorn

from acktrail.lake import Lake
from acktrail.pages.live_server import live_app
from acktrail.policy.model import Policy


@dataclass
class Browser:
    """Asks, keeps cookies, and follows nothing."""

    address: str
    session: requests.Session = field(default_factory=requests.Session)

    def ask(self, path: str, method: str = "get", **headers: str) -> requests.Response:
        return self.session.request(
            method, self.address + path, headers=headers, allow_redirects=False, timeout=60
        )


@contextmanager
def served(lake: Lake, as_of: datetime | None, token: str | None = None) -> Iterator[Browser]:
    app = live_app(lake, Policy(), ["127.0.0.1"], token, as_of)
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error", lifespan="off")
    server = uvicorn.Server(config)
    socket = config.bind_socket()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]})
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        with requests.Session() as session:
            yield Browser(f"http://127.0.0.1:{socket.getsockname()[1]}", session)
    finally:
        server.should_exit = True
        thread.join()
        socket.close()
