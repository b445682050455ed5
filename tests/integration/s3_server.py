"""An S3 server of its own for tests (moto, on loopback), and a front that lets it misbehave."""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import BinaryIO

_ROOT = Path(__file__).parents[2]
_PROGRAM = Path(os.environ.get("MOTO_VENV", _ROOT / ".venv-moto")) / "bin" / "moto_server"
KEY_ID, SECRET = "AKIDACKTRAILTEST", "s3cr3t/of+the/test0123456789"
ERROR = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{}</Code><Message>{}</Message>'
    "<RequestId>4442587FB7D0A2F9</RequestId></Error>"
)


@contextlib.contextmanager
def s3_server() -> Iterator[str]:
    """The address of a server that keeps its objects in memory."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [_PROGRAM, "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for_port(port, process)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def wait_for_port(port: int, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 180
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise AssertionError("The S3 server did not start.")


def make_bucket(address: str, name: str) -> None:
    request(address, "PUT", f"/{name}")


def request(
    address: str, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
) -> tuple[int, list[tuple[str, str]], bytes]:
    """Status, headers and body of an answer."""
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=60)
    with contextlib.closing(connection):
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.getheaders(), answer.read()


def _body(stream: BinaryIO, headers: dict[str, str]) -> bytes:
    """What was sent; a body in chunks (Arrow's) is put together, and its length stated."""
    if headers.pop("transfer-encoding", "") != "chunked":
        return stream.read(int(headers.get("content-length") or 0))
    body = b""
    while size := int(stream.readline().split(b";")[0], 16):
        body += stream.read(size)
        stream.readline()
    stream.readline()
    headers["content-length"] = str(len(body))
    return body


@dataclass(frozen=True)
class Seen:
    """One request that came by."""

    method: str
    path: str
    headers: dict[str, str]

    @property
    def key_id(self) -> str:
        """The access key that signed it."""
        return self.headers.get("authorization", "").partition("Credential=")[2].partition("/")[0]


Answer = Callable[[Seen], tuple[int, str] | None]
"""What to answer instead of the server: status and body; None: ask the server."""


@dataclass
class Front:
    """Between clients and the server: it records requests, and may answer itself.

    Clients must be other processes: some calls of delta-rs keep Python's lock while they wait.
    """

    server: str
    answer: Answer | None = None
    lose_answers: Callable[[Seen], bool] | None = None
    """Whether the server does what is asked, and the client never hears of it."""
    drop_headers: tuple[str, ...] = ()
    seen: list[Seen] = field(default_factory=list)
    address: str = ""

    @contextlib.contextmanager
    def open(self) -> Iterator[Front]:
        front = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _pass_on(self) -> None:
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    front._serve(self)

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _pass_on

            def log_message(self, *_: object) -> None:
                pass

        httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        httpd.daemon_threads = True
        self.address = f"http://127.0.0.1:{httpd.server_address[1]}"
        thread = threading.Thread(target=httpd.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield self
        finally:
            httpd.shutdown()
            thread.join()
            httpd.server_close()

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        headers = {name.lower(): value for name, value in handler.headers.items()}
        body = _body(handler.rfile, headers)
        seen = Seen(handler.command, handler.path, dict(headers))
        self.seen.append(seen)
        own = self.answer(seen) if self.answer else None
        if own is not None:
            self._send(handler, own[0], [("Content-Type", "application/xml")], own[1].encode())
            return
        for name in self.drop_headers:
            headers.pop(name, None)
        answered = request(self.server, seen.method, seen.path, body, headers)
        if self.lose_answers is not None and self.lose_answers(seen):
            handler.close_connection = True
            handler.connection.close()
            return
        self._send(handler, *answered)

    def _send(
        self,
        handler: BaseHTTPRequestHandler,
        status: int,
        headers: list[tuple[str, str]],
        body: bytes,
    ) -> None:
        handler.send_response(status)
        left_out = ("transfer-encoding", "connection", "date", "server")
        for name, value in headers:
            if name.lower() not in left_out and not (name.lower() == "content-length" and body):
                handler.send_header(name, value)
        if body or not any(name.lower() == "content-length" for name, _ in headers):
            handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(body)
