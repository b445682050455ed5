"""The samples behind an hour of `producer_reliability`: when in the hour a rate was high.

Only hours in which something is not 0 are looked at: of a healthy fleet nothing is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds

from acktrail.contracts import Table
from acktrail.contracts.silver import BROKER_METRICS, CLIENT_METRICS

if TYPE_CHECKING:
    import pandas as pd

    from acktrail.lake import Lake

ERRORS, RETRIES, FAILED = "error_samples", "retry_samples", "failed_samples"
"""Columns with lists of (time, value): of the rates above 0, and of growth of failed requests."""

Place = tuple[str, str, str, str]


def with_samples(lake: Lake, hours: pd.DataFrame) -> pd.DataFrame:
    """*hours* of `producer_reliability` with the samples of what is not 0 in them."""
    import pandas as pd

    columns = {
        ERRORS: ("error_rate_per_s", CLIENT_METRICS, "record-error-rate", "value"),
        RETRIES: ("retry_rate_per_s", CLIENT_METRICS, "record-retry-rate", "value"),
        FAILED: (
            "failed_produce_requests_total",
            BROKER_METRICS,
            "failed-produce-requests-total",
            "increase",
        ),
    }
    made = hours
    for name, (column, table, metric, measured) in columns.items():
        loud = sorted(hours.loc[hours[column].fillna(0) > 0, "hour"].unique())
        known = _samples(lake, table, metric, measured, loud) if loud else {}
        of_brokers = table is BROKER_METRICS
        places = hours[["cluster", "client_id", "topic", "hour"]].itertuples(index=False, name=None)
        listed = [known.get((c, "" if of_brokers else i, t, h), []) for c, i, t, h in places]
        made = made.assign(**{name: pd.Series(listed, index=hours.index, dtype=object)})
    return made


def _samples(
    lake: Lake, table: Table, metric: str, measured: str, hours: Sequence[str]
) -> dict[Place, list[tuple[Any, float]]]:
    where = ds.field("hour").isin(list(hours)) & (ds.field("metric") == metric)
    client = ["client_id", "node"] if table is CLIENT_METRICS else []
    wanted = ["cluster", "topic", "hour", "at", measured, *client]
    found: dict[Place, list[tuple[Any, float]]] = {}
    for row in lake.read(table, where & (ds.field(measured) > 0), wanted).to_pylist():
        if row.get("node") is None:
            place = (row["cluster"], row.get("client_id") or "", row["topic"] or "", row["hour"])
            found.setdefault(place, []).append((row["at"], row[measured]))
    return found
