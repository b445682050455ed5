"""`acktrail check`: run every check on the lake, deliver every alert, then fail or not."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from acktrail.contracts.vocabulary import Outcome
from acktrail.errors import ChecksFailed
from acktrail.settings import Loaded
from acktrail.terminal.check_lines import WIDTH, text_lines
from acktrail.terminal.options import as_of_option, format_option, lake_to_keep, settings_options
from acktrail.terminal.output import write_rows

if TYPE_CHECKING:
    from acktrail.alerts.finding import CheckResult
    from acktrail.lake import Lake
    from acktrail.settings import Settings

_COLUMNS = ("table", "check", "grade", "outcome", "rows_checked", "sentence", "runbook", "findings")


@click.command()
@click.option("--policy", metavar="FILE", help="Thresholds, owners and maintenance windows.")
@click.option("--docs", metavar="DIR", help="Build Great Expectations' Data Docs there.")
@click.option("--strict", is_flag=True, help="Exit with 1 for undecided checks too.")
@as_of_option
@format_option
@settings_options
def command(
    loaded: Loaded,
    policy: str | None,
    docs: str | None,
    strict: bool,
    as_of: datetime,
    output: str,
) -> None:
    """Run every check, alert, and exit with 1 if one of grade fail has failed.

    Every alert is delivered before the command ends. Exit 75: a receiver did not take one; it
    stays in the outbox, so run again. A check is undecided, never passed, where evidence is missing
    or waits for `acktrail run`. A check that cannot be evaluated is reported and exits with 1; the
    others are evaluated. An --as-of before the last check opens and resolves no alert.

    Example:

    \b
        acktrail check --lake ./lake
        acktrail check --lake ./lake --as-of 2026-01-31T12:00Z --format json
        acktrail check --policy policy.yaml --docs ./data-docs
    """
    lake = lake_to_keep(loaded)
    alerts = loaded.settings.alerts
    from expectations.paging import is_history, keep_results, record_alerts
    from expectations.policy_suites import policy_and_suites, thresholds
    from expectations.stale import PENDING, look_for_waiting
    from expectations.validate import Asked, validate

    history = is_history(lake, as_of)
    named = policy or alerts.policy
    chosen = Path(named) if named else None
    decided, suites = policy_and_suites(chosen)
    for note in decided.notes():
        click.echo(f"{chosen}: {note}", err=True)
    allowed_s = decided.limit_everywhere(PENDING, thresholds(suites)[PENDING])
    waiting = look_for_waiting(lake, allowed_s, datetime.now(UTC))
    asked = Asked(as_of, decided, alerts.runbooks_url, waiting)
    results = validate(suites, lake, asked, Path(docs) if docs else None)
    keep_results(lake, results, as_of)
    _print(results, waiting.notes(), output)
    if history:
        click.echo("--as-of is before the last check; alerts are unchanged.", err=True)
    else:
        now = datetime.now(UTC)
        record_alerts(lake, results, suites, asked, now)
        _deliver(lake, loaded.settings, now)
    wrong = {r.check for r in results if r.failed}
    if strict:
        told = (r for r in results if r.open_findings)
        wrong |= {r.check for r in told if r.outcome is Outcome.UNDECIDED}
    if wrong:
        raise ChecksFailed(_unpassed(wrong))


def _unpassed(names: Collection[str]) -> str:
    count = f"{len(names)} check{'' if len(names) == 1 else 's'} did not pass"
    text = f"{count}: {', '.join(sorted(names))}."
    return textwrap.fill(text, WIDTH - len("ChecksFailed: "), subsequent_indent="  ")


def _deliver(lake: Lake, settings: Settings, now: datetime) -> None:
    """Tell every receiver, and only then go on."""
    from acktrail.alerts.alert import OPEN
    from expectations.notify import messengers, receivers
    from expectations.outbox import Outbox
    from expectations.paging import deliver_alerts

    alerts = settings.alerts
    delivery = deliver_alerts(lake, alerts, now, settings.report.url)
    named = [r.name for r in receivers(alerts)] + [m.name for m in messengers(alerts)]
    opened = sum(1 for a in Outbox(lake).live(now).values() if a.status == OPEN)
    sent = (
        f"{delivery.delivered} change(s) sent to {', '.join(named)}"
        if named
        else "nothing was sent, because no receiver is set under [alerts]"
    )
    click.echo(f"{opened} open alert(s); {sent}.", err=True)
    delivery.require()


def _print(results: Sequence[CheckResult], notes: Sequence[str], output: str) -> None:
    if output == "text":
        for line in text_lines(results, notes):
            click.echo(line)
        return
    write_rows([_record(r) for r in results], _COLUMNS, output)


def _record(result: CheckResult) -> dict[str, Any]:
    return {
        **{name: getattr(result, name) for name in _COLUMNS if name != "findings"},
        "grade": result.grade.value,
        "outcome": result.outcome.value,
        "findings": [f.to_json() for f in result.findings],
    }
