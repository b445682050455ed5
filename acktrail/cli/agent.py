"""`acktrail agent`: read the configured sources into the lake."""

from __future__ import annotations

import signal
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from acktrail.errors import ConfigError
from acktrail.terminal.options import format_option, lake_to_keep, open_lake, settings_options

if TYPE_CHECKING:
    from acktrail.settings import Loaded
    from ingest.agent.loop import Agent
    from ingest.agent.states import SourcePlace
    from ingest.source import Source

_STATUS = (
    *("source", "kind", "state", "state_since", "position", "lag", "lag_unit", "received"),
    *("written", "dropped", "balances", "received_last_hour", "last_commit_at", "since"),
    *("reported_at", "agent", "notes"),
)
_TEXT = (
    *("source", "kind", "state", "state_since", "lag", "received_last_hour", "last_commit_at"),
    "notes",
)


_READERS = ("cluster_state", "log_scan")
"""Sources that read the lake's rows to know what is new."""


@click.group(invoke_without_command=True)
@click.option("--once", is_flag=True, help="Read what is there, commit it and end.")
@settings_options
@click.pass_context
def command(ctx: click.Context, loaded: Loaded, once: bool) -> None:
    """Read evidence from the configured sources into the lake, each piece exactly once.

    Runs until SIGTERM or SIGINT, then commits what it has read and ends. After a restart it reads
    on from the positions that are stored in the lake.

    Example:

    \b
        acktrail agent --config acktrail.toml
        acktrail agent --once --lake ./lake
        acktrail agent status --lake ./lake
    """
    if ctx.invoked_subcommand is not None:
        return
    from acktrail.terminal import journal
    from ingest.agent.lean import small_pools, without_pandas

    small_pools()
    without_pandas(reading=any(s.kind in _READERS for s in loaded.settings.sources))
    journal.to_stderr()
    agent = _agent(loaded, once)
    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, lambda *_: agent.stop())
    _serve_metrics(loaded.settings.agent.metrics_address, agent)
    try:
        agent.run()
    finally:
        _print_accounts(agent)


def _print_accounts(agent: Agent) -> None:
    for counts in agent.counts.values():
        dropped = ", ".join(f"{n} {reason}" for reason, n in sorted(counts.dropped.items()))
        click.echo(
            f"{counts.source}: {counts.received} received = {counts.written} written"
            f" + {sum(counts.dropped.values())} dropped{f' ({dropped})' if dropped else ''}",
            err=True,
        )


@command.command()
@format_option
@settings_options
def status(loaded: Loaded, output: str) -> None:
    """Show for every source its state, lag, and how many records were received.

    State, error and notes are what the agents last wrote to the lake. `never run`: no agent has
    ever reported this source; `silent`: its agent stopped reporting. Counts come from the commits
    in the lake; position and lag are asked from the sources now. `--format json` and `csv` also
    have positions, counts of dropped records, and agents.

    Example:

    \b
        acktrail agent status --lake ./lake
        acktrail agent status --format json | jq 'select(.balances | not)'
    """
    from acktrail.operate.agent_status import status_rows
    from acktrail.terminal.output import write_rows
    from ingest.agent.lean import without_pandas

    without_pandas(reading=True)
    lake = lake_to_keep(loaded)
    rows = status_rows(loaded.settings, sources_of(loaded, once=False), lake, datetime.now(UTC))
    if output != "text":
        write_rows(rows, _STATUS, output)
        return
    lags = ["" if r["lag"] is None else f"{r['lag']:g} {r['lag_unit']}" for r in rows]
    write_rows([{**r, "lag": lag} for r, lag in zip(rows, lags, strict=True)], _TEXT)


def sources_of(loaded: Loaded, once: bool) -> list[Source]:
    """Every configured source, built but not opened."""
    from ingest.registry import SourceContext, hosted_source

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
        hosted_source(s, SourceContext(s.cluster or settings.cluster, settings.kafka, once))
        for s in settings.sources
    ]


def places_of(loaded: Loaded) -> dict[str, SourcePlace]:
    """What `source_states` says of every configured source beside its name."""
    from ingest.agent.states import place_of

    settings = loaded.settings
    return {s.name: place_of(s, settings.cluster) for s in settings.sources}


def _agent(loaded: Loaded, once: bool) -> Agent:
    from ingest.agent.loop import Agent
    from ingest.agent.reading import Pace
    from ingest.agent.writer import this_process

    settings = loaded.settings.agent
    pace = Pace(
        settings.flush_s, int(settings.flush_mb * 1024 * 1024), poll_s=min(1.0, settings.flush_s)
    )
    return Agent(
        open_lake(loaded),
        sources_of(loaded, once),
        pace,
        once,
        writer=this_process("agent --once" if once else "agent"),
        places=places_of(loaded),
    )


def _serve_metrics(address: str | None, agent: Agent) -> None:
    if address is None:
        return
    from prometheus_client import CollectorRegistry, start_http_server

    from ingest.agent.own_metrics import AgentMetrics

    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit():
        raise ConfigError(f"agent.metrics_address is host:port, not {address!r}.")
    registry = CollectorRegistry()
    registry.register(AgentMetrics(agent.counts.values()))
    try:
        start_http_server(int(port), host or "127.0.0.1", registry)
    except OSError as error:
        raise ConfigError(f"agent.metrics_address {address}: {error.strerror}.") from None
