"""`acktrail budgets`: which retries are about to run out, the most urgent first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from acktrail.settings import Loaded
from acktrail.terminal.options import (
    above_zero,
    as_of_option,
    format_option,
    lake_to_ask,
    settings_options,
)
from acktrail.terminal.output import seconds_until, write_line, write_rows

if TYPE_CHECKING:
    from acktrail.retries.fleet import Burning
    from acktrail.retries.producer_budgets import ProducerBudgets

_BATCHES = (
    *("state", "ends_in_s", "client", "where", "error", "broker", "left", "stake", "because"),
)
_SUMMARY = (
    *("state", "ends_in_s", "client_id", "host", "topic", "error", "batches"),
    "records_at_stake",
)
_FULL_SUMMARY = (
    *("state", "ends_in_s", "cluster", "host", "client_id", "topic", "error", "batches"),
    *("partitions", "brokers", "records_at_stake", "attempts_left", "exhausts_at_earliest"),
    "what_to_do",
)
_FULL_BATCHES = (
    "state", "ends_in_s", "cluster", "host", "client_id", "topic", "partition", "chain",
    "opened_at", "opened_by", "last_at", "quiet_at", "events", "retries", "attempts_left",
    "delivery_timeout_ms", "exhausts_at_earliest", "exhausts_at_latest", "exhausted_by",
    "confidence", "error", "retriable", "category", "node", "records_at_stake", "ended_at",
    "ended_by", "because", "unknown", "evidence",
)  # fmt: skip


@click.command()
@click.option("--all", "everything", is_flag=True, help="Also budgets that have ended.")
@click.option("--batches", is_flag=True, help="One line per batch instead, with its proof.")
@click.option(
    "--fleet",
    is_flag=True,
    help="By broker and error: burn rates of each producer, and what brokers report.",
)
@click.option(
    "--hours",
    default=24.0,
    show_default=True,
    callback=above_zero,
    help="How far back chains are read.",
)
@click.option("--policy", metavar="FILE", help="Thresholds; else the file `alerts.policy` names.")
@as_of_option
@format_option
@settings_options
def command(
    loaded: Loaded,
    everything: bool,
    batches: bool,
    fleet: bool,
    hours: float,
    policy: str | None,
    as_of: datetime,
    output: str,
) -> None:
    """List the producers that retry, most urgent first: one line per producer, topic and error.

    `ends_in_s` counts down to the earliest possible expiry of the first batch. A line is critical
    where the check `retry_budget_left` fails, with the same policy. No JVM is started.

    The exit code is 0 only where the question could be answered: 2 where the lake has no client
    logs or metrics, or `acktrail run` has not read them yet.

    Example:

    \b
        acktrail budgets --lake ./lake
        acktrail budgets --lake ./lake --batches
        acktrail budgets --lake ./lake --as-of 2026-01-31T12:00Z --all --format json
        acktrail budgets --lake ./lake --fleet
    """
    from acktrail.answers.budgets import (
        look_back,
        missing_evidence,
        read_budgets,
        read_fronts,
        require_retry_evidence,
    )
    from acktrail.policy import read_policy
    from acktrail.retries.producer_budgets import OVER, by_producer
    from acktrail.terminal.fleet_lines import write_fleet

    named = policy or loaded.settings.alerts.policy
    decided = read_policy(Path(named) if named else None)
    lake = lake_to_ask(loaded)
    require_retry_evidence(lake)
    since = look_back(as_of, hours)
    found = read_budgets(lake, since, as_of, decided)
    missing = None if found else missing_evidence(lake, since, as_of)
    if missing is not None:
        click.echo(missing, err=True)
    if missing is not None and output == "text":
        return
    if fleet:
        write_fleet(read_fronts(lake, found, as_of), as_of, output)
        return
    listed = found if everything else [b for b in found if b.state(as_of) not in OVER]
    if output == "text" and not listed:
        click.echo("No producer is close to exhausting its retries.")
    elif batches:
        _write_batches(listed, as_of, output)
    else:
        _write_summary(by_producer(listed, as_of), as_of, output)


def _write_summary(listed: Sequence[ProducerBudgets], as_of: datetime, output: str) -> None:
    rows = [
        {
            **asdict(one),
            "state": one.state.value,
            "ends_in_s": seconds_until(one.exhausts_at_earliest, as_of),
        }
        for one in listed
    ]
    if output != "text":
        write_rows(rows, _FULL_SUMMARY, output)
        return
    several = len({one.cluster for one in listed}) > 1
    shown = [{**row, "error": row["error"] or "no answer"} for row in rows]
    write_rows(shown, ("cluster", *_SUMMARY) if several else _SUMMARY)
    click.echo("\nWhat to do:")
    for advice in dict.fromkeys(one.what_to_do for one in listed):
        about = dict.fromkeys(_about(one) for one in listed if one.what_to_do == advice)
        write_line("- ", f"{', '.join(about)}: {advice}")


def _about(one: ProducerBudgets) -> str:
    from acktrail.retries.fleet import BURNING

    return (one.error or "no answer") if one.state in BURNING else one.state.value


def _write_batches(listed: Sequence[Burning], as_of: datetime, output: str) -> None:
    from acktrail.retries.state import urgency

    ordered = sorted(listed, key=lambda b: urgency(b.budget, as_of, b.thresholds))
    columns = _BATCHES if output == "text" else _FULL_BATCHES
    write_rows([_row(b, as_of) for b in ordered], columns, output)


def _row(one: Burning, as_of: datetime) -> dict[str, Any]:
    budget = one.budget
    place = f"{budget.topic}-{budget.partition}" if budget.topic else ""
    said = budget.because if budget.unknown is None else f"{budget.because} ({budget.unknown})"
    return {
        **asdict(budget),
        "state": one.state(as_of).value,
        "ends_in_s": seconds_until(budget.exhausts_at_earliest, as_of),
        "cluster": one.cluster,
        "host": one.host,
        "client_id": one.client_id,
        "client": f"{one.client_id}@{one.host}" if one.host else one.client_id,
        "where": place,
        "broker": budget.node,
        "left": budget.attempts_left,
        "stake": budget.records_at_stake,
        "because": said,
    }
