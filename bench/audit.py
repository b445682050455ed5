"""The exact audit: from reports, against anti-joins on the per-message rows by DuckDB and Polars.

All find the same: per session what was acked, stored and delivered, and exactly which ids are lost.
Sizes by environment: ACKTRAIL_BENCH_MESSAGES (20,000,000), so that a small machine can try it.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow.parquet as pq

from acktrail.contracts.bronze import AUDIT_REPORTS
from acktrail.contracts.vocabulary import Tier
from acktrail.lake import Lake
from bench.audit_data import START, TIERS, Session, encode, report_rows, sessions, write_rows

MESSAGES = int(os.environ.get("ACKTRAIL_BENCH_MESSAGES", "20000000"))
SESSIONS = 200
START_MS = int(START.timestamp() * 1000)
BOOKS = ("audit_parts", "audit_blocks", "delivery_ledger", "loss_events", "loss_incidents")


def run() -> list[dict[str, Any]]:
    from pipelines import session

    spark = session.build("local[*]")
    try:
        with tempfile.TemporaryDirectory() as directory:
            return [*_against_joins(Path(directory), spark), _ten_times(Path(directory), spark)]
    finally:
        session.stop(spark)


def _against_joins(directory: Path, spark: Any) -> list[dict[str, Any]]:
    made = list(sessions(SESSIONS, MESSAGES // SESSIONS, START_MS))
    for tier in TIERS:
        write_rows(str(directory / f"{tier.value}.parquet"), tier, made)
    lake = Lake(directory / "lake")
    lake.append(AUDIT_REPORTS, report_rows(made, START_MS))
    lost = {(s.name, seq) for s in made for seq in np.flatnonzero(s.lost).tolist()}
    ours, found = _best(lambda: _from_reports(lake, spark))
    assert found == lost, "the audit is wrong"
    by_duckdb, found = _best(lambda: _duckdb(directory))
    assert found == lost
    by_polars, found = _best(lambda: _polars(directory))
    assert found == lost
    encoding = _timed(lambda: _encoded(directory, made))[0]
    report_mb = _size(directory / "lake" / "bronze" / "audit_reports")
    rows_mb = sum((directory / f"{t.value}.parquet").stat().st_size for t in TIERS) / 1e6
    return [
        _row("audit_vs_duckdb", ours, "duckdb", by_duckdb, 1.0),
        _row("audit_vs_polars", ours, "polars", by_polars, 1.0),
        _row("audit_with_encoding_vs_duckdb", ours + encoding, "duckdb", by_duckdb, None),
        _row("audit_mb_vs_rows_mb", report_mb, "parquet, zstd", rows_mb, None),
    ]


def _from_reports(lake: Lake, spark: Any) -> set[tuple[str, int]]:
    """Reports to accounts with the exact lost ids, in one pass through the jobs' transforms."""
    from acktrail.contracts.bronze import CLUSTER_CONFIGS, CLUSTER_STATES, GROUP_OFFSETS
    from pipelines import runner
    from pipelines.gold.delivery_ledger import balance
    from pipelines.job import Options
    from pipelines.silver import audit_parts
    from pipelines.silver.audit_blocks import fold_parts
    from pipelines.spark_schema import loose

    others = (CLUSTER_STATES, GROUP_OFFSETS, CLUSTER_CONFIGS)
    empty = {table.name: runner.whole(spark, lake, table) for table in others}
    read = runner.whole(spark, lake, AUDIT_REPORTS)
    place = audit_parts.reader(Options())
    parts = read.select(*audit_parts.COLUMNS).mapInArrow(
        lambda batches: (rows for batch in batches for rows in place(batch).rows),
        loose(audit_parts.JOB.output),
    )
    parts.cache()
    blocks = fold_parts({"audit_parts": parts}, None, Options()).drop("bitmap").cache()
    inputs = {"audit_parts": parts, "audit_blocks": blocks, **empty}
    ledger = balance(inputs, None, Options())
    accounts = ledger.where("group = ''").select("session", "residual", "findings").collect()
    parts.unpersist()
    blocks.unpersist()
    assert not any(a.residual for a in accounts)
    return {
        (a.session, seq)
        for a in accounts
        for f in a.findings
        for seq in range(f.first_seq, f.last_seq + 1)
    }


def _duckdb(directory: Path) -> set[tuple[str, int]]:
    paths = {t.value: f"'{directory / f'{t.value}.parquet'}'" for t in TIERS}
    counts = " UNION ALL ".join(
        f"SELECT session, '{name}' tier, count(*) n, count(DISTINCT seq) ids "
        f"FROM {path} GROUP BY session"
        for name, path in paths.items()
    )
    with duckdb.connect() as connection:
        connection.execute(counts).fetchall()
        lost = connection.execute(
            f"SELECT session, seq FROM {paths['acked']} a ANTI JOIN {paths['in_log']} l "
            "USING (session, seq)"
        ).fetchall()
        connection.execute(
            f"SELECT count(*) FROM {paths['in_log']} l ANTI JOIN {paths['delivered']} d "
            "USING (session, seq)"
        ).fetchall()
    return set(lost)


def _polars(directory: Path) -> set[tuple[str, int]]:
    tiers = {t: pl.scan_parquet(directory / f"{t.value}.parquet") for t in TIERS}
    for frame in tiers.values():
        frame.group_by("session").agg(pl.len(), pl.col("seq").n_unique().alias("ids")).collect()
    key = ["session", "seq"]
    lost = tiers[Tier.ACKED].join(tiers[Tier.IN_LOG], on=key, how="anti").select(key).collect()
    tiers[Tier.IN_LOG].join(tiers[Tier.DELIVERED], on=key, how="anti").select(pl.len()).collect()
    return set(lost.rows())


def _encoded(directory: Path, made: list[Session]) -> int:
    """From the per-message rows to run lists."""
    count = 0
    for tier in TIERS:
        table = pq.read_table(
            directory / f"{tier.value}.parquet", columns=["seq", "partition", "offset"]
        )
        columns = [table.column(i).to_numpy() for i in range(3)]
        starts = np.flatnonzero(np.diff(columns[0], prepend=1) < 0)
        for session, first, last in zip(made, starts, [*starts[1:], len(columns[0])], strict=True):
            own = [c[first:last] for c in columns]
            count += sum(1 for _ in encode(session.name, tier, own[0], own[1], own[2], START_MS))
    return count


def _ten_times(directory: Path, spark: Any) -> dict[str, Any]:
    """A run on one hour of evidence, with two hours of history, and with twenty."""
    times = [_run_after(directory / f"after-{hours}", hours, spark) for hours in (2, 20)]
    return _row("run_10x_history", times[1], "with 1x history", times[0], 1.2)


def _run_after(path: Path, hours: int, spark: Any) -> float:
    lake = Lake(path)
    for hour in range(hours):
        began = START_MS - (hours - hour) * 3_600_000
        made = list(sessions(10, MESSAGES // 400, began, hour))
        lake.append(AUDIT_REPORTS, report_rows(made, began))
    _run_books(lake, spark)
    made = list(sessions(10, MESSAGES // 400, START_MS, hours))
    lake.append(AUDIT_REPORTS, report_rows(made, START_MS))
    return _timed(lambda: _run_books(lake, spark))[0]


def _run_books(lake: Lake, spark: Any) -> None:
    from pipelines import runner
    from pipelines.registry import jobs_named

    for job in jobs_named(BOOKS):
        runner.run(job, lake, lambda: spark, datetime.now(UTC))


def _best(work: Callable[[], Any]) -> tuple[float, Any]:
    """The best of three runs: the first warms up."""
    runs = [_timed(work) for _ in range(3)]
    return min(seconds for seconds, _ in runs), runs[0][1]


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def _size(directory: Path) -> float:
    return sum(f.stat().st_size for f in directory.rglob("*.parquet")) / 1e6


def _row(name: str, ours: float, peer: str, theirs: float, bar: float | None) -> dict[str, Any]:
    return {
        "name": name,
        "ours_s": round(ours, 3),
        "peer": peer,
        "peer_s": round(theirs, 3),
        "ratio": round(ours / theirs, 3),
        "bar": bar,
    }
