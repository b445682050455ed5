"""`acktrail demo`: a recorded real incident through everything, offline."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from acktrail.cli.run import SparkOnDemand, job_options
from acktrail.errors import ChecksFailed
from acktrail.settings import Loaded, load

if TYPE_CHECKING:
    from acktrail.lake import Lake
    from pipelines.job import Job

CLUSTER = "demo"


def incident() -> Path:
    """The recording that ships with acktrail: real brokers, real producers, real faults."""
    return Path(__file__).parent.parent / "demo" / "incident"


@click.command()
@click.option("--lake", metavar="DIR", help="Keep the lake here; else it is removed at the end.")
@click.option(
    "--html",
    metavar="FILE",
    default="acktrail-demo.html",
    show_default=True,
    help="Where the report is written.",
)
def command(lake: str | None, html: str) -> None:
    """Take a recorded incident from raw evidence to the alert a person would read.

    The evidence was recorded on a real three-broker cluster with real faults: an acks=1 leader
    crash, a producer that gave up, one about to run out of retries, and one that is fine. Needs
    Java, but no Kafka and no network.

    Example:

    \b
        acktrail demo
        acktrail demo --lake ./demo-lake   # then: acktrail sql --lake ./demo-lake "SELECT ..."
    """
    kept = lake or tempfile.mkdtemp(prefix="acktrail-demo-")
    try:
        show(load(None, [f"lake.uri={kept}", f"cluster={CLUSTER}"], environment={}), Path(html))
    finally:
        if not lake:
            shutil.rmtree(kept, ignore_errors=True)
    if not lake:
        click.echo("\nTo keep the lake and ask it yourself: acktrail demo --lake ./demo-lake")


def show(loaded: Loaded, html: Path) -> None:
    """Replay, run, and answer, step by step; *html* is where the report goes."""
    from acktrail.terminal.options import open_lake

    began = time.monotonic()
    lake = open_lake(loaded)
    as_of = recorded_until(incident())
    counts = _step("1. Evidence in: the agents' sources read the recording", _ingest, lake)
    for table, rows in sorted(counts.items()):
        click.echo(f"   {rows:>7,} rows  {table}")
    _step("2. Facts and answers: the Spark jobs", _run, loaded, lake, as_of)
    _heading(f"3. Which messages were lost, as of {as_of:%Y-%m-%dT%H:%M:%SZ}")
    _answer("losses", "--lake", lake.uri)
    _heading("4. Who is about to run out of retries")
    _answer("budgets", "--lake", lake.uri, "--as-of", as_of.isoformat())
    _heading("5. The checks that failed")
    _answer("check", "--lake", lake.uri, "--as-of", as_of.isoformat())
    _heading("6. The same to look at")
    _report(lake, as_of, html)
    click.echo(f"\nDone in {time.monotonic() - began:.0f} s.")


def _report(lake: Lake, as_of: datetime, html: Path) -> None:
    """Write the report, and name the address that a browser opens."""
    since = recorded_from(incident()).isoformat()
    _answer("report", "--lake", lake.uri, "--html", str(html), "--since", since,
            "--as-of", as_of.isoformat())  # fmt: skip
    click.echo(f"\nOpen it in a browser: {html.absolute().as_uri()}")


def recorded_from(evidence: Path) -> datetime:
    """The moment the recording begins."""
    described = json.loads((evidence / "scenario.json").read_text(encoding="utf-8"))
    return datetime.fromtimestamp(described["began_at_ms"] / 1000, UTC)


def recorded_until(evidence: Path) -> datetime:
    """The moment the recording ends: the demo asks its questions then."""
    described = json.loads((evidence / "scenario.json").read_text(encoding="utf-8"))
    return datetime.fromtimestamp(described["ended_at_ms"] / 1000, UTC)


def _ingest(lake: Lake) -> dict[str, int]:
    from ingest.replay import replay

    return dict(replay(incident(), lake, CLUSTER))


def _run(loaded: Loaded, lake: Lake, as_of: datetime) -> None:
    from pipelines import runner
    from pipelines.registry import JOBS
    from pipelines.schedule import run_all

    options = job_options(loaded)
    with SparkOnDemand(loaded) as spark:

        def run_one(job: Job) -> None:
            done = runner.run(job, lake, spark, as_of, options)
            said = "nothing new" if done.nothing_new else f"{done.rows_out:,} rows"
            click.echo(f"   {job.name:<22} {said}")

        run_all(JOBS, run_one)


def _step(title: str, act: Callable[..., Any], *given: Any) -> Any:
    _heading(title)
    return act(*given)


def _heading(title: str) -> None:
    click.echo(f"\n{title}")
    sys.stdout.flush()


def _answer(name: str, *arguments: str) -> None:
    """Run another command as a user would, and say its command line."""
    from acktrail.cli import main

    click.echo(f"   $ acktrail {name} {' '.join(arguments)}\n")
    try:
        main.main([name, *arguments], standalone_mode=False)
    except ChecksFailed as error:
        click.echo(f"\n{error}")
    except SystemExit as ended:
        if ended.code not in (0, 1):
            raise
