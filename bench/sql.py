"""A warm question of `acktrail sql`, against DuckDB on the same Delta tables.

On the demo's lake, where Spark's planning is all there is to see, and on ten million events. Both
keep their process and their connection; medians of the later repetitions.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import duckdb
import duckdb_extension_delta
import numpy as np
import pyarrow as pa

from acktrail.contracts.arrow import schema
from acktrail.contracts.silver import PRODUCER_EVENTS
from acktrail.lake import Lake
from acktrail.settings.spark import SparkSettings
from bench.cost import environment
from bench.ratio import ratio_row
from pipelines import session
from pipelines.adhoc.ask import Asker

EVENTS, PORTION = 10_000_000, 1_000_000
START = datetime(2026, 1, 1, tzinfo=UTC)
QUESTIONS = (
    "SELECT error, count(*) AS n FROM producer_events GROUP BY error",
    "SELECT client_id, hour, count(*) AS n, min(attempts_left) AS left FROM producer_events "
    "WHERE topic = 'topic-3' GROUP BY client_id, hour ORDER BY n DESC LIMIT 20",
    "SELECT topic, count(DISTINCT client_id) AS clients, max(e.at) AS last "
    "FROM producer_events e WHERE error = 'NOT_ENOUGH_REPLICAS' GROUP BY topic",
)
WARM, COUNTED = 2, 5


def run() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as scratch:
        demo, large = Path(scratch) / "demo", Path(scratch) / "large"
        subprocess.run(
            [sys.executable, "-m", "acktrail", "demo", "--lake", str(demo)],
            env=environment(), stdout=subprocess.DEVNULL, check=True,
        )  # fmt: skip
        _write_events(Lake(large))
        spark = session.build(SparkSettings())
        try:
            return [
                row
                for name, place in (("demo", demo), ("10m_events", large))
                for row in _compare(name, Asker(spark, Lake(place)), place)
            ]
        finally:
            session.stop(spark)


def _compare(name: str, asker: Asker, place: Path) -> list[dict[str, Any]]:
    duck = _duck(place)
    found = []
    for number, text in enumerate(QUESTIONS, start=1):
        ours = _seconds(lambda text=text: asker.ask(text, limit=1000, timeout_s=600))  # type: ignore[misc]
        theirs = _seconds(lambda text=text: duck.execute(text).to_arrow_table())  # type: ignore[misc]
        found.append(ratio_row(f"sql_warm_{name}_{number}", ours, "DuckDB, delta_scan", theirs))
    return found


def _duck(place: Path) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    shipped = Path(duckdb_extension_delta.__file__).parent
    (extension,) = shipped.rglob("delta.duckdb_extension")
    connection.execute(f"LOAD '{extension}'")
    path = place / PRODUCER_EVENTS.layer / PRODUCER_EVENTS.name
    connection.execute(f"CREATE VIEW producer_events AS SELECT * FROM delta_scan('{path}')")
    return connection


def _seconds(ask: Callable[[], object]) -> float:
    took = []
    for _ in range(WARM + COUNTED):
        began = time.perf_counter()
        ask()
        took.append(time.perf_counter() - began)
    return median(took[WARM:])


def _write_events(lake: Lake) -> None:
    """Retries of 200 clients in 20 topics over two days."""
    random = np.random.default_rng(7)
    errors = np.array(["NOT_ENOUGH_REPLICAS", "REQUEST_TIMED_OUT", "NETWORK_EXCEPTION"])
    for first in range(0, EVENTS, PORTION):
        seconds = np.sort(random.integers(0, 17_280, PORTION)) + 17_280 * (first // PORTION)
        at = [START + timedelta(seconds=int(s)) for s in range(172_800)]
        hours = np.array([f"{each:%Y-%m-%dT%H}" for each in at])
        client = random.integers(0, 200, PORTION)
        keys = pa.array([f"logs/f{c}/{first + i}" for i, c in enumerate(client)])
        instants = (seconds.astype("int64") + int(START.timestamp())) * 1_000_000
        columns: dict[str, Any] = {
            "cluster": pa.repeat(pa.scalar("bench"), PORTION),
            "event_key": keys,
            "record_key": keys,
            "source": pa.repeat(pa.scalar("logs"), PORTION),
            "kind": pa.repeat(pa.scalar("retry"), PORTION),
            "at": pa.array(instants).cast(pa.timestamp("us", "UTC")),
            "client_id": pa.array(np.char.add("client-", client.astype(str))),
            "topic": pa.array(np.char.add("topic-", (client % 20).astype(str))),
            "partition": pa.array(random.integers(0, 12, PORTION)),
            "error": pa.array(errors[random.integers(0, 3, PORTION)]),
            "attempts_left": pa.array(random.integers(0, 2**31 - 1, PORTION)),
            "hour": pa.array(hours[seconds]),
        }
        fields = schema(PRODUCER_EVENTS)
        arrays = [
            columns[field.name].cast(field.type)
            if field.name in columns
            else pa.nulls(PORTION, field.type)
            for field in fields
        ]
        lake.append(PRODUCER_EVENTS, pa.Table.from_arrays(arrays, schema=fields))
