"""`acktrail lab`: a real Kafka cluster on loopback, real faults, and the truth."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from acktrail.errors import AcktrailError, LabError, UsageError

if TYPE_CHECKING:
    from lab.scenario import Scenario
    from lab.truth import Truth

_KAFKA = click.option(
    "--kafka", "version", default="4.3.1", show_default=True, help="Kafka to run: 4.3.1 or 3.9.2."
)
_CLIENTS = click.option(
    "--clients",
    default="verifiable",
    show_default=True,
    metavar="verifiable|python|java-interceptor|java-wrapper",
    help="What runs in place of the scenario's clients: `verifiable` leaves them; the others are "
    "audited clients, which report to an audit topic on the cluster.",
)


@click.group("lab")
def command() -> None:
    """A real Kafka cluster on loopback, real faults, and the truth about every message.

    Example:

    \b
        acktrail lab list
        acktrail lab run lost-ack --keep ./lost-ack
        acktrail lab up && acktrail lab status && acktrail lab down
    """


@command.command()
@_KAFKA
def up(version: str) -> None:
    """Start three brokers and leave them running.

    Example:

    \b
        acktrail lab up --kafka 3.9.2
    """
    from lab import keeper

    state = keeper.bring_up(version)
    click.echo(f"Kafka {state['kafka']} is up; stop it with `acktrail lab down`.", err=True)
    click.echo(state["bootstrap"])


@command.command()
def down() -> None:
    """Stop the brokers and remove everything they left.

    Example:

    \b
        acktrail lab down
    """
    from lab import keeper

    was_up = keeper.take_down()
    click.echo("The cluster is down." if was_up else "No cluster was up.", err=True)


@command.command()
def status() -> None:
    """Show whether each broker is up, and where; exit code 1 unless all are.

    A broker is up if its process runs and it answers a request.

    Example:

    \b
        acktrail lab status
    """
    from lab import keeper

    state = keeper.running()
    if state is None:
        click.echo("No cluster is up.", err=True)
        sys.exit(1)
    click.echo(f"Kafka {state['kafka']}, bootstrap {state['bootstrap']}")
    conditions = [keeper.condition(broker) for broker in state["brokers"]]
    for broker, condition in zip(state["brokers"], conditions, strict=True):
        click.echo(
            f"  broker {broker['id']}  {condition:<5}  pid {broker['pid']}  "
            f"direct 127.0.0.1:{broker['direct_port']}  "
            f"metrics 127.0.0.1:{broker['exporter_port']}/metrics  logs {broker['logs']}"
        )
    if set(conditions) != {"up"}:
        sys.exit(1)


@command.command()
@click.argument("broker", type=click.IntRange(1, 3), default=1)
@click.option("--lines", default=20, show_default=True, help="How many, from the end.")
def logs(broker: int, lines: int) -> None:
    """Print the end of a broker's server.log.

    Example:

    \b
        acktrail lab logs 2 --lines 50
    """
    from lab import keeper

    state = keeper.running()
    if state is None:
        raise LabError("no cluster is up. Start one with `acktrail lab up`.")
    log = Path(state["brokers"][broker - 1]["logs"], "server.log")
    for line in log.read_text(errors="replace").splitlines()[-lines:]:
        click.echo(line)


@command.command("list")
def list_() -> None:
    """List the scenarios and what each answers.

    Example:

    \b
        acktrail lab list
    """
    from lab.scenarios import SCENARIOS

    width = max(len(scenario.name) for scenario in SCENARIOS)
    for scenario in SCENARIOS:
        click.echo(f"{scenario.name:<{width}}  {scenario.question}")


@command.command("run")
@click.argument("names", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Run every scenario.")
@click.option("--table", is_flag=True, help="Print a Markdown table of what became of messages.")
@click.option("--keep", type=click.Path(path_type=Path), help="Keep the evidence here, by name.")
@_CLIENTS
@_KAFKA
def run(
    names: tuple[str, ...],
    everything: bool,
    table: bool,
    keep: Path | None,
    clients: str,
    version: str,
) -> None:
    """Run scenarios, each on a fresh cluster, and say whether each ended as expected.

    Example:

    \b
        acktrail lab run lost-ack lost-ack-idempotent --table
        acktrail lab run --all --keep ./evidence
        acktrail lab run unclean-election --clients python --keep ./audited
    """
    from lab import outcome

    if everything == bool(names):
        raise UsageError("name scenarios, or give --all. `acktrail lab list` has their names.")
    done: list[tuple[Scenario, Truth]] = []
    unexpected: list[str] = []
    for scenario in _chosen(names, clients):
        target = keep / scenario.name if keep is not None else None
        try:
            truth = _run_one(scenario, version, target)
        except AcktrailError as error:
            unexpected.append(f"{scenario.name}: {error}")
            click.echo(f"{scenario.name}: did not end: {error}", err=True)
            continue
        done.append((scenario, truth))
        found = outcome.differences(scenario, truth)
        unexpected += [f"{scenario.name}: {each}" for each in found]
        click.echo(f"{scenario.name}: {'; '.join(found) or 'as expected'}", err=not table)
    if table:
        click.echo(outcome.table(done), nl=False)
    if unexpected:
        raise LabError("not as expected:\n  " + "\n  ".join(unexpected))


@command.command("table")
@click.argument("runs", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
def table_(runs: tuple[Path, ...]) -> None:
    """Print the Markdown table of runs whose evidence was kept.

    Example:

    \b
        acktrail lab table ./evidence/lost-ack ./evidence/lost-ack-idempotent
    """
    from lab import outcome
    from lab.truth import establish

    truths = {truth.name: truth for truth in map(establish, runs)}
    scenarios = [each for each in _chosen(()) if each.name in truths]
    click.echo(outcome.table((each, truths[each.name]) for each in scenarios), nl=False)


@command.command("record")
@click.argument("name")
@click.argument("out", type=click.Path(path_type=Path))
@_CLIENTS
@_KAFKA
def record_(name: str, out: Path, clients: str, version: str) -> None:
    """Run a scenario and keep its evidence and truth as a compact, scrubbed directory.

    Example:

    \b
        acktrail lab record demo-incident ./incident
    """
    from lab.record import record
    from lab.scratch import new_scratch

    (scenario,) = _chosen((name,), clients)
    evidence = new_scratch("record")
    try:
        _run_one(scenario, version, evidence)
        size = record(evidence, out)
    finally:
        shutil.rmtree(evidence, ignore_errors=True)
    click.echo(f"{out}: {size / 1e6:.1f} MB", err=True)


def _chosen(names: tuple[str, ...], clients: str = "verifiable") -> list[Scenario]:
    from lab.client_choice import with_clients
    from lab.scenarios import SCENARIOS

    known = {scenario.name: scenario for scenario in SCENARIOS}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UsageError(f"no scenario is called {', '.join(unknown)}. See `acktrail lab list`.")
    chosen = [known[name] for name in names] if names else SCENARIOS
    return [with_clients(scenario, clients) for scenario in chosen]


def _run_one(scenario: Scenario, version: str, keep: Path | None) -> Truth:
    """Run on a fresh cluster; the evidence goes to *keep*, or nowhere."""
    from lab.cluster import cluster
    from lab.run import Run
    from lab.scratch import new_scratch

    evidence = keep if keep is not None else new_scratch("evidence")
    if keep is not None and keep.exists() and any(keep.iterdir()):
        raise UsageError(f"{keep} is not empty. Name a new directory.")
    evidence.mkdir(parents=True, exist_ok=True)
    click.echo(f"{scenario.name}: {scenario.question}", err=True)
    try:
        with cluster(version) as nodes:
            return Run(scenario, nodes, evidence).perform()
    finally:
        if keep is None:
            shutil.rmtree(evidence, ignore_errors=True)


def _kept_run(place: Path, clients: str) -> Path | None:
    """The run kept at *place*; None where there is none, refused where its truth is not whole."""
    if not place.exists():
        return None
    for name in ("truth.json", "truth.jsonl"):
        if not (place / "truth" / name).is_file():
            raise LabError(
                f"{place}: no whole run, truth/{name} is missing. "
                "Unpack it there, or remove the directory to have the scenario run again."
            )
    had = json.loads((place / "scenario.json").read_text()).get("clients", "verifiable")
    if had != clients:
        raise UsageError(f"{place} is a run with the clients {had}: score it with --clients {had}.")
    return place


@command.command("score")
@click.argument("names", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Score every scenario.")
@click.option(
    "--evidence",
    "kept",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Kept runs, by name (`lab run --keep`); a scenario that is not there is run first.",
)
@click.option("--page", type=click.Path(path_type=Path), help="Write the table into this page.")
@click.option(
    "--lake",
    "lake_kept",
    type=click.Path(path_type=Path),
    help="Make the lake there and keep it, to be asked further.",
)
@click.option(
    "--variants",
    is_flag=True,
    help="Score what less evidence, wrong clocks and an early question make of each run.",
)
@click.option(
    "--results",
    type=click.Path(path_type=Path, file_okay=False),
    help="With --variants: keep each score here, so that an interrupted run goes on.",
)
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text")
@_CLIENTS
@_KAFKA
def score_(
    names: tuple[str, ...],
    everything: bool,
    kept: Path | None,
    page: Path | None,
    lake_kept: Path | None,
    variants: bool,
    results: Path | None,
    output: str,
    clients: str,
    version: str,
) -> None:
    """Put scenarios' evidence through the pipeline and compare the answers with the truth.

    Example:

    \b
        acktrail lab run --all --keep ./evidence
        acktrail lab score --all --evidence ./evidence --format json
        acktrail lab score --all --evidence ./evidence --lake ./scored
        acktrail lab score --all --clients python --evidence ./audited
        acktrail lab score --all --variants --evidence ./evidence --results ./variant-scores
    """
    from acktrail.operate.lab_score import put_through, write_scores
    from acktrail.operate.lab_variants import score_variants, write_variants
    from lab.scratch import new_scratch

    if everything == bool(names):
        raise UsageError("name scenarios, or give --all. `acktrail lab list` has their names.")
    if lake_kept is not None and variants:
        raise UsageError("--variants keeps no lake: leave out --lake.")
    if variants and clients != "verifiable":
        raise UsageError(
            "--variants takes runs of the scenario's own clients: leave out --clients."
        )
    if results is not None and not variants:
        raise UsageError("--results keeps the scores of --variants: give that too.")
    if lake_kept is not None and lake_kept.exists():
        raise UsageError(f"{lake_kept} is there already. Give the name of a new directory.")
    scratch = new_scratch("score")
    try:
        places = {}
        for scenario in _chosen(names, clients):
            place = None if kept is None else _kept_run(kept / scenario.name, clients)
            if place is None:
                place = scratch / scenario.name
                _run_one(scenario, version, place)
            places[scenario.name] = place
        if variants:
            found = score_variants(places, results or scratch / "results", scratch)
            write_variants(found, output, page)
        else:
            write_scores(put_through(places, lake_kept or scratch / "lake"), output, page)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
