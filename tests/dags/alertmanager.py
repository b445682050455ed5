"""Debian's Alertmanager on loopback."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.integration.servers import free_port


class Alertmanager:
    """A server with nobody to tell; what it holds is read by its API."""

    def __init__(self, directory: Path) -> None:
        program = shutil.which("prometheus-alertmanager")
        assert program, "not installed: apt-get install prometheus-alertmanager"
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        config = directory / "alertmanager.yml"
        config.write_text("route: {receiver: nobody}\nreceivers: [{name: nobody}]\n")
        self._log = (directory / "alertmanager.log").open("wb")
        self._process = subprocess.Popen(
            [
                program,
                f"--config.file={config}",
                f"--storage.path={directory / 'alertmanager'}",
                f"--web.listen-address=127.0.0.1:{port}",
                "--cluster.listen-address=",
            ],
            stdout=self._log,
            stderr=self._log,
        )
        deadline = time.monotonic() + 60
        while not self._ready():
            assert self._process.poll() is None, (directory / "alertmanager.log").read_text()
            assert time.monotonic() < deadline, "Alertmanager does not answer"
            time.sleep(0.1)

    def active(self) -> dict[str, dict[str, Any]]:
        """The active alerts, by Alertmanager's own fingerprint."""
        with urllib.request.urlopen(f"{self.url}/api/v2/alerts?active=true", timeout=10) as answer:
            return {alert["fingerprint"]: alert for alert in json.load(answer)}

    def stop(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        self._log.close()

    def _ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=1) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False
