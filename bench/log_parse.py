"""Log lines to rows of a table: Spark (the real job, warm), DuckDB and Polars, on the same lines.

Three million lines, 660 MB: half of them noise, a third retries, the rest connection failures,
invalid metadata and, rarely, what only the reader knows (expiries over two lines, librdkafka).
The peers read the same Parquet files in the same run and write the same columns, typed, to
Parquet by hour: fields by regular expression, the record's key, the instant, and of the error
whether it is retriable and its category. Spark's time is the whole run of the job: read, extract,
conform, count, commit. Last, the same fields by Spark's own SQL expressions, to say what the
pass through Python costs or saves.
"""
# ruff: noqa: E501 - log lines and expressions.

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from acktrail.contracts.arrow import schema
from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.lake import Lake
from acktrail.logs.kafka_errors import catalogue, category, retriable
from acktrail.settings.spark import SparkSettings
from bench.ratio import ratio_row
from pipelines import runner, session
from pipelines.silver.common_lines import LINES
from pipelines.silver.log_events import PRODUCER_JOB

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LINE_COUNT = int(os.environ.get("ACKTRAIL_BENCH_LINES", "3000000"))
BAR = 1.3
AT = datetime(2026, 1, 31, 7, 0, tzinfo=UTC)
_CHUNK = 250_000
_NAMES = (
    "moment", "millis", "level", "client_id", "topic", "partition", "correlation_id",
    "attempts_left", "error", "message", "elapsed_ms", "node", "records", "logger",
)  # fmt: skip
_EXPIRED = (
    r"^\[(?P<moment>\d\d\d\d-\d\d-\d\d \d\d:\d\d:\d\d),(?P<millis>\d\d\d)\] (?P<level>[A-Z]+) [^\n]*\n"
    r"org\.apache\.kafka\.common\.errors\.(?P<error>TimeoutException): Expiring (?P<records>[0-9]+) "
    r"record\(s\) for (?P<topic>[A-Za-z0-9._-]+)-(?P<partition>[0-9]+):(?P<elapsed_ms>[0-9]+) ms"
)
_RDKAFKA = (
    r"^%(?P<level>[0-7])\|(?P<moment>[0-9]+)\.(?P<millis>\d\d\d)\|(?P<error>FAIL)\|"
    r"(?P<client_id>[^|#]+)#producer-[0-9]+\|[^\n]*\(after (?P<elapsed_ms>[0-9]+)ms"
)
_SHAPES = [(line.words, line.kind, line.detail, line.regex) for line in LINES]
_SHAPES += [
    ("Expiring ", "expired", "batch_expired", _EXPIRED),
    ("|FAIL|", "connection_failure", "rd_fail", _RDKAFKA),
]
_LONGS = ("partition", "correlation_id", "attempts_left", "elapsed_ms", "node", "records")


def run() -> list[dict[str, Any]]:
    scratch = Path(tempfile.mkdtemp(prefix="acktrail-bench-"))
    try:
        lake = _lake(Path(os.environ.get("ACKTRAIL_BENCH_DATA", scratch)) / f"lake-{LINE_COUNT}")
        files = sorted(str(f) for f in Path(lake.path(LOG_RECORDS)).rglob("*.parquet"))
        spark_s, ours, sql_s, also = _spark(lake, files, scratch)
        duckdb_s, theirs = _best(lambda: _duckdb(files, scratch / "duckdb"))
        polars_s, others = _best(lambda: _polars(files, scratch / "polars"))
        if not ours == theirs == others == also:
            counts = f"Spark {ours}, DuckDB {theirs}, Polars {others}, Spark's SQL {also}"
            raise AssertionError(f"rows differ: {counts}")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return [
        ratio_row("log_parse_spark_vs_duckdb", spark_s, "duckdb", duckdb_s, BAR),
        ratio_row("log_parse_spark_vs_polars", spark_s, "polars", polars_s, None),
        ratio_row("log_parse_arrow_vs_sql", spark_s, "spark sql", sql_s, None),
    ]


def _lake(place: Path) -> Lake:
    """The lines, made once where they are kept (ACKTRAIL_BENCH_DATA), else for this run."""
    lake = Lake(place)
    if not place.exists():
        for start in range(0, LINE_COUNT, _CHUNK):
            lake.append(LOG_RECORDS, _records(start, min(_CHUNK, LINE_COUNT - start)))
    return lake


def _best(work: Callable[[], int], times: int = 2) -> tuple[float, int]:
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        rows = work()
        taken.append(time.perf_counter() - began)
    return min(taken), rows


def _spark(lake: Lake, files: list[str], scratch: Path) -> tuple[float, int, float, int]:
    """The job itself, twice into fresh tables after a smaller run that warms the JVM; then SQL."""
    table = Path(lake.path(PRODUCER_JOB.output))
    shutil.rmtree(table, ignore_errors=True)  # of kept lines; then all of them are new
    spark = session.build(
        SparkSettings(master="local[2]"), long_job=runner.is_long([PRODUCER_JOB], lake)
    )
    try:
        small = Lake(scratch / "small")
        small.append(LOG_RECORDS, _records(0, min(LINE_COUNT, _CHUNK)))
        runner.run(PRODUCER_JOB, small, lambda: spark, AT)

        def whole() -> int:
            shutil.rmtree(table, ignore_errors=True)
            return runner.run(PRODUCER_JOB, lake, lambda: spark, AT).rows_out

        ours = _best(whole)
        return *ours, *_best(lambda: _spark_sql(spark, files, scratch / "sql"), times=1)
    finally:
        session.stop(spark)


def _spark_sql(spark: SparkSession, files: list[str], out: Path) -> int:
    """The same fields by `regexp_extract`, one call for each."""
    from pyspark.sql import functions as F

    text = F.col("text")
    holds = [text.contains(words) for words, *_ in _SHAPES]
    found = {name: F.lit(None).cast("string") for name in _NAMES}
    for number, (*_, regex) in reversed(list(enumerate(_SHAPES))):
        plain, names = _plain(regex)
        for group, name in enumerate(names, 1):
            value = F.regexp_extract(text, plain, group)
            found[name] = F.when(holds[number], value).otherwise(found[name])
    kind, detail = F.lit(None), F.lit(None)
    for held, (_, its_kind, its_detail, _) in reversed(list(zip(holds, _SHAPES, strict=True))):
        kind = F.when(held, its_kind).otherwise(kind)
        detail = F.when(held, its_detail).otherwise(detail)
    known = spark.createDataFrame(_errors(), "error string, retriable boolean, category string")
    lines = spark.read.parquet(*files).select(
        "cluster", "source", "host",
        F.concat_ws("/", "source", "file_id", F.col("position").cast("string")).alias("record_key"),
        kind.alias("kind"), detail.alias("detail"),
        *(value.alias(name) for name, value in found.items()),
    )  # fmt: skip
    at = F.coalesce(
        F.try_to_timestamp("moment", F.lit("yyyy-MM-dd HH:mm:ss")),
        F.timestamp_seconds(F.col("moment").try_cast("bigint")),
    ) + F.make_dt_interval(secs=F.col("millis").try_cast("decimal(18,6)") / 1000)
    rows = (
        lines.where("moment <> ''")
        .withColumns({name: F.col(name).try_cast("bigint") for name in _LONGS})
        .withColumns({"at": at, "event_key": F.col("record_key")})
        .withColumn("hour", F.date_format("at", "yyyy-MM-dd'T'HH"))
        .join(F.broadcast(known), "error", "left")
    )
    rows.write.mode("overwrite").partitionBy("hour").parquet(str(out))
    return _written(out)


def _written(out: Path) -> int:
    return sum(pq.ParquetFile(file).metadata.num_rows for file in out.rglob("*.parquet"))


def _errors() -> list[tuple[str, bool | None, str | None]]:
    return [(name, retriable(name), category(name)) for name in sorted(catalogue())]


def _plain(regex: str) -> tuple[str, list[str]]:
    """The expression with numbered groups, and their names in order."""
    return re.sub(r"\(\?P<\w+>", "(", regex), re.findall(r"\(\?P<(\w+)>", regex)


def _duckdb(files: list[str], out: Path) -> int:
    shutil.rmtree(out, ignore_errors=True)
    shapes = ", ".join(_shape(number, shape[-1]) for number, shape in enumerate(_SHAPES))
    chosen = " ".join(
        f"WHEN contains(text, '{words}') THEN {i}" for i, (words, *_) in enumerate(_SHAPES)
    )
    kinds = " ".join(f"WHEN {i} THEN '{kind}'" for i, (_, kind, *_) in enumerate(_SHAPES))
    details = " ".join(f"WHEN {i} THEN '{detail}'" for i, (*_, detail, _) in enumerate(_SHAPES))
    columns = ", ".join(f"{_any(name)} AS {name}" for name in _NAMES)
    sql = f"""
        COPY (
            WITH shaped AS (
                SELECT cluster, source, host, file_id, position, text, CASE {chosen} END AS shape
                FROM read_parquet({files!r}, hive_partitioning = true)
            ), said AS (SELECT *, {shapes} FROM shaped WHERE shape IS NOT NULL),
            named AS (
                SELECT cluster, source, host, concat_ws('/', source, file_id, position) AS record_key,
                       record_key AS event_key,
                       CASE shape {kinds} END AS kind, CASE shape {details} END AS detail, {columns}
                FROM said
            )
            SELECT named.*, retriable, category,
                   coalesce(try_strptime(moment, '%Y-%m-%d %H:%M:%S'),
                       make_timestamp(try_cast(moment AS BIGINT) * 1000000))
                       + to_milliseconds(millis::BIGINT) AS moment_at,
                   strftime(moment_at, '%Y-%m-%dT%H') AS hour
            FROM named LEFT JOIN errors USING (error) WHERE moment <> ''
        ) TO '{out}' (FORMAT parquet, PARTITION_BY (hour))
    """
    with duckdb.connect(config={"threads": 2, "memory_limit": "4GB"}) as connection:
        connection.execute("CREATE TABLE errors (error TEXT, retriable BOOLEAN, category TEXT)")
        connection.executemany("INSERT INTO errors VALUES (?, ?, ?)", _errors())
        answer = connection.execute(sql).fetchone()
    return int(answer[0]) if answer else 0


def _shape(number: int, regex: str) -> str:
    plain, names = _plain(regex)
    listed = ", ".join(f"'{name}'" for name in names)
    quoted = plain.replace("'", "''")
    return f"CASE WHEN shape = {number} THEN regexp_extract(text, '{quoted}', [{listed}]) END AS s{number}"


def _any(name: str) -> str:
    having = [f"s{i}.{name}" for i, (*_, regex) in enumerate(_SHAPES) if f"(?P<{name}>" in regex]
    value = f"coalesce({', '.join(having)})"
    return f"try_cast({value} AS BIGINT)" if name in _LONGS else value


def _polars(files: list[str], out: Path) -> int:
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    lines = pl.scan_parquet(files).select(
        "cluster", "source", "host", "file_id", "position", "text"
    )
    seen = pl.lit(False)
    parts = []
    for words, kind, detail, regex in _SHAPES:
        holds = pl.col("text").str.contains(words, literal=True)
        said = pl.col("text").str.extract_groups(regex)
        part = lines.filter(holds & ~seen).with_columns(
            said.alias("said"), pl.lit(kind).alias("kind"), pl.lit(detail).alias("detail")
        )
        part = part.filter(pl.col("said").struct.field("moment").is_not_null())
        parts.append(part.unnest("said").drop("text"))
        seen = seen | holds
    named = pl.concat(parts, how="diagonal")
    local = pl.col("moment").str.strptime(pl.Datetime("us"), "%Y-%m-%d %H:%M:%S", strict=False)
    epoch = pl.from_epoch(pl.col("moment").cast(pl.Int64, strict=False), time_unit="s").cast(
        pl.Datetime("us")
    )
    at = pl.coalesce(local, epoch) + pl.duration(milliseconds=pl.col("millis").cast(pl.Int64))
    key = pl.concat_str("source", "file_id", "position", separator="/")
    known = pl.LazyFrame(_errors(), ["error", "retriable", "category"], orient="row")
    rows = named.with_columns(
        at.alias("at"),
        at.dt.strftime("%Y-%m-%dT%H").alias("hour"),
        key.alias("record_key"),
        key.alias("event_key"),
        *(pl.col(name).cast(pl.Int64, strict=False) for name in _LONGS),
    ).join(known, on="error", how="left")
    rows.sink_parquet(out / "rows.parquet")
    return _written(out)


def _records(start: int, count: int) -> pa.Table:
    """Lines *start* to *start* + *count*, the same every time."""
    chance = np.random.default_rng(20260131 + start)
    kinds = chance.choice(len(_FORMS), size=count, p=_SHARES)
    numbers = chance.integers(0, 2**31, size=(count, 3))
    texts = []
    for i, kind in enumerate(kinds):
        moment = AT + timedelta(milliseconds=3 * (start + i))
        stamp = moment.strftime("%Y-%m-%d %H:%M:%S,") + f"{moment.microsecond // 1000:03d}"
        a, b, c = (int(n) for n in numbers[i])
        epoch = int(moment.timestamp())
        texts.append(
            _FORMS[kind].format(
                stamp=stamp, a=a, b=b, c=c % 32, topic=_TOPICS[a % 8], epoch=epoch, client=b % 64
            )
        )
    data = {
        "cluster": pa.repeat("bench", count),
        "source": pa.repeat("logs", count),
        "host": pa.repeat("host-1", count),
        "file_id": pa.repeat("f1", count),
        "path": pa.repeat("/var/log/app.log", count),
        "position": pa.array(range(220 * start, 220 * (start + count), 220), pa.int64()),
        "text": pa.array(texts, pa.string()),
        "truncated": pa.repeat(False, count),
        "read_at": pa.repeat(pa.scalar(AT, pa.timestamp("us", tz="UTC")), count),
        "day": pa.repeat("2026-01-31", count),
    }
    fields = schema(LOG_RECORDS)
    columns = [data.get(f.name, pa.nulls(count, f.type)) for f in fields]
    return pa.Table.from_arrays(columns, schema=fields)


_TOPICS = (
    "orders",
    "payments.v2",
    "clicks-eu",
    "audit_log",
    "shipments",
    "a-b-c",
    "users",
    "x.y-z",
)
_SENDER = "(org.apache.kafka.clients.producer.internals.Sender)"
_NETWORK = "(org.apache.kafka.clients.NetworkClient)"
_MIX = (
    # share, form
    (0.24, "[{stamp}] WARN [Producer clientId=orders-svc-{client}] Got error produce response with "
     "correlation id {a} on topic-partition {topic}-{c}, retrying ({b} attempts left). Error: "
     "NOT_ENOUGH_REPLICAS " + _SENDER),
    (0.10, "[{stamp}] WARN [Producer clientId=orders-svc-{client}] Got error produce response with "
     "correlation id {a} on topic-partition {topic}-{c}, retrying ({b} attempts left). Error: "
     "REQUEST_TIMED_OUT. Error Message: Disconnected from node {c} due to timeout " + _SENDER),
    (0.05, "[{stamp}] WARN [Producer clientId=orders-svc-{client}] Received invalid metadata error in "
     "produce request on partition {topic}-{c} due to org.apache.kafka.common.errors.NetworkException: "
     "Disconnected from node {c}. Going to request metadata update now " + _SENDER),
    (0.06, "[{stamp}] INFO [Producer clientId=orders-svc-{client}] Cancelled in-flight PRODUCE request "
     "with correlation id {a} due to node {c} being disconnected (elapsed time since creation: {b}ms, "
     "elapsed time since send: {b}ms, throttle time: 0ms, request timeout: 30000ms) " + _NETWORK),
    (0.04, "[{stamp}] INFO [Producer clientId=orders-svc-{client}] Node {c} disconnected. " + _NETWORK),
    (0.005, "[{stamp}] ERROR send failed for order {a} (com.example.orders.Sender)\norg.apache.kafka."
     "common.errors.TimeoutException: Expiring {c} record(s) for {topic}-{c}:{b} ms has passed since "
     "batch creation"),
    (0.005, "%3|{epoch}.200|FAIL|billing-{client}#producer-1| [thrd:b1:9092/1]: b1:9092/1: Connect to "
     "ipv4#10.0.0.5:9092 failed: Connection refused (after {c}ms in state CONNECT)"),
    (0.20, "[{stamp}] INFO [Broker id={c}] Leader {topic}-{c} with topic id Some(3DxQ8q2dTvC0u7WJgJ0y2w)"
     " starts at leader epoch {c} from offset {a} with partition epoch {c}, high watermark {b}, ISR "
     "[1,2,3], adding replicas [] and removing replicas [] (state.change.logger)"),
    (0.30, "[{stamp}] INFO order {a} of customer {b} was priced, reserved and handed to the outbox in "
     "{c} ms; the next check of its stock is due with the nightly run of warehouse {client} "
     "(com.example.orders.pricing.OrderPricingService)"),
)  # fmt: skip
_FORMS = tuple(form for _, form in _MIX)
_SHARES = np.array([share for share, _ in _MIX]) / sum(share for share, _ in _MIX)
