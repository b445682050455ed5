"""`client_configs`: the settings clients started with, and the guarantee they give.

A client prints its settings, then its version. The version decides what the settings mean, so a
day's blocks are read together with the version lines that follow them in the same file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from acktrail.aliases import Aliases
from acktrail.contracts.arrow import schema
from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.contracts.silver import CLIENT_CONFIGS
from acktrail.logs.configs import producer_settings
from acktrail.logs.event import Event
from acktrail.logs.reader import read_record
from acktrail.logs.times import instant
from pipelines.job import Evidence, Fold, Options
from pipelines.spark_schema import loose

_NEAR = 65_536
"""A version line stands this near behind its block, in bytes."""
_COLUMNS = ("cluster", "source", "host", "file_id", "path", "position", "text", "zone", "day")


def days_with_new_records(evidence: Evidence) -> frozenset[str]:
    """The days of reading that have new records."""
    return evidence.changed[LOG_RECORDS.name]


def records_of_days(_evidence: Evidence, keys: frozenset[str]) -> dict[str, ds.Expression]:
    """The records that were read on the days *keys*."""
    return {LOG_RECORDS.name: ds.field("day").isin(sorted(keys))}


def read_client_configs(
    inputs: Mapping[str, DataFrame], keys: frozenset[str] | None, options: Options
) -> DataFrame:
    """Read every configuration block, with the version printed after it."""
    records = inputs[LOG_RECORDS.name]
    if keys is not None:
        records = records.where(F.col("day").isin(sorted(keys)))
    of_file = Window.partitionBy("cluster", "source", "file_id").orderBy("position")
    behind = of_file.rangeBetween(1, _NEAR)
    version = F.regexp_extract("text", r"Kafka version ?: (\d[\w.-]*)", 1)
    printed = F.when(F.col("text").contains("Kafka version"), version)
    blocks = (
        records.where(F.col("text").rlike("(Producer|Consumer)Config values:|Kafka version"))
        .select(*_COLUMNS, F.first(printed, ignorenulls=True).over(behind).alias("version"))
        .where(F.col("text").rlike("(Producer|Consumer)Config values:"))
    )
    rules = tuple(options.aliases)
    out = pa.schema([pa.field(f.name, f.type) for f in schema(CLIENT_CONFIGS)])

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        aliases = Aliases(rules)
        for batch in batches:
            read = (_row(record, aliases) for record in batch.to_pylist())
            yield pa.RecordBatch.from_pylist([row for row in read if row is not None], schema=out)

    return blocks.mapInArrow(read, loose(CLIENT_CONFIGS))


def _row(record: dict[str, Any], aliases: Aliases) -> dict[str, Any] | None:
    event = read_record(record["text"])
    if not isinstance(event, Event) or event.settings is None:
        return None
    version = record["version"] or None
    facts = {"path": record["path"], "host": record["host"], "source": record["source"]}
    named = aliases.name(facts | {"client_id": event.client_id})
    row = {
        "cluster": record["cluster"],
        "record_key": f"{record['source']}/{record['file_id']}/{record['position']}",
        "source": record["source"],
        "host": named.host or record["host"],
        "role": event.side,
        "client_id": named.client_id or event.client_id,
        "started_at": instant(event.ts, record["zone"]),
        "client_version": version,
        "settings": event.settings,
        "day": record["day"],
    }
    if event.side == "producer":
        row |= asdict(producer_settings(event.settings, version))
    return row


JOB = Fold(
    (LOG_RECORDS,), CLIENT_CONFIGS, days_with_new_records, read_client_configs, records_of_days
)
