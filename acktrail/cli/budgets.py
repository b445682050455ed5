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
from acktrail.terminal.output import seconds_until, write_rows

if TYPE_CHECKING:
    from acktrail.retries.fleet import Burning

_TEXT = ("state", "ends_in_s", "client", "where", "error", "broker", "left", "stake", "because")
_FULL = (
    "state", "ends_in_s", "cluster", "host", "client_id", "topic", "partition", "chain",
    "opened_at", "opened_by", "last_at", "quiet_at", "events", "retries", "attempts_left",
    "delivery_timeout_ms", "exhausts_at_earliest", "exhausts_at_latest", "exhausted_by",
    "confidence", "error", "retriable", "category", "node", "records_at_stake", "ended_at",
    "ended_by", "because", "unknown", "evidence",
)  # fmt: skip


@click.command()
@click.option("--all", "everything", is_flag=True, help="Also budgets that have ended.")
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
    fleet: bool,
    hours: float,
    policy: str | None,
    as_of: datetime,
    output: str,
) -> None:
    """List the retry budgets that are being used up, the most urgent first.

    `ends_in_s` counts down to the earliest possible expiry. A budget is critical where the check
    `retry_budget_left` fails, with the same policy. No JVM is started. The exit code is
    0 only where the question could be answered: 2 where the lake has no client logs or metrics,
    or `acktrail run` has not read them yet.

    Example:

    \b
        acktrail budgets --lake ./lake
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
    _print(found, as_of, everything, output)


def _print(found: Sequence[Burning], as_of: datetime, everything: bool, output: str) -> None:
    from acktrail.retries.state import BudgetState, urgency

    over = {BudgetState.RECOVERED, BudgetState.RESTARTED, BudgetState.ENDED_UNKNOWN}
    listed = sorted(found, key=lambda b: urgency(b.budget, as_of, b.thresholds))
    if not everything:
        listed = [b for b in listed if b.state(as_of) not in over]
    if output == "text" and not listed:
        click.echo("No producer is close to exhausting its retries.")
        return
    columns = _TEXT if output == "text" else _FULL
    write_rows([_row(b, as_of) for b in listed], columns, output)


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
