"""Audit sessions under the names of logs and metrics: the alias rules as Spark calls them."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from acktrail.aliases import Aliases, named_session
from pipelines.job import Options


def after_aliases(reports: DataFrame, options: Options) -> DataFrame:
    """*reports* with the client id and host in `settings` after the alias rules."""
    if not options.aliases:
        return reports
    aliases = Aliases(tuple(options.aliases))

    def named(settings: Mapping[str, str] | None, session: str) -> dict[str, str | None] | None:
        return None if settings is None else named_session(settings, session, aliases)

    renamed = F.udf(named, "map<string,string>", useArrow=False)
    return reports.withColumn("settings", renamed("settings", "session"))
