"""`acktrail agent`: read the configured sources into the lake."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import click

from acktrail.commands.options import open_lake, settings_options
from acktrail.errors import ConfigError
from acktrail.settings import Loaded

if TYPE_CHECKING:
    from ingest.agent import Agent
    from ingest.source import Source


@click.group(invoke_without_command=True)
@click.option("--once", is_flag=True, help="Read what is there, commit it and end.")
@settings_options
@click.pass_context
def command(ctx: click.Context, loaded: Loaded, once: bool) -> None:
    """Read evidence from the configured sources into the lake, each piece exactly once.

    Runs until SIGTERM or SIGINT, commits what it has read and ends. Started again, it goes on
    where the lake says; nothing else is kept.

    Example:

    \b
        acktrail agent --config acktrail.toml
        acktrail agent --once --lake ./lake
        acktrail agent status --lake ./lake
    """
    if ctx.invoked_subcommand is not None:
        return
    from acktrail import journal
    from ingest.lean import without_pandas

    without_pandas()
    journal.to_stderr()
    agent = _agent(loaded, once)
    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, lambda *_: agent.stop())
    _serve_metrics(loaded.settings.agent.metrics_address, agent)
    agent.run()
    for counts in agent.counts.values():
        dropped = ", ".join(f"{n} {reason}" for reason, n in sorted(counts.dropped.items()))
        click.echo(
            f"{counts.source}: {counts.received} received = {counts.written} written"
            f" + {sum(counts.dropped.values())} dropped{f' ({dropped})' if dropped else ''}",
            err=True,
        )


def sources_of(loaded: Loaded, once: bool) -> list[Source]:
    """Every configured source, built but not opened."""
    from ingest.registry import Surroundings, build_source

    settings = loaded.settings
    if not settings.sources:
        raise ConfigError(
            f"No source is configured: {loaded.file} has no [[sources]]. For example:\n"
            '  [[sources]]\n  kind = "log_files"\n  name = "orders"\n'
            '  paths = ["/var/log/orders/*.log"]'
        )
    names = [source.name for source in settings.sources]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(f"Two sources are called {', '.join(twice)}: positions go by the name.")
    return [
        build_source(s, Surroundings(s.cluster or settings.cluster, settings.kafka, once))
        for s in settings.sources
    ]


def _agent(loaded: Loaded, once: bool) -> Agent:
    from ingest.agent import Agent, Pace

    settings = loaded.settings.agent
    pace = Pace(
        settings.flush_s, int(settings.flush_mb * 1024 * 1024), poll_s=min(1.0, settings.flush_s)
    )
    return Agent(open_lake(loaded), sources_of(loaded, once), pace, once)


def _serve_metrics(address: str | None, agent: Agent) -> None:
    if address is None:
        return
    from prometheus_client import CollectorRegistry, start_http_server

    from ingest.counters import AgentMetrics

    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit():
        raise ConfigError(f"agent.metrics_address is host:port, not {address!r}.")
    registry = CollectorRegistry()
    registry.register(AgentMetrics(agent.counts.values()))
    try:
        start_http_server(int(port), host or "127.0.0.1", registry)
    except OSError as error:
        raise ConfigError(f"agent.metrics_address {address}: {error.strerror}.") from None
