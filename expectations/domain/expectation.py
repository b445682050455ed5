"""What every domain expectation is: a Great Expectations class that returns findings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar

import pandas as pd

from acktrail.alerts.finding import UNDECIDED, Finding, first_keys
from acktrail.contracts.vocabulary import Outcome
from acktrail.policy.model import PLACE, limit_at
from expectations.engine import (
    BatchExpectation,
    MetricDomainTypes,
    PandasExecutionEngine,
    TableMetricProvider,
    metric_value,
)

FRAME = "table.acktrail_frame"
"""Name of the metric that is the table itself."""


class TableFrame(TableMetricProvider):
    """The metric that hands a whole (small) table to an expectation."""

    metric_name = FRAME

    @metric_value(engine=PandasExecutionEngine)
    def _pandas(
        cls,
        execution_engine: PandasExecutionEngine,
        metric_domain_kwargs: dict[str, Any],
        metric_value_kwargs: dict[str, Any],  # noqa: ARG002
        metrics: dict[str, Any],  # noqa: ARG002
        runtime_configuration: dict[str, Any],  # noqa: ARG002
    ) -> pd.DataFrame:
        frame, _, _ = execution_engine.get_compute_domain(
            domain_kwargs=metric_domain_kwargs, domain_type=MetricDomainTypes.TABLE
        )
        return frame


class DomainExpectation(BatchExpectation):
    """An expectation about delivery. *as_of* and *limits* are given when it is asked."""

    as_of: str = ""
    limits: tuple[dict[str, Any], ...] = ()
    """Thresholds for topics or clients, first match wins; the last one is for all."""

    metric_dependencies: ClassVar[tuple[str, ...]] = (FRAME,)
    success_keys: ClassVar[tuple[str, ...]] = ("as_of", "limits")
    thresholds: ClassVar[dict[str, float]] = {}
    """Name of each threshold in the policy file, and its value where the file has none."""

    @property
    def asked_at(self) -> datetime:
        """The time the question is about."""
        return datetime.fromisoformat(self.as_of)

    def limit(self, frame: pd.DataFrame, name: str) -> pd.Series:
        """For each row the threshold *name* of its cluster, topic and client."""
        columns = [c for c in PLACE if c in frame.columns]
        places: Iterable[tuple[Any, ...]] = [()] * len(frame)
        if columns:
            places = frame[columns].itertuples(index=False, name=None)
        found: dict[tuple[Any, ...], float] = {}
        values = []
        for place in places:
            if place not in found:
                named = dict(zip(columns, place, strict=True))
                found[place] = limit_at(self.limits, named, name, self.thresholds[name])
            values.append(found[place])
        return pd.Series(values, index=frame.index, dtype="float64")

    def findings(self, frame: pd.DataFrame) -> list[Finding]:
        """What is wrong in *frame*; nothing where all is well."""
        raise NotImplementedError

    def _validate(
        self,
        metrics: dict[str, Any],
        runtime_configuration: dict[str, Any] | None = None,  # noqa: ARG002
        execution_engine: Any = None,  # noqa: ARG002
    ) -> dict[str, Any]:
        found = self.findings(metrics[FRAME])
        return {
            "success": not found,
            "result": {
                "observed_value": sum(f.count for f in found),
                "unexpected_list": list(first_keys(k for f in found for k in f.keys)),
                "details": {"findings": [f.to_json() for f in found]},
            },
        }


def keys_of(frame: pd.DataFrame, columns: Sequence[str]) -> tuple[str, ...]:
    """The rows' keys as a person types them: their values, joined by slashes."""
    rows = frame[list(columns)].head(50).itertuples(index=False, name=None)
    return first_keys("/".join(_text(value) for value in row) for row in rows)


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    return "-" if value is None or value == "" or value is pd.NaT else str(value)


def instant(value: Any, otherwise: datetime) -> datetime:
    """A cell as an instant, or *otherwise* where it is empty."""
    if value is None or pd.isna(value):
        return otherwise
    read: datetime = pd.Timestamp(value).to_pydatetime()
    return read if read.tzinfo else read.replace(tzinfo=UTC)


def texts(values: Any) -> tuple[str, ...]:
    """The distinct texts in a column, sorted, at most as many as are kept."""
    return first_keys(sorted({str(v) for v in values if v != "" and not pd.isna(v)}))


def clock(at: datetime) -> str:
    """`2026-01-31T12:00:05Z`."""
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")


def hour_start(text: Any, otherwise: datetime) -> datetime:
    """When the hour of a partition begins, or *otherwise* where it is not an hour."""
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H").replace(tzinfo=UTC)
    except (TypeError, ValueError):
        return otherwise


def not_collected(kind: str, said: str = "") -> str:
    """The sentence for evidence that is not there; the same for all checks that need it."""
    return (
        f"{said or f'No {kind}'} were collected in the window. Collect them, or add `{kind}` to "
        "`not_collected` in the policy file."
    )


def number(count: int, noun: str) -> str:
    """`1 row`, `1,205 rows`."""
    plural = "es" if noun.endswith(("ch", "s")) else "s"
    return f"{count:,} {noun}{'' if count == 1 else plural}"


def missing(
    *,
    cluster: str,
    cause: str,
    starts_at: datetime,
    because: str,
    keys: tuple[str, ...] = (),
    needs: str = "",
) -> Finding:
    """A finding that evidence is missing: the check is undecided."""
    return Finding(
        outcome=Outcome.UNDECIDED,
        cluster=cluster,
        topic="",
        group="",
        state=UNDECIDED,
        cause=cause,
        starts_at=starts_at,
        ends_at=None,
        because=because,
        keys=keys,
        needs=needs,
    )
