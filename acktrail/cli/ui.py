"""`acktrail ui`: the live page."""

from __future__ import annotations

import ipaddress
import secrets
from datetime import datetime
from pathlib import Path

import click

from acktrail.settings import Loaded
from acktrail.terminal.options import lake_to_ask, settings_options
from acktrail.window import instant

_ANY = ("0.0.0.0", "::")


@click.command()
@click.option("--host", help="Address to listen on; else `ui.host`, which is 127.0.0.1.")
@click.option("--port", type=click.IntRange(0, 65535), help="Port; else `ui.port`, which is 8087.")
@click.option("--policy", metavar="FILE", help="Thresholds; else the file `alerts.policy` names.")
@click.option("--as-of", metavar="TIME", help="Show budgets and checks as of TIME; default: now.")
@settings_options
def command(
    loaded: Loaded, host: str | None, port: int | None, policy: str | None, as_of: str | None
) -> None:
    """Serve live pages: producers, incidents, budgets, groups, coverage and checks. Read-only.

    It listens on loopback. On any other address every request needs a token: that of `ui.token`, or
    one that is made for this run and printed with the address. Filters and the range of time are in
    the address of each page. No JVM is started. Ctrl-C ends it.

    Example:

    \b
        acktrail ui --lake ./lake
        acktrail ui --lake ./lake --port 9000
        acktrail ui --lake ./lake --host 0.0.0.0
    """
    import uvicorn

    from acktrail.pages.live_server import live_app
    from acktrail.policy import read_policy

    settings = loaded.settings.ui
    listen = host or settings.host
    named = policy or loaded.settings.alerts.policy
    lake = lake_to_ask(loaded)
    held: datetime | None = instant(as_of) if as_of else None
    token = settings.token.get_secret_value() if settings.token else None
    if token is None and not is_loopback(listen):
        token = secrets.token_urlsafe(24)
    decided = read_policy(Path(named) if named else None)
    app = live_app(lake, decided, hosts_of(listen), token, held)
    config = uvicorn.Config(
        app, host=listen, port=settings.port if port is None else port, log_level="warning",
        access_log=False, limit_concurrency=64, server_header=False,
    )  # fmt: skip
    server = uvicorn.Server(config)
    socket = config.bind_socket()
    shown = "127.0.0.1" if listen in _ANY else f"[{listen}]" if ":" in listen else listen
    address = f"http://{shown}:{socket.getsockname()[1]}/"
    made = f"?token={token}" if token and not settings.token else ""
    click.echo(f"{lake.uri} is at {address}{made}")
    click.echo("Ctrl-C ends it.", err=True)
    server.run(sockets=[socket])


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach *host*."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def hosts_of(listen: str) -> list[str]:
    """The names by which requests may ask for what listens on *listen*."""
    if not is_loopback(listen):
        return ["*"]  # who asks needs the token
    return ["localhost", "127.0.0.1", "[::1]", listen]
