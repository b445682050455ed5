"""`acktrail exporter`: the lake's answers as Prometheus metrics."""

from __future__ import annotations

import signal
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from acktrail.errors import ConfigError, SourceUnavailable
from acktrail.settings import Loaded
from acktrail.terminal.options import open_lake, settings_options
from acktrail.window import instant

if TYPE_CHECKING:
    from acktrail.pages.lake_metrics import LakeMetrics

_LISTEN = "127.0.0.1:9766"


@click.command()
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default=_LISTEN,
    show_default=True,
    help="Where /metrics is served.",
)
@click.option(
    "--textfile",
    metavar="FILE.prom",
    help="Write the metrics to a file for node_exporter, once, and end.",
)
@click.option(
    "--top",
    type=click.IntRange(1, 10_000),
    default=50,
    show_default=True,
    help="Topics, clients and sources that get a series of their own; the rest is `other`.",
)
@click.option("--policy", metavar="FILE", help="Thresholds; else the file `alerts.policy` names.")
@click.option(
    "--as-of", metavar="TIME", help="The moment asked about, for a lake of the past; else now."
)
@settings_options
def command(
    loaded: Loaded,
    listen: str,
    textfile: str | None,
    top: int,
    policy: str | None,
    as_of: str | None,
) -> None:
    """Serve what the lake knows as Prometheus metrics, until SIGTERM or SIGINT.

    The lake is read only where it has changed since the last scrape, and no JVM is started. What is
    not known is NaN or absent, never 0: `acktrail_lake_up` is 0 where the lake cannot be read, and
    then no answer is shown. --textfile exits with 75 in that case.

    Example:

    \b
        acktrail exporter --lake ./lake
        acktrail exporter --lake ./lake --listen 0.0.0.0:9766
        acktrail exporter --lake ./lake --textfile /var/lib/node_exporter/acktrail.prom
    """
    from acktrail.pages.lake_metrics import LakeMetrics, write_textfile
    from acktrail.policy import read_policy
    from acktrail.terminal import journal

    journal.to_stderr()
    named = policy or loaded.settings.alerts.policy
    decided = read_policy(Path(named) if named else None)
    lake = open_lake(loaded)
    moment = instant(as_of) if as_of else None
    metrics = LakeMetrics(lake, decided, top, lambda: moment or datetime.now(UTC))
    if textfile is None:
        _serve(metrics, listen)
        return
    path = Path(textfile)
    if path.suffix != ".prom":
        raise ConfigError(f"--textfile {path}: node_exporter reads files named *.prom only.")
    write_textfile(metrics, path)
    if not metrics.up:
        raise SourceUnavailable(f"Not every answer could be read; {path} says so.")


def _serve(metrics: LakeMetrics, listen: str) -> None:
    from acktrail.pages.lake_metrics import serve

    host, colon, port = listen.rpartition(":")
    if not colon or not port.isdigit() or not 0 < int(port) < 65_536:
        raise ConfigError(f"--listen is HOST:PORT, for example {_LISTEN}, not {listen!r}.")
    ended = threading.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, lambda *_: ended.set())
    stop = serve(metrics, host.strip("[]") or "127.0.0.1", int(port))
    click.echo(f"Serving http://{listen}/metrics", err=True)
    ended.wait()
    stop()
