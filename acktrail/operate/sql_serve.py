"""A Spark Connect server on loopback, with a random token and the lake's tables."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from acktrail.errors import ConfigError
from acktrail.lake import Lake
from acktrail.operate.sql_connect import servers_directory
from acktrail.settings import Loaded

if TYPE_CHECKING:
    from acktrail.settings.spark import SparkSettings

_TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
_LOOK_S = 5.0
"""How often it looks for tables that were made meanwhile."""


def serve(loaded: Loaded, lake: Lake, master: str | None, port: int) -> None:
    """Serve until SIGINT or SIGTERM."""
    from pipelines import session
    from pipelines.adhoc import table_catalog
    from pipelines.adhoc.ask import FIXED_CONF

    given = loaded.settings.spark
    settings = given.model_copy(update={"master": master}) if master else given
    free = _free_port(port)
    token = secrets.token_urlsafe(24)
    os.environ[_TOKEN] = token  # the JVM inherits it: a command line can be read by everybody
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    spark = session.build(_with_server(settings, free, FIXED_CONF), lake.store)
    try:
        made = table_catalog.register(spark, lake, table_catalog.NAMES)
        url = f"sc://localhost:{free}/;token={token}"
        with _noted(url, lake):
            print(f"export SPARK_REMOTE='{url}'", flush=True)
            print(
                f"{len(made)} tables of {lake.uri} are served on 127.0.0.1:{free}. Whoever has the "
                "token can run code as this user. ^C ends it.",
                file=sys.stderr,
                flush=True,
            )
            while not ended.wait(_LOOK_S):
                table_catalog.register(spark, lake, table_catalog.NAMES)
    finally:
        session.stop(spark)


def _with_server(settings: SparkSettings, port: int, fixed: dict[str, str]) -> SparkSettings:
    plugins = ["org.apache.spark.sql.connect.SparkConnectPlugin"]
    if users := settings.conf.get("spark.plugins"):
        plugins.append(users)
    conf = {
        **settings.conf,
        **fixed,
        "spark.plugins": ",".join(plugins),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.artifact.isolation.enabled": "true",
        "spark.sql.artifact.isolation.alwaysApplyClassloader": "true",
    }
    return settings.model_copy(update={"conf": conf})


def _free_port(port: int) -> int:
    """*port*, or any free one for 0; ConfigError where another process has it."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise ConfigError(
                f"Port {port} of 127.0.0.1 cannot be used: {error.strerror}. Give another: --port."
            ) from error
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def _noted(url: str, lake: Lake) -> Iterator[None]:
    """A file that says how this server is reached, which only this user can read."""
    directory = servers_directory()
    directory.mkdir(parents=True, exist_ok=True)
    file = Path(directory, f"{os.getpid()}.json")
    entry = {"url": url, "lake": lake.uri, "process": os.getpid()}
    file.unlink(missing_ok=True)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as out:
        json.dump(entry, out)
    try:
        yield
    finally:
        file.unlink(missing_ok=True)
