"""The fleet view on stdout: a few lines for each front, or one row of all that is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from acktrail.retries.burn import LONG, SHORT, TOLD_BELOW
from acktrail.retries.fleet import exhausts
from acktrail.terminal.output import seconds_until, write_rows

if TYPE_CHECKING:
    from acktrail.retries.burn import Rate, Rates
    from acktrail.retries.fleet import FleetProducer, Front

_SHOWN = 5
"""Producers and error codes that are printed for a front; `--format json` has all."""
_WINDOWS = (("5m", "short"), ("1h", "long"))
_RATES = tuple(
    f"{name}_{window}_{what}"
    for name in ("retries", "errors", "failed_produce", "answered")
    for window, _ in _WINDOWS
    for what in ("per_s", "measured_s")
)
_COLUMNS = (
    "cluster", "broker", "error", "producers", "chains", "critical", "first_exhausts_in_s",
    "records_at_stake", *_RATES, "answered_by_code", "brokers_measured", "under_min_isr",
    "under_min_isr_broker", "producer_rates", "sentence",
)  # fmt: skip


def write_fleet(fronts: Sequence[Front], as_of: datetime, output: str) -> None:
    """Write the *fronts* as asked for."""
    if output != "text":
        write_rows([_row(front, as_of) for front in fronts], _COLUMNS, output)
        return
    if not fronts:
        click.echo("No producer is close to exhausting its retries.")
    for front in fronts:
        click.echo(front.sentence)
        for line in (*_rate_lines(front), *_producer_lines(front, as_of)):
            click.echo(f"  {line}")


def _rate_lines(front: Front) -> Iterator[str]:
    of_all = "" if front.broker is not None else f", {_brokers(front)}"
    codes = list(front.answers.items())[:_SHOWN]
    for name, rates in (
        ("retries", front.retries),
        ("errors", front.errors),
        (f"failed produce requests{of_all}", front.failed_produce),
        *((f"answered {code}{of_all}", answered) for code, answered in codes),
    ):
        if rates.short is not None or rates.long is not None:
            yield f"{name:<44} {_both(rates)}"
    if front.broker is not None and not front.brokers:
        yield f"no metrics of broker {front.broker}: not collected, or no target is known to be it"


def _brokers(front: Front) -> str:
    return f"{len(front.brokers)} brokers" if len(front.brokers) != 1 else "1 broker"


def _producer_lines(front: Front, as_of: datetime) -> Iterator[str]:
    for producer in front.producers[:_SHOWN]:
        end = producer.first_exhausts_at
        ends = "end not known" if end is None else exhausts(end, as_of)
        yield f"{producer.name:<44} {ends}; {_burn(producer)}"
    if len(front.producers) > _SHOWN:
        yield f"and {len(front.producers) - _SHOWN} more"


def _burn(producer: FleetProducer) -> str:
    every = (producer.retries.short, producer.retries.long, producer.errors.short)
    if all(rate is None for rate in (*every, producer.errors.long)):
        return "not measured"
    return f"retries {_both(producer.retries)}; errors {_both(producer.errors)}"


def _both(rates: Rates) -> str:
    short, long = rates.short, rates.long
    if short is not None and long is not None and long.measured_s - short.measured_s < 1:
        # All that was measured lies in the short window: both rates are one.
        return f"{short.per_s:.2f}/s over the {_length(short.measured_s)} measured"
    return f"{_rate(rates.short, SHORT, '5 min')}, {_rate(rates.long, LONG, '1 h')}"


def _rate(rate: Rate | None, window: timedelta, name: str) -> str:
    if rate is None:
        return f"?/s over {name}"
    if rate.measured_s >= TOLD_BELOW * window.total_seconds():
        return f"{rate.per_s:.2f}/s over {name}"
    return f"{rate.per_s:.2f}/s over {name} ({_length(rate.measured_s)} of it measured)"


def _length(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _row(front: Front, as_of: datetime) -> dict[str, Any]:
    return {
        "cluster": front.cluster,
        "broker": front.broker,
        "error": front.error,
        "producers": [p.name for p in front.producers],
        "chains": front.chains,
        "critical": front.critical,
        "first_exhausts_in_s": seconds_until(front.first_exhausts_at, as_of),
        "records_at_stake": front.records_at_stake,
        **_columns("retries_", front.retries),
        **_columns("errors_", front.errors),
        **_columns("failed_produce_", front.failed_produce),
        **_columns("answered_", front.answers.get(front.error)),
        "answered_by_code": {code: _columns("", rates) for code, rates in front.answers.items()},
        "brokers_measured": list(front.brokers),
        "under_min_isr": front.under_min_isr,
        "under_min_isr_broker": front.under_min_isr_broker,
        "producer_rates": [_producer_row(p, as_of) for p in front.producers],
        "sentence": front.sentence,
    }


def _producer_row(producer: FleetProducer, as_of: datetime) -> dict[str, Any]:
    return {
        "client_id": producer.client_id,
        "host": producer.host,
        "chains": producer.chains,
        "critical": producer.critical,
        "first_exhausts_in_s": seconds_until(producer.first_exhausts_at, as_of),
        **_columns("retries_", producer.retries),
        **_columns("errors_", producer.errors),
    }


def _columns(prefix: str, rates: Rates | None) -> dict[str, float | None]:
    """The rates by window: growth per second, and the seconds of the window it was measured."""
    found: dict[str, float | None] = {}
    for window, name in _WINDOWS:
        rate: Rate | None = None if rates is None else getattr(rates, name)
        found[f"{prefix}{window}_per_s"] = None if rate is None else rate.per_s
        found[f"{prefix}{window}_measured_s"] = None if rate is None else rate.measured_s
    return found
