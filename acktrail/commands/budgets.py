"""`acktrail budgets`: which retries are about to run out, the most urgent first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from acktrail.commands.options import as_of_option, format_option, lake_to_ask, settings_options
from acktrail.output import write_rows
from acktrail.settings import Loaded

if TYPE_CHECKING:
    from pipelines.rules.fleet import Burning, Front

_TEXT = ("state", "ends_in_s", "client", "where", "error", "broker", "left", "stake", "because")
_FULL = (
    "state", "ends_in_s", "cluster", "host", "client_id", "topic", "partition", "chain",
    "opened_at", "opened_by", "last_at", "quiet_at", "events", "retries", "attempts_left",
    "delivery_timeout_ms", "exhausts_at_earliest", "exhausts_at_latest", "exhausted_by",
    "confidence", "error", "retriable", "category", "node", "records_at_stake", "ended_at",
    "ended_by", "because", "unknown", "evidence",
)  # fmt: skip
_FLEET = (
    "cluster", "broker", "error", "producers", "chains", "critical", "first_exhausts_in_s",
    "records_at_stake", "retries_5m_per_s", "retries_1h_per_s", "errors_5m_per_s",
    "errors_1h_per_s", "failed_produce_5m_per_s", "failed_produce_1h_per_s",
    "answered_5m_per_s", "answered_1h_per_s", "under_min_isr", "sentence",
)  # fmt: skip


@click.command()
@click.option("--all", "everything", is_flag=True, help="Also those that are over.")
@click.option("--fleet", is_flag=True, help="One line per broker and error, with burn rates.")
@click.option("--hours", default=24.0, show_default=True, help="How far back chains are read.")
@as_of_option
@format_option
@settings_options
def command(
    loaded: Loaded, everything: bool, fleet: bool, hours: float, as_of: datetime, output: str
) -> None:
    """List the retry budgets that burn, most urgent first.

    `ends_in_s` counts to the early end: a warning that comes late is none. No JVM is started.

    Example:

    \b
        acktrail budgets --lake ./lake
        acktrail budgets --lake ./lake --as-of 2026-01-31T12:00Z --all --format json
        acktrail budgets --lake ./lake --fleet
    """
    from acktrail.commands.budget_rows import look_back, read_budgets, read_fronts
    from acktrail.contracts.gold import RETRY_BUDGETS

    lake = lake_to_ask(loaded, RETRY_BUDGETS)
    found = read_budgets(lake, as_of - look_back(hours), as_of)
    if fleet:
        fronts = read_fronts(lake, found, as_of)
        _print_fleet(fronts, as_of, output)
        return
    _print(found, as_of, everything, output)


def _print(found: Sequence[Burning], as_of: datetime, everything: bool, output: str) -> None:
    from pipelines.rules.budget import BudgetState, state_of, urgency

    over = {BudgetState.RECOVERED, BudgetState.RESTARTED, BudgetState.ENDED_UNKNOWN}
    listed = sorted(found, key=lambda b: urgency(b.budget, as_of))
    if not everything:
        listed = [b for b in listed if state_of(b.budget, as_of) not in over]
    if output == "text" and not listed:
        click.echo("No retry budget burns.")
        return
    columns = _TEXT if output == "text" else _FULL
    write_rows([_row(b, as_of) for b in listed], columns, output)


def _row(one: Burning, as_of: datetime) -> dict[str, Any]:
    from pipelines.rules.budget import state_of

    budget = one.budget
    place = f"{budget.topic}-{budget.partition}" if budget.topic else ""
    said = budget.because if budget.unknown is None else f"{budget.because} ({budget.unknown})"
    return {
        **asdict(budget),
        "state": state_of(budget, as_of).value,
        "ends_in_s": _seconds(budget.exhausts_at_earliest, as_of),
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


def _seconds(end: datetime | None, as_of: datetime) -> int | None:
    """Whole seconds until *end*; 0 once it may have come."""
    return None if end is None else max(0, int((end - as_of) / timedelta(seconds=1)))


def _print_fleet(fronts: Sequence[Front], as_of: datetime, output: str) -> None:
    if output != "text":
        write_rows([_fleet_row(front, as_of) for front in fronts], _FLEET, output)
        return
    if not fronts:
        click.echo("No producer burns its budget.")
    for front in fronts:
        click.echo(front.sentence)
        for name, rates in (
            ("retries", front.retries),
            ("errors", front.errors),
            ("failed produce requests", front.failed_produce),
            (f"answered {front.error}", front.answered_with_error),
        ):
            if rates.long_per_s is not None or rates.short_per_s is not None:
                short, long = _rate(rates.short_per_s), _rate(rates.long_per_s)
                click.echo(f"  {name:<32} {short}/s over 5 min, {long}/s over 1 h")
        shown = ", ".join(front.producers[:10])
        more = f" and {len(front.producers) - 10} more" if len(front.producers) > 10 else ""
        click.echo(f"  {'producers':<32} {shown}{more}")


def _rate(value: float | None) -> str:
    return "?" if value is None else f"{value:.2f}"


def _fleet_row(front: Front, as_of: datetime) -> dict[str, Any]:
    return {
        "cluster": front.cluster,
        "broker": front.broker,
        "error": front.error,
        "producers": list(front.producers),
        "chains": front.chains,
        "critical": front.critical,
        "first_exhausts_in_s": _seconds(front.first_exhausts_at, as_of),
        "records_at_stake": front.records_at_stake,
        "retries_5m_per_s": front.retries.short_per_s,
        "retries_1h_per_s": front.retries.long_per_s,
        "errors_5m_per_s": front.errors.short_per_s,
        "errors_1h_per_s": front.errors.long_per_s,
        "failed_produce_5m_per_s": front.failed_produce.short_per_s,
        "failed_produce_1h_per_s": front.failed_produce.long_per_s,
        "answered_5m_per_s": front.answered_with_error.short_per_s,
        "answered_1h_per_s": front.answered_with_error.long_per_s,
        "under_min_isr": front.under_min_isr,
        "sentence": front.sentence,
    }
