"""Which verdict replaced which: the difference between two states of `loss_events`."""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

_KEY = ("cluster", "session", "topic", "group", "first_seq")


def note_changes(before: DataFrame, after: DataFrame, as_of: datetime) -> DataFrame:
    """One row for each range of ids that got, changed or lost its verdict."""
    old = before.select(*_KEY, *_renamed("before"))
    new = after.select(*_KEY, *_renamed("after"))
    joined = old.join(new, list(_KEY), "full_outer")
    same = (
        F.col("before_state").eqNullSafe(F.col("after_state"))
        & F.col("before_cause").eqNullSafe(F.col("after_cause"))
        & F.col("before_last").eqNullSafe(F.col("after_last"))
    )
    withdrawn = F.lit("later evidence shows that they were not lost, or where the loss ends")
    return joined.where(~same).select(
        *_KEY,
        F.coalesce("after_last", "before_last").alias("last_seq"),
        *("before_state", "before_cause", "after_state", "after_cause"),
        F.coalesce("after_because", withdrawn).alias("because"),
        F.lit(as_of).cast("timestamp").alias("changed_at"),
    )


def _renamed(side: str) -> list[Column]:
    names = {"state": "state", "cause": "cause", "last_seq": "last", "because": "because"}
    return [F.col(column).alias(f"{side}_{short}") for column, short in names.items()]
