"""The rows of `acktrail agent status`: what agents reported, the accounts, and a look at now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from acktrail.answers.sources import source_states
from acktrail.contracts.bronze import BRONZE
from acktrail.contracts.vocabulary import SourceState
from acktrail.errors import AcktrailError
from ingest.agent.states import HEARTBEAT_S, place_of
from ingest.agent.totals import Account, accounts
from ingest.source import Health

if TYPE_CHECKING:
    from acktrail.lake import Lake
    from acktrail.settings.model import Settings
    from ingest.source import Source

Row = dict[str, Any]

_NEVER, _SILENT = "never run", "silent"
_MISSED = timedelta(seconds=3 * HEARTBEAT_S)
"""A running agent that has reported nothing for so long is gone."""


def status_rows(
    settings: Settings, sources: Sequence[Source], lake: Lake, now: datetime
) -> list[Row]:
    """One row for each configured source, then for others that the lake knows."""
    known = accounts(lake, BRONZE, now)
    reported = {(r["cluster"], r["source"], r["host"]): r for r in source_states(lake, now)}
    rows = []
    for own, source in zip(settings.sources, sources, strict=True):
        place = place_of(own, settings.cluster)
        report = reported.pop((place.cluster, own.name, place.host), {})
        account = known.pop(source.name, Account(source.name))
        rows.append(_row(own.kind, account, report, _health(source, lake), now))
    for report in reported.values():
        account = known.pop(report["source"], Account(report["source"]))
        kind = f"{report['kind']}, not configured here"
        rows.append(_row(kind, account, report, Health(), now))
    for account in known.values():
        rows.append(_row("not configured here", account, {}, Health(), now))
    return rows


def _health(source: Source, lake: Lake) -> Health:
    """What the source says now; that it does not answer is a note."""
    try:
        source.open(lake)
        return source.health()
    except AcktrailError as error:
        return Health(notes=(f"asked now: {type(error).__name__}: {error}",))
    finally:
        source.close()


def _row(
    kind: str, account: Account, report: Mapping[str, Any], health: Health, now: datetime
) -> Row:
    return {
        "source": account.source,
        "kind": kind,
        "state": _state(report, now),
        "state_since": report.get("state_since_at"),
        "position": health.position,
        "lag": health.lag,
        "lag_unit": health.lag_unit if health.lag is not None else "",
        "received": account.received,
        "written": account.written,
        "dropped": dict(account.dropped) or None,
        "balances": account.balances,
        "received_last_hour": account.lately,
        "last_commit_at": account.last_commit_at,
        "since": account.since,
        "reported_at": report.get("at"),
        "agent": f"{report['command']} {report['agent']}" if report else None,
        "notes": _notes(report, health) or None,
    }


def _state(report: Mapping[str, Any], now: datetime) -> str:
    if not report:
        return _NEVER
    if report["state"] == SourceState.UP and now - report["at"] > _MISSED:
        return _SILENT
    return str(report["state"])


def _notes(report: Mapping[str, Any], health: Health) -> list[str]:
    """What the agent reported, then what is seen only now."""
    told = [report["error"]] if report.get("error") else []
    told += [*report.get("unread", ()), *report.get("notes", ())]
    return list(dict.fromkeys((*told, *health.unread, *health.notes)))
