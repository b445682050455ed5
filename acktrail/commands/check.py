"""`acktrail check`: ask every expectation of the lake, deliver every alert, then fail or not."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from acktrail.commands.options import as_of_option, format_option, lake_to_keep, settings_options
from acktrail.contracts.vocabulary import Outcome
from acktrail.errors import ChecksFailed
from acktrail.output import write_rows
from acktrail.settings import Loaded

if TYPE_CHECKING:
    from acktrail.lake import Lake
    from acktrail.settings.alerts import AlertSettings
    from expectations.result import CheckResult

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
    """Ask every expectation, alert, and exit with 1 if one of grade fail has failed.

    Every alert is delivered before the command ends. Exit 75: a receiver did not take one; it
    stays in the outbox, so run again. Missing evidence makes a check undecided, never passed.
    A question about a moment before the last one asked opens and resolves no alert.

    Example:

    \b
        acktrail check --lake ./lake
        acktrail check --lake ./lake --as-of 2026-01-31T12:00Z --format json
        acktrail check --policy policy.yaml --docs ./data-docs
    """
    lake = lake_to_keep(loaded)
    alerts = loaded.settings.alerts
    from expectations.ask import ask, is_history

    history = is_history(lake, as_of)
    chosen = policy or alerts.policy
    results = ask(
        lake,
        as_of,
        Path(chosen) if chosen else None,
        alerts.runbooks_url,
        Path(docs) if docs else None,
    )
    _print(results, output)
    if history:
        click.echo("Alerts are left as they are: later moments have been checked.", err=True)
    else:
        _alert(lake, results, alerts)
    wrong = {r.check for r in results if r.failed}
    if strict:
        wrong |= {r.check for r in results if r.outcome is Outcome.UNDECIDED}
    if wrong:
        raise ChecksFailed(f"{len(wrong)} check(s) did not pass: {', '.join(sorted(wrong))}.")


def _alert(lake: Lake, results: Sequence[CheckResult], settings: AlertSettings) -> None:
    """Write the verdicts down, tell every receiver, and only then go on."""
    from expectations.alert import OPEN
    from expectations.notify import receivers
    from expectations.outbox import Outbox

    now = datetime.now(UTC)
    outbox = Outbox(lake)
    findings = [f for r in results for f in r.findings]
    outbox.record(findings, {r.check for r in results}, now)
    named = receivers(settings)
    delivery = outbox.deliver(named, now, timedelta(seconds=settings.interval_s))
    opened = sum(1 for a in outbox.alerts().values() if a.status == OPEN)
    told = ", ".join(r.name for r in named) or "nobody: no receiver is set under [alerts]"
    click.echo(f"{opened} open alert(s); {delivery.delivered} change(s) told to {told}.", err=True)
    delivery.require()


def _print(results: Sequence[CheckResult], output: str) -> None:
    if output == "text":
        _print_text(results)
        return
    write_rows([_record(r) for r in results], _COLUMNS, output)


def _record(result: CheckResult) -> dict[str, Any]:
    return {
        **{name: getattr(result, name) for name in _COLUMNS if name != "findings"},
        "grade": result.grade.value,
        "outcome": result.outcome.value,
        "findings": [f.to_json() for f in result.findings],
    }


def _print_text(results: Sequence[CheckResult]) -> None:
    """What passed, in one line; then what did not, the worst at the end of the screen.

    What is missing is said once, at the first check that it makes blind.
    """
    said: set[str] = set()
    passed = [r for r in results if r.outcome is Outcome.PASS]
    muted = sum(1 for r in passed for f in r.findings if f.muted_by)
    note = f" ({muted} finding(s) muted by a maintenance window)" if muted else ""
    click.echo(f"pass       {len(passed)} of {len(results)} checks{note}")
    for result in sorted(results, key=_badness):
        if result.outcome is Outcome.PASS:
            continue
        if result.outcome is Outcome.UNDECIDED:
            click.echo(f"undecided  {result.check} ({result.table})")
        else:
            grade = result.grade.value.upper()
            click.echo(f"{grade:<10} {result.check} ({result.table}): {result.sentence}")
        for finding in result.open_findings:
            if finding.outcome is Outcome.UNDECIDED:
                if finding.because not in said:
                    click.echo(f"           - {finding.because}")
                said.add(finding.because)
                continue
            click.echo(f"           - {finding.because}")
        if result.outcome is Outcome.FAIL:
            click.echo(f"           Runbook: {result.runbook}")


def _badness(result: CheckResult) -> int:
    order = [Outcome.PASS, Outcome.UNDECIDED, Outcome.FAIL]
    return 2 * order.index(result.outcome) + int(result.failed)
