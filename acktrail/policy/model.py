"""What a team decides about checks: thresholds, owners and maintenance windows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, time, timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, get_args
from zoneinfo import ZoneInfo

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from acktrail.contracts.vocabulary import Grade
from acktrail.errors import ConfigError
from acktrail.policy.renamed import RENAMED, names_of
from acktrail.settings.values import Zone

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def _duration(value: Any) -> Any:
    """`90s`, `15m`, `24h` or `7d`."""
    if isinstance(value, timedelta):
        return value
    read = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd])", str(value).strip())
    if read is None:
        raise ValueError("a duration is a number with s, m, h or d, for example 15m or 24h")
    return timedelta(seconds=float(read.group(1)) * _UNITS[read.group(2)])


def _globs(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


Duration = Annotated[timedelta, BeforeValidator(_duration)]
Globs = Annotated[tuple[str, ...], BeforeValidator(_globs)]
Kind = Literal["logs", "metrics", "audits"]
"""Evidence that an installation may do without."""
KINDS: tuple[str, ...] = get_args(Kind)
Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
PLACE = ("cluster", "topic", "client_id", "group")
"""Columns by which a rule may be limited to a place."""


class PlacedFinding(Protocol):
    """What the policy needs to know of a finding: its check and its place."""

    @property
    def check(self) -> str:
        """Name of the check."""

    @property
    def cluster(self) -> str:
        """Empty where it is about the lake."""

    @property
    def topic(self) -> str:
        """Empty for all."""

    @property
    def group(self) -> str:
        """Consumer group; empty for none."""

    @property
    def clients(self) -> tuple[str, ...]:
        """Client ids."""

    @property
    def loss(self) -> bool:
        """Whether messages are gone."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Place(_Strict):
    """Where a rule holds: every list that is given must match; `*` stands for any text."""

    clusters: Globs = ()
    topics: Globs = ()
    clients: Globs = ()
    groups: Globs = ()

    def holds_for(self, finding: PlacedFinding) -> bool:
        """Whether the place of *finding* is meant."""
        return (
            _any(self.clusters, (finding.cluster,))
            and _any(self.topics, (finding.topic,))
            and _any(self.clients, finding.clients)
            and _any(self.groups, (finding.group,))
        )


def _any(globs: Sequence[str], names: Sequence[str]) -> bool:
    return not globs or any(fnmatchcase(name, glob) for glob in globs for name in names)


class OwnerRule(_Place):
    """Who owns the alerts of what happens there."""

    owner: str = Field(min_length=1)


class ThresholdRule(_Place):
    """Other bounds for some topics or clients; the first rule that names a bound wins."""

    set: dict[str, float] = Field(min_length=1)


class Maintenance(_Place):
    """A time in which some failures are expected. It never mutes a loss."""

    name: str = Field(min_length=1)
    checks: Globs = ()
    begins: datetime | None = Field(default=None, alias="from")
    ends: datetime | None = Field(default=None, alias="to")
    days: tuple[Day, ...] = ()
    between: str | None = None
    """Time of day, for example `02:00-04:00`; it may pass midnight."""
    zone: Zone = "UTC"

    @model_validator(mode="after")
    def _has_a_time(self) -> Maintenance:
        if (self.begins is None) != (self.ends is None):
            raise ValueError("`from` and `to` belong together")
        if self.begins is None and self.between is None:
            raise ValueError("give `from` and `to`, or `between` (and `days`)")
        for instant in (self.begins, self.ends):
            if instant is not None and instant.tzinfo is None:
                raise ValueError("`from` and `to` need an offset, for example 2026-01-31T02:00Z")
        if self.begins is not None and self.ends is not None and self.ends <= self.begins:
            raise ValueError("`to` must be after `from`")
        if self.between is not None:
            _clock(self.between)
        return self

    def is_on(self, at: datetime) -> bool:
        """Whether *at* lies in it."""
        if self.begins is not None and self.ends is not None:
            return self.begins <= at < self.ends
        start, end = _clock(self.between or "")
        here = at.astimezone(ZoneInfo(self.zone))
        clock = here.time().replace(tzinfo=None)
        if start <= end:
            return start <= clock < end and self._is_day(here)
        if clock >= start:
            return self._is_day(here)
        return clock < end and self._is_day(here - timedelta(days=1))

    def _is_day(self, here: datetime) -> bool:
        return not self.days or here.strftime("%a").lower() in self.days


def _clock(between: str) -> tuple[time, time]:
    read = re.fullmatch(r"(\d\d:\d\d)\s*-\s*(\d\d:\d\d)", between)
    try:
        if read is None:
            raise ValueError
        return time.fromisoformat(read.group(1)), time.fromisoformat(read.group(2))
    except ValueError:
        raise ValueError(
            f"`between` is {between!r}; write it like 02:00-04:00, in quotes"
        ) from None


class Policy(_Strict):
    """Everything a team decides about checks."""

    window: Duration = timedelta(hours=24)
    """How far back a check looks; an alert about a loss is resolved when it is older."""
    default_owner: str = "platform"
    owners: tuple[OwnerRule, ...] = ()
    thresholds: tuple[ThresholdRule, ...] = ()
    grades: dict[str, Grade] = Field(default_factory=dict)
    """Another grade for a check, by its current or a former name; see `grade_of`."""
    maintenance: tuple[Maintenance, ...] = ()
    not_collected: tuple[Kind, ...] = ()
    """Evidence this installation does without: checks on it are undecided and open no alert."""
    suites: str | None = None
    """Directory with suites of your own, beside this file."""

    def owner_of(self, finding: PlacedFinding) -> str:
        """Whose alert it is."""
        for rule in self.owners:
            if rule.holds_for(finding):
                return rule.owner
        return self.default_owner

    def grade_of(self, check: str, otherwise: Grade) -> Grade:
        """The grade of *check*; *otherwise* where no rule changes it."""
        given = [self.grades[name] for name in names_of(check) if name in self.grades]
        return given[0] if given else otherwise

    def notes(self) -> list[str]:
        """One sentence for each rule that a renamed check makes stale, or wider than it was."""
        stale = [("grades", name) for name in self.grades]
        found = []
        for number, window in enumerate(self.maintenance):
            where = f"maintenance.{number}"
            stale += [(where, glob) for glob in window.checks]
            found += [
                f"{where}: the check {former} is now called {current}, which {glob} matches too. "
                f"Add {current} to `checks` if the window is to mute it; else name the others."
                for former, current in RENAMED.items()
                for glob in window.checks
                if fnmatchcase(current, glob)
                and current not in window.checks
                and not _any(window.checks, (former,))
            ]
        found += [
            f"{where}: the check {former} is now called {current}. Use the new name."
            for where, glob in stale
            for former, current in RENAMED.items()
            if fnmatchcase(former, glob) and not fnmatchcase(current, glob)
        ]
        return found

    def limits(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """The rules for the thresholds *names*, as an expectation takes them."""
        rules: list[dict[str, Any]] = []
        for rule in self.thresholds:
            chosen = {name: value for name, value in rule.set.items() if name in names}
            if chosen:
                rules.extend({**place, **chosen} for place in _places(rule))
        return rules

    def limit_everywhere(self, name: str, otherwise: float) -> float:
        """The threshold *name* of the first rule for all places; *otherwise* without one."""
        for rule in self.limits((name,)):
            if rule.keys() == {name}:
                return float(rule[name])
        return otherwise

    def muted_by(self, finding: PlacedFinding, at: datetime) -> str:
        """Name of the maintenance window at *at* that expects it; empty for none, or a loss."""
        if finding.loss:
            return ""
        for window in self.maintenance:
            named = _any(window.checks, names_of(finding.check))
            if named and window.is_on(at) and window.holds_for(finding):
                return window.name
        return ""

    def require_known(
        self, path: Path | None, checks: Sequence[str], thresholds: Mapping[str, float]
    ) -> None:
        """ConfigError where a rule names a check or a threshold that does not exist."""
        known = [name for check in checks for name in names_of(check)]
        wrong = [
            f"  thresholds.{number}: there is no threshold {name}"
            for number, rule in enumerate(self.thresholds)
            for name in rule.set
            if name not in thresholds
        ]
        wrong += [
            f"  maintenance.{number}: no check is called {glob}"
            for number, window in enumerate(self.maintenance)
            for glob in window.checks
            if not any(fnmatchcase(check, glob) for check in known)
        ]
        wrong += [f"  grades: no check is called {n}" for n in self.grades if n not in known]
        if wrong:
            raise ConfigError(
                f"{path}: the policy is wrong:\n" + "\n".join(wrong) + "\n"
                f"  Checks: {', '.join(sorted(checks))}.\n"
                f"  Thresholds: {', '.join(sorted(thresholds))}."
            )


def limit_at(
    rules: Iterable[Mapping[str, Any]], place: Mapping[str, Any], name: str, otherwise: float
) -> float:
    """The threshold *name* at *place* by *rules* (`Policy.limits`); *otherwise* without a rule.

    The first rule that names the threshold and matches the place wins.
    """
    for rule in rules:
        if name in rule and all(
            fnmatchcase(str(place.get(column) or ""), rule[column])
            for column in PLACE
            if column in rule
        ):
            return float(rule[name])
    return otherwise


def _places(rule: _Place) -> list[dict[str, str]]:
    """One place for each combination of globs."""
    places: list[dict[str, str]] = [{}]
    given = (rule.clusters, rule.topics, rule.clients, rule.groups)
    for column, globs in zip(PLACE, given, strict=True):
        if globs:
            places = [{**place, column: glob} for place in places for glob in globs]
    return places
