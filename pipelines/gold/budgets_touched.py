"""Which hours of `retry_budgets` new evidence concerns, and which evidence these need.

Decided from a few columns by Arrow, before Spark reads anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from acktrail.contracts.bronze import AUDIT_REPORTS, CLUSTER_STATES
from acktrail.contracts.silver import CLIENT_CONFIGS, CLIENT_METRICS, PRODUCER_EVENTS
from acktrail.retries.audited_chains import SESSION_TIERS
from acktrail.retries.client_budgets import LOWEST_QUEUE_MS, hours_concerned
from acktrail.retries.client_settings import SETTINGS
from acktrail.retries.signs import ENDING_KINDS, OPENING_KINDS
from acktrail.window import hour_of
from pipelines.arrow_rows import hours_in, within_hours
from pipelines.gold.settings_in_force import SETTINGS_IN_FORCE, settings_in_force
from pipelines.job import Evidence

if TYPE_CHECKING:
    from acktrail.lake.rows import Rows

KINDS = sorted(ENDING_KINDS | OPENING_KINDS)
QUEUE_METRIC = "record-queue-time-max"
ONE_HOUR = timedelta(hours=1)
NEAR = (-1, 0, 1)
"""The hours whose evidence can concern the chains of an hour, and the other way round."""
_QUARTER_MIN = 15
_INSTANT = pa.timestamp("us", tz="UTC")
_SETTINGS = ("role", "client_version", *SETTINGS.values())
_REPORTED_BY = ("tier", "began_at", "ended_at", "reported_at", "minutes")


def chains_concerned(evidence: Evidence) -> frozenset[str]:
    """The hours in which chains were opened that the new evidence can change.

    Lines, queue times and the cluster's answers concern chains alive at their own time, settings
    of all chains since. Samples only say more of chains that are there.
    """
    hours = _hours_of_signs(evidence.new)
    if evidence.output is None:
        return frozenset(hours)
    known = {str(values["opened_hour"]) for values in evidence.output.seen.files.values()}
    hours |= _hours_of_samples(evidence.changed)
    first = _first_start(evidence.new.get(CLIENT_CONFIGS.name))
    if first is not None:
        hours |= _hours_with_chains(known, first, None)
    audited = _audited(evidence.new.get(AUDIT_REPORTS.name))
    if audited is not None:
        hours |= _hours_with_chains(known, *audited)
    return frozenset(hours)


def evidence_around(_evidence: Evidence, keys: frozenset[str]) -> dict[str, ds.Expression]:
    """What can concern chains opened in the hours *keys*, but for `settings_around`."""
    hours = [hour_begun(key) for key in keys]
    near = _is_near(hours)
    since = pa.scalar(min(hours) - ONE_HOUR, _INSTANT)
    return {
        PRODUCER_EVENTS.name: near,
        CLIENT_METRICS.name: near,
        CLUSTER_STATES.name: within_hours("at", keys, before=1, after=3),
        CLIENT_CONFIGS.name: ds.scalar(False),
        AUDIT_REPORTS.name: (ds.field("reported_at") >= since) | (ds.field("ended_at") >= since),
    }


def settings_around(evidence: Evidence, keys: frozenset[str]) -> dict[str, pa.Table]:
    """The settings that may be in force in the hours *keys*, or lie in a file with signs."""
    configs = evidence.inputs.get(CLIENT_CONFIGS.name)
    if configs is None:
        return {}
    hours = [hour_begun(key) for key in keys]
    events, files = evidence.inputs.get(PRODUCER_EVENTS.name), set()
    if events is not None:
        signs = _is_near(hours) & ds.field("kind").isin(KINDS)
        printed = events.read("record_key", where=signs).column("record_key").to_pylist()
        files = {str(key).rpartition("/")[0] for key in printed}
    found = settings_in_force(configs, _SETTINGS, min(hours) - ONE_HOUR, files=files)
    return {SETTINGS_IN_FORCE: found}


def _is_near(hours: Sequence[datetime]) -> ds.Expression:
    """Rows that are kept under *hours*, or under those beside them."""
    return ds.field("hour").isin(sorted({hour_of(h + n * ONE_HOUR) for h in hours for n in NEAR}))


def _hours_with_chains(known: set[str], first: datetime, last: datetime | None) -> set[str]:
    """From *first* to *last*: the hours with chains, and the hours after such.

    Other settings part lines into other chains, so one may open where none did.
    """
    hours = {hour_begun(text) + n * ONE_HOUR for text in known for n in (0, 1)}
    return {hour_of(h) for h in hours if h >= first and (last is None or h <= last)}


def _audited(reports: Rows | None) -> tuple[datetime, datetime] | None:
    """The first and the last hour that new audits of producers can concern."""
    if reports is None:
        return None
    tiers = ds.field("tier").isin(sorted(tier.value for tier in SESSION_TIERS))
    told = reports.read(*_REPORTED_BY, where=(ds.field("session") != "") & tiers)
    if not told.num_rows:
        return None
    began, ended, reported = (told.column(n) for n in ("began_at", "ended_at", "reported_at"))
    minutes: Any = pa.array(map(_first_minute, told.column("minutes").to_pylist()), _INSTANT)
    is_beat = pc.equal(told.column("tier"), pa.scalar("heartbeat"))
    first = pc.min(pc.coalesce(began, minutes, ended, reported)).as_py()
    last = pc.max(pc.if_else(is_beat, reported, pc.coalesce(ended, reported))).as_py()
    return hours_concerned(first.astimezone(UTC))[0], hours_concerned(last.astimezone(UTC))[-1]


def _first_minute(minutes: Sequence[int] | None) -> datetime | None:
    """The first of the minutes of a heartbeat, which has pairs of a minute and an id."""
    found = [n for n in (minutes or ())[::2] if n is not None and 0 <= n <= 100_000_000]
    return datetime.fromtimestamp(min(found) * 60, UTC) if found else None


def _hours_of_signs(new: Mapping[str, Rows]) -> set[str]:
    """The hours that new lines, queue times and answers concern."""
    whole_client = ds.field("topic").is_null() & ds.field("node").is_null()
    long_queue = (ds.field("metric") == QUEUE_METRIC) & (ds.field("value") >= LOWEST_QUEUE_MS)
    signs: dict[str, Any] = {
        PRODUCER_EVENTS.name: ds.field("kind").isin(KINDS),
        CLIENT_METRICS.name: whole_client & long_queue,
        CLUSTER_STATES.name: ds.field("leader").is_valid(),
    }
    quarters: set[datetime] = set()
    for name, is_sign in signs.items():
        if name in new:
            quarters |= hours_in(new[name].read("at", where=is_sign).column("at"), _QUARTER_MIN)
    return {hour_of(hour) for at in quarters for hour in hours_concerned(at)}


def _hours_of_samples(changed: Mapping[str, frozenset[str]]) -> set[str]:
    hours = [hour_begun(text) for text in changed.get(CLIENT_METRICS.name, ()) if text != "undated"]
    return {hour_of(hour + n * ONE_HOUR) for hour in hours for n in NEAR}


def _first_start(configs: Rows | None) -> datetime | None:
    """From which hour on new settings can change a chain."""
    if configs is None:
        return None
    first = pc.min(configs.read("started_at").column("started_at")).as_py()
    return None if first is None else hours_concerned(first.astimezone(UTC))[0]


def hour_begun(text: str) -> datetime:
    """When the hour begins that a partition is named after."""
    return datetime.strptime(text, "%Y-%m-%dT%H").replace(tzinfo=UTC)
