"""What a check found: findings a person can act on, and the row that is kept of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from itertools import islice
from typing import Any

from acktrail.contracts.vocabulary import Grade, Outcome

UNDECIDED = "undecided"
"""State of a finding about evidence that is missing."""
NOT_EVALUATED = "check_not_evaluated"
"""State of a finding about a check that raised an error, or whose table cannot be read."""
NOT_COLLECTED = "not_collected"
"""What mutes findings about evidence that the policy file says is not collected."""
WAITING = "waiting"
"""Who finds evidence that waits for a run: not a check, and not every command looks for it."""
OUT_OF_SYNC = "(out of sync)"
"""Stands behind a broker that the cluster itself named: it outweighs what clients suspect."""
MOST_KEYS = 50
"""Offending keys kept of one finding; the count says how many there were."""


@dataclass(frozen=True)
class Finding:
    """One incident that a check saw, or evidence that it could not see.

    *state* and *cause* say what is wrong and why; together with the place and the start they name
    the incident. *ends_at* is the latest evidence of a thing that is over, None while it goes on.
    """

    outcome: Outcome
    cluster: str
    topic: str
    group: str
    state: str
    cause: str
    starts_at: datetime
    ends_at: datetime | None
    because: str
    count: int = 1
    keys: tuple[str, ...] = ()
    clients: tuple[str, ...] = ()
    loss: bool = False
    """Messages are gone: no maintenance window mutes it."""
    needs: str = ""
    """The kind of evidence that is missing: no alert where it is not collected."""
    check: str = ""
    grade: Grade = Grade.FAIL
    runbook: str = ""
    owner: str = ""
    muted_by: str = ""
    found_by: tuple[str, ...] = ()
    """Who found it, as `table.check`; `waiting` for evidence that waits for a run."""
    what: str = ""
    """What happens, in words that stay true while it goes on: a page is not changed by a clock."""
    past: str = ""
    """What happened, for a page about something that is over; *what* or *because* where empty."""
    fix: str = ""
    """What to do."""
    hosts: tuple[str, ...] = ()
    """Hosts of the clients."""
    brokers: tuple[str, ...] = ()
    """Ids of the brokers it is about."""
    partitions: tuple[str, ...] = ()
    """Partitions with their leader and in-sync replicas, as a person reads them."""
    at_stake: int | None = None
    """Records that can still be saved, where known."""
    deadline: datetime | None = None
    """When the first of them may be given up."""
    incident: str = ""
    """Name of the loss incident, as `acktrail explain` takes it."""

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {k: v.isoformat() if isinstance(v, datetime) else v for k, v in asdict(self).items()}

    @staticmethod
    def from_json(raw: Mapping[str, Any]) -> Finding:
        """What *to_json* wrote."""
        read: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in raw.items()}
        instants = {name: read[name] for name in ("starts_at", "ends_at", "deadline")}
        return Finding(
            **{
                **read,
                "outcome": Outcome(read["outcome"]),
                "grade": Grade(read["grade"]),
                **{n: at and datetime.fromisoformat(at) for n, at in instants.items()},
            }
        )


@dataclass(frozen=True)
class CheckResult:
    """The outcome of one check on one table."""

    table: str
    check: str
    grade: Grade
    rows_checked: int
    sentence: str
    runbook: str
    findings: tuple[Finding, ...] = field(default=())

    @property
    def scope(self) -> str:
        """What was evaluated, as `table.check`."""
        return scope_of(self.table, self.check)

    @property
    def open_findings(self) -> tuple[Finding, ...]:
        """The findings that neither a maintenance window nor `not_collected` mutes."""
        return tuple(f for f in self.findings if not f.muted_by)

    @property
    def outcome(self) -> Outcome:
        """Fail if anything failed, else undecided if any evidence is missing, else pass.

        Evidence that is not collected mutes the alert only: the check did not pass.
        """
        outcomes = {f.outcome for f in self.findings if f.muted_by in ("", NOT_COLLECTED)}
        for worst in (Outcome.FAIL, Outcome.UNDECIDED):
            if worst in outcomes:
                return worst
        return Outcome.PASS

    @property
    def failed(self) -> bool:
        """Whether the command must fail for it."""
        return self.not_evaluated or (self.grade is Grade.FAIL and self.outcome is Outcome.FAIL)

    @property
    def not_evaluated(self) -> bool:
        """Whether the check itself raised an error, or could not read its table."""
        return any(f.state == NOT_EVALUATED for f in self.findings)

    def rows(self, check_run: str, checked_at: datetime, as_of: datetime) -> list[dict[str, Any]]:
        """Its rows of `check_results`: one for each owner of what was found."""
        owners = sorted({f.owner for f in self.open_findings}) or [""]
        shared = {
            "check_run": check_run,
            "checked_at": checked_at,
            "as_of": as_of,
            "table": self.table,
            "check": self.check,
            "grade": self.grade.value,
            "rows_checked": self.rows_checked,
            "rows_muted": sum(
                f.count for f in self.findings if f.muted_by and f.outcome is Outcome.FAIL
            ),
            "runbook": self.runbook,
            "day": as_of.strftime("%Y-%m-%d"),
        }
        made = []
        for owner in owners:
            concerned = tuple(f for f in self.findings if f.muted_by or f.owner == owner)
            own = replace(self, findings=concerned)
            found = own.open_findings
            made.append(
                {
                    **shared,
                    "subject": owner,
                    "outcome": own.outcome.value,
                    "not_collected": own.outcome is Outcome.UNDECIDED and not found,
                    "rows_failed": sum(f.count for f in found if f.outcome is Outcome.FAIL),
                    "keys": list(first_keys(key for f in found for key in f.keys)),
                    "because": " ".join(dict.fromkeys(f.because for f in found)) or self.sentence,
                }
            )
        return made


def scope_of(table: str, check: str) -> str:
    """One check on one table: a check of one name may be on several tables."""
    return f"{table}.{check}"


def first_keys(keys: Iterable[str]) -> tuple[str, ...]:
    """The first keys, as many as are kept."""
    return tuple(islice(keys, MOST_KEYS))
