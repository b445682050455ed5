"""What the suites look at: a window of a table, read by delta-rs into pandas."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds

from acktrail.contracts import Table
from acktrail.contracts.gold import RETRY_BUDGETS
from acktrail.window import hour_of

if TYPE_CHECKING:
    import pandas as pd

    from acktrail.lake import Lake
    from expectations.suite import Question


def retry_budgets(lake: Lake, question: Question) -> pd.DataFrame | None:
    """The chains of retries that were open within the window."""
    opened = ds.field("opened_hour") >= hour_of(question.since - timedelta(hours=24))
    return frame(lake, RETRY_BUDGETS, opened & (ds.field("last_at") >= question.since))


def frame(lake: Lake, table: Table, where: Any = None) -> pd.DataFrame | None:
    """Rows of *table* as pandas; None where it was never written."""
    if not lake.exists(table):
        return None
    read: pd.DataFrame = lake.read(table, where).to_pandas(maps_as_pydicts="lossy")
    return read
