"""Questions answered by a running `acktrail serve`, through Spark Connect."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acktrail.artifacts import cache_directory
from acktrail.errors import SourceUnavailable, UsageError
from acktrail.settings import Loaded

if TYPE_CHECKING:
    from pipelines.adhoc.ask import SqlAnswer


@dataclass(frozen=True)
class Served:
    """A running `acktrail serve` of this user on this host."""

    url: str
    lake: str
    process: int


def servers_directory() -> Path:
    """Where each server writes how it is reached, for its user alone."""
    return cache_directory() / "serve"


def running_servers() -> list[Served]:
    """The servers of this user that still run."""
    found = []
    for file in sorted(servers_directory().glob("*.json")):
        with contextlib.suppress(OSError, ValueError, KeyError):
            entry = json.loads(file.read_text(encoding="utf-8"))
            served = Served(entry["url"], entry["lake"], int(entry["process"]))
            os.kill(served.process, 0)
            found.append(served)
    return found


def server_url(loaded: Loaded) -> str:
    """Where to ask: SPARK_REMOTE, else the server of the settings' lake, else the only one."""
    if given := os.environ.get("SPARK_REMOTE"):
        return given
    running = running_servers()
    wanted = loaded.settings.lake.uri
    if wanted:
        from acktrail.terminal.options import open_lake

        uri = open_lake(loaded).uri
        running = [each for each in running if each.lake == uri]
    if len(running) == 1:
        return running[0].url
    if not running:
        of = f" for {wanted}" if wanted else ""
        raise UsageError(
            f"No `acktrail serve`{of} runs on this host as this user. Start one: acktrail serve "
            "--lake URI; or set SPARK_REMOTE to the address that it has printed."
        )
    raise UsageError("Several `acktrail serve` run on this host. Name the lake: --lake URI.")


class ConnectSource:
    """A session of the server."""

    def __init__(self, url: str) -> None:
        from pipelines.adhoc.remote import RemoteAsker

        self._asker: Any = RemoteAsker(url)

    def ask(
        self,
        text: str,
        *,
        limit: int,
        timeout_s: float,
        parameters: Mapping[str, object] | None = None,
    ) -> SqlAnswer:
        """The answer; UsageError with the reason where there is none."""
        found: SqlAnswer = self._asker.ask(
            text, limit=limit, timeout_s=timeout_s, parameters=parameters
        )
        return found

    def columns(self) -> dict[str, list[str]]:
        """The columns of each table, as far as the server has them."""
        from pipelines.adhoc import table_catalog

        names = self._asker.table_names()
        return {n: list(t.names) for n, t in table_catalog.BY_NAME.items() if n in names}

    def warm_up(self) -> None:
        """Reach the server, with the right token."""
        self._asker.ask("SELECT 1", limit=1, timeout_s=30)

    def close(self) -> None:
        """End the session on the server."""
        with contextlib.suppress(SourceUnavailable):
            self._asker.close()
