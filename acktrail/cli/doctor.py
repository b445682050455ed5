"""`acktrail doctor`: does everything work that the settings name?"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from acktrail.errors import ConfigError
from acktrail.settings import Loaded
from acktrail.terminal.options import format_option, open_lake, settings_options
from acktrail.terminal.output import write_rows

if TYPE_CHECKING:
    from acktrail.lake.store import Store
    from acktrail.operate.probes.row import Probe, Row


@click.command()
@format_option
@settings_options
def command(loaded: Loaded, output: str) -> None:
    """Test every setting, source and receiver; report what fails and what to do.

    It reads from every source, connects to every receiver without sending an alert, and writes and
    removes a file in the lake. The state is ok, warning or failed. It takes at
    most 15 seconds; exit code 2 when something has failed.

    Example:

    \b
        acktrail doctor --config acktrail.toml
        acktrail doctor --lake ./lake --format json
    """
    from acktrail.operate.probes.clocks import clock_row
    from acktrail.operate.probes.row import FAILED
    from acktrail.operate.probes.together import run_probes

    probes = list(_probes(loaded))
    rows, clocks = run_probes(probes)
    if loaded.settings.sources or loaded.settings.alerts.alertmanager_urls:
        rows.append(clock_row(clocks))
    write_rows([row._asdict() for row in rows], ("what", "state", "remark"), output)
    if any(row.state == FAILED for row in rows):
        sys.exit(2)


def _probes(loaded: Loaded) -> Iterator[Probe]:
    from acktrail.operate.probes.machine import machine_probes
    from acktrail.operate.probes.row import OK, Probe, Row
    from acktrail.operate.probes.spark import cluster_probes
    from acktrail.operate.probes.web import receiver_probes

    settings = loaded.settings
    yield from machine_probes()
    yield Probe("settings", lambda: [Row("settings", OK, _settings(loaded))])
    yield _lake(loaded)
    yield from cluster_probes(settings.spark, _store(loaded))
    yield from _sources(loaded)
    yield from receiver_probes(settings.alerts)
    if settings.alerts.policy is not None:
        yield Probe("policy", lambda: [_policy(settings.alerts.policy or "")])


def _settings(loaded: Loaded) -> str:
    from acktrail.cli.run import job_options

    job_options(loaded)
    said = str(loaded.file) if loaded.file_found else "no file; `acktrail init` writes one"
    return f"{said} (cluster {loaded.settings.cluster})"


def _store(loaded: Loaded) -> Store | None:
    return open_lake(loaded).store if loaded.settings.lake.uri else None


def _lake(loaded: Loaded) -> Probe:
    from acktrail.operate.probes.row import WARNING, Probe, Row
    from acktrail.operate.probes.storage import lake_probe

    try:
        return lake_probe(open_lake(loaded))
    except ConfigError:
        said = "not named; give --lake URI or set lake.uri"
        return Probe("lake", lambda: [Row("lake", WARNING, said)])


def _sources(loaded: Loaded) -> Iterator[Probe]:
    from acktrail.operate.probes import files, kafka, row, web
    from acktrail.settings import sources as kinds

    settings = loaded.settings
    of_kafka = [source for source in settings.sources if source.kind in kafka.KINDS]
    if of_kafka or settings.kafka.bootstrap_servers:
        yield kafka.kafka_probe(settings.kafka, of_kafka)  # type: ignore[arg-type]
    for source in settings.sources:
        if isinstance(source, kinds.PrometheusSource):
            yield web.prometheus_probe(source)
        elif isinstance(source, kinds.ScrapeSource):
            yield web.scrape_probe(source)
        elif isinstance(
            source, kinds.LogFilesSource | kinds.LibrdkafkaStatsSource | kinds.VerifiableSource
        ):
            yield files.files_probe(source)
    if not settings.sources:
        said = "none is configured: `acktrail agent` has nothing to read. See `acktrail init`"
        yield row.Probe("sources", lambda: [row.Row("sources", row.WARNING, said)])


def _policy(path: str) -> Row:
    """Whether it can be read. Great Expectations, which knows the checks, starts too slowly."""
    from acktrail.operate.probes.row import OK, WARNING, Row

    try:
        from acktrail.policy import read_policy

        policy = read_policy(Path(path))
    except ModuleNotFoundError:
        return Row("policy", WARNING, "not read here: it needs pip install 'acktrail[checks]'")
    without = ", ".join(policy.not_collected) or "nothing"
    said = f"{path}: not collected: {without}. `acktrail check` verifies the names of checks in it"
    return Row("policy", OK, said)
