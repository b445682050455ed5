"""Real servers on loopback for the tests, and a proxy that hurts what passes through it."""

from __future__ import annotations

import http.client
import http.server
import json
import shutil
import socket
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class PrometheusServer:
    """Debian's Prometheus over a directory of samples made by promtool."""

    def __init__(
        self,
        directory: Path,
        port: int,
        flags: tuple[str, ...] = (),
        scheme: str = "http",
        config: str = "global: {}\n",
    ) -> None:
        self.directory = directory
        self.port = port
        self.url = f"{scheme}://127.0.0.1:{port}"
        self._flags = flags
        self._config = config
        self._process: subprocess.Popen[bytes] | None = None
        self._log = directory / "server.log"

    def load(self, openmetrics: str) -> None:
        """Put samples in, before the start."""
        text = self.directory / "samples.txt"
        text.write_text(openmetrics, encoding="utf-8")
        subprocess.run(
            [
                _program("promtool"),
                *("tsdb", "create-blocks-from", "openmetrics"),
                str(text),
                str(self.directory / "data"),
            ],
            check=True,
            capture_output=True,
        )

    def start(self) -> None:
        """Start and wait until it answers queries."""
        config = self.directory / "prometheus.yml"
        config.write_text(self._config, encoding="utf-8")
        with self._log.open("ab") as out:
            self._process = subprocess.Popen(
                [
                    _program("prometheus"),
                    f"--config.file={config}",
                    f"--storage.tsdb.path={self.directory / 'data'}",
                    "--storage.tsdb.retention.time=10y",
                    f"--web.listen-address=127.0.0.1:{self.port}",
                    *self._flags,
                ],
                stdout=out,
                stderr=out,
            )
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            try:
                unchecked = ssl._create_unverified_context()
                ready = f"{self.url}/-/ready"
                with urllib.request.urlopen(ready, timeout=1, context=unchecked) as answer:
                    if answer.status == 200:
                        return
            except (urllib.error.URLError, OSError):
                time.sleep(0.05)
        raise AssertionError(f"prometheus did not start: {self._log.read_text()[-2000:]}")

    def stop(self) -> None:
        """Stop it, if it runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


class AlertmanagerServer:
    """Debian's Alertmanager, with nobody to notify."""

    def __init__(self, directory: Path) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start and wait until it is ready."""
        config = self._directory / "alertmanager.yml"
        config.write_text("route: {receiver: nobody}\nreceivers: [{name: nobody}]\n")
        log = self._directory / "alertmanager.log"
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                [
                    _program("prometheus-alertmanager"),
                    f"--config.file={config}",
                    f"--storage.path={self._directory / 'data'}",
                    f"--web.listen-address=127.0.0.1:{self.port}",
                    "--cluster.listen-address=",
                ],
                stdout=out,
                stderr=out,
            )
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(f"{self.url}/-/ready", timeout=1):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.05)
        raise AssertionError(f"alertmanager did not start: {log.read_text()[-2000:]}")

    def stop(self) -> None:
        """Stop it, if it runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def active(self, **labels: str) -> list[dict[str, Any]]:
        """The alerts that are active now, with these labels."""
        filters = [("filter", f'{name}="{value}"') for name, value in labels.items()]
        query = urllib.parse.urlencode([("active", "true"), *filters])
        with urllib.request.urlopen(f"{self.url}/api/v2/alerts?{query}", timeout=10) as answer:
            found: list[dict[str, Any]] = json.load(answer)
        return found


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise AssertionError(f"{name} is not installed: `make servers` installs it")
    return found


Fault = Callable[[int, bytes], tuple[int, bytes] | None]
"""(status, body) of a true answer to what is passed on; None cuts the connection half way."""


class FaultyProxy:
    """Stands before a server; *fault* changes answers while it is set."""

    def __init__(self, upstream_port: int) -> None:
        self.fault: Fault | None = None
        self.delay_s = 0.0
        self.requests: list[tuple[str, dict[str, str]]] = []
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                proxy.requests.append((self.path, dict(self.headers)))
                upstream = http.client.HTTPConnection("127.0.0.1", upstream_port, timeout=30)
                try:
                    upstream.request("GET", self.path)
                    answer = upstream.getresponse()
                    status, body = answer.status, answer.read()
                except OSError:
                    status, body = 502, b"upstream is down"
                finally:
                    upstream.close()
                time.sleep(proxy.delay_s)
                told = proxy.fault(status, body) if proxy.fault else (status, body)
                full = len(body)
                if told is None:
                    told = (status, body[: full // 2])
                else:
                    full = len(told[1])
                self.send_response(told[0])
                self.send_header("Content-Length", str(full))
                self.end_headers()
                try:
                    self.wfile.write(told[1])
                except OSError:
                    self.close_connection = True

            def log_message(self, *_: object) -> None:
                return

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
