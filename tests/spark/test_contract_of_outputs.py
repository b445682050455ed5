"""What a job makes fits its table's contract, or nothing of it is written."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from acktrail.contracts.arrow import rows
from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.contracts.gold import DELIVERY_LEDGER, LOSS_INCIDENTS
from acktrail.contracts.silver import CLIENT_METRICS, UNREAD_RECORDS
from acktrail.errors import ContractError
from acktrail.lake import Lake
from pipelines import runner
from pipelines.job import Fold, Job, Map, Read, everything

NOW = datetime(2026, 1, 31, 7, tzinfo=UTC)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(tmp_path)
    record = {
        "cluster": "c", "source": "s", "file_id": "f", "position": 1, "text": "x",
        "truncated": False, "read_at": NOW, "day": "2026-01-31",
    }  # fmt: skip
    made.append(LOG_RECORDS, rows(LOG_RECORDS, [record]))
    return made


def refused(lake: Lake, spark: SparkSession, job: Job, complaint: str) -> None:
    with pytest.raises(ContractError, match=complaint):
        runner.run(job, lake, lambda: spark, NOW)
    assert not lake.files(job.output)
    assert lake.consumed(job.output, job.name) is None, "the refused run counts as done"


# -- folds: frames ------------------------------------------------------------------------------


def fold(change: Callable[[DataFrame], DataFrame]) -> Fold:
    def transform(inputs: dict[str, DataFrame], _keys: object, _options: object) -> DataFrame:
        values = {
            "cluster": "cluster", "source": "source", "series": "'s'", "metric": "'m'",
            "at": "read_at", "value": "1.0D", "hour": "'2026-01-31T07'",
        }  # fmt: skip
        named = {n: v for n, v in values.items() if n in CLIENT_METRICS.names}
        good = inputs[LOG_RECORDS.name].selectExpr(*(f"{v} AS `{n}`" for n, v in named.items()))
        return change(good)

    return Fold((LOG_RECORDS,), CLIENT_METRICS, everything, transform)


FRAMES: dict[str, tuple[Callable[[DataFrame], DataFrame], str]] = {
    "a required column is missing": (
        lambda f: f.drop("metric"),
        "missing columns: +metric",
    ),
    "a column nobody declared": (
        lambda f: f.withColumn("colour", F.lit("red")),
        "unexpected columns: +colour",
    ),
    "a number where text belongs": (
        lambda f: f.withColumn("metric", F.lit(7)),
        "metric is int, not string",
    ),
    "a required value is null": (
        lambda f: f.withColumn("metric", F.lit(None).cast("string")),
        "client_metrics.metric is required, and 1 of 1 rows have none",
    ),
}


@pytest.mark.parametrize("case", FRAMES)
def test_a_frame_that_breaks_its_contract_is_refused(
    case: str, lake: Lake, spark: SparkSession
) -> None:
    change, complaint = FRAMES[case]
    refused(lake, spark, fold(change), complaint)
    done = runner.run(fold(lambda f: f), lake, lambda: spark, NOW)
    assert done.rows_out == 1, "mended, it goes through"


def test_a_value_that_is_not_allowed_is_refused(lake: Lake, spark: SparkSession) -> None:
    def strange(inputs: dict[str, DataFrame], _keys: object, _options: object) -> DataFrame:
        values = {c.name: FITTING.get(c.kind, "NULL") for c in LOSS_INCIDENTS.columns}
        values |= {
            c.name: f"'{next(iter(c.values)).value}'" for c in LOSS_INCIDENTS.columns if c.values
        }
        values["cause"] = "'surprise'"
        return inputs[LOG_RECORDS.name].selectExpr(*(f"{v} AS `{n}`" for n, v in values.items()))

    job = Fold((LOG_RECORDS,), LOSS_INCIDENTS, everything, strange)
    refused(lake, spark, job, r"loss_incidents.cause: \['surprise'\] is not one of")


FITTING = {"string": "'1'", "long": "1L", "timestamp": "read_at", "boolean": "true"}
STRUCTS: dict[str, tuple[dict[str, str], str]] = {
    "a required field is null": (
        {"reason": "CAST(NULL AS STRING)"},
        "delivery_ledger.findings.reason is required, and 1 of 1 rows have none",
    ),
    "a word that is not allowed": (
        {"state": "'surprise'"},
        r"delivery_ledger.findings.state: \['surprise'\] is not one of",
    ),
    "a number where text belongs": ({"error": "7"}, "findings is array<struct<.*error:int,"),
    "a field nobody declared": ({"colour": "'red'"}, "findings is array<struct<.*colour:string>>"),
}


@pytest.mark.parametrize("case", STRUCTS)
def test_a_struct_that_breaks_its_contract_is_refused(
    case: str, lake: Lake, spark: SparkSession
) -> None:
    change, complaint = STRUCTS[case]

    def job(change: dict[str, str]) -> Fold:
        def transform(inputs: dict[str, DataFrame], _keys: object, _options: object) -> DataFrame:
            fields = DELIVERY_LEDGER.column("findings").fields
            struct = {f.name: FITTING[f.kind] for f in fields} | {"state": "'pending'"} | change
            named = ", ".join(f"'{n}', {v}" for n, v in struct.items())
            values = {c.name: FITTING.get(c.kind, "NULL") for c in DELIVERY_LEDGER.columns}
            values["findings"] = f"array(named_struct({named}))"
            rows = inputs[LOG_RECORDS.name]
            return rows.selectExpr(*(f"{v} AS `{n}`" for n, v in values.items()))

        return Fold((LOG_RECORDS,), DELIVERY_LEDGER, everything, transform)

    refused(lake, spark, job(change), complaint)
    assert runner.run(job({}), lake, lambda: spark, NOW).rows_out == 1, "mended, it goes through"


def test_who_is_overtaken_while_it_writes_computes_again(lake: Lake, spark: SparkSession) -> None:
    """Another writer replaces the rows while the fold is computed, and before it commits."""
    path = lake.path(CLIENT_METRICS)
    runner.run(fold(lambda f: f), lake, lambda: spark, NOW)
    lake.append(LOG_RECORDS, lake.read(LOG_RECORDS))
    computed = []

    def overtaken(frame: DataFrame) -> DataFrame:
        computed.append(frame)
        if len(computed) == 1:
            found = DeltaTable(path)
            write_deltalake(found, found.to_pyarrow_table(), mode="overwrite")
        return frame

    assert runner.run(fold(overtaken), lake, lambda: spark, NOW).rows_out == 2
    assert len(computed) == 2, "what was computed on the old rows is not committed"
    assert lake.read(CLIENT_METRICS).num_rows == 2


# -- maps: batches ------------------------------------------------------------------------------


def mapped(change: Callable[[dict[str, list[object]]], object], dropped: str | None = None) -> Map:
    def read(batch: pa.RecordBatch) -> Read:
        n = batch.num_rows
        made: dict[str, list[object]] = {
            name: ["x"] * n for name in UNREAD_RECORDS.names if name != "day"
        }
        made["day"] = batch.column("day").to_pylist()
        change(made)
        return Read([pa.RecordBatch.from_pydict(made)], {dropped: 1} if dropped else {})

    return Map(LOG_RECORDS, ("text", "day"), UNREAD_RECORDS, lambda _options: read)


BATCHES: dict[str, tuple[Map, str]] = {
    "a required column is missing": (
        mapped(lambda made: made.pop("record_key")),
        "missing columns: +record_key",
    ),
    "a column nobody declared": (
        mapped(lambda made: made.update(colour=["red"])),
        "unexpected columns: +colour",
    ),
    "text that is no text": (
        mapped(lambda made: made.update(reason=[[1]])),
        "unread_records.reason: list.* does not fit string",
    ),
    "a required value is null": (
        mapped(lambda made: made.update(record_key=[None])),
        "unread_records.record_key is required",
    ),
    "dropped for a reason it does not name": (
        mapped(lambda _made: None, dropped="boredom"),
        "a reason it does not name: boredom",
    ),
}


@pytest.mark.parametrize("case", BATCHES)
def test_a_batch_that_breaks_its_contract_is_refused(
    case: str, lake: Lake, spark: SparkSession
) -> None:
    job, complaint = BATCHES[case]
    refused(lake, spark, job, complaint)
    done = runner.run(mapped(lambda _made: None), lake, lambda: spark, NOW)
    assert done.rows_out == 1, "mended, it goes through"
