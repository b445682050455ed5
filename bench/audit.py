"""The exact audit: from reports, against anti-joins on the per-message rows by DuckDB and Polars.

All find the same: per session what was acked, stored and delivered, and exactly which ids are lost.
Ours is what `acktrail run` does from `audit_parts` to `loss_incidents`: five jobs by the runner, on
a lake that has reports only, with their files, commits and rows of `runs`. The Spark session is
warm, as in a long job: its start is not included, and the best of three runs counts for all three.

Twice: keyed messages over 12 partitions (the ids of a partition are scattered), and unkeyed ones,
of which a whole batch goes to one partition (ids come in runs).
Sizes by environment: ACKTRAIL_BENCH_MESSAGES (20,000,000), so that a small machine can try it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from acktrail.contracts.bronze import AUDIT_REPORTS
from acktrail.contracts.gold import DELIVERY_LEDGER
from acktrail.contracts.vocabulary import Tier
from acktrail.lake import Lake
from bench.audit_data import START, TIERS, Session, encode, report_rows, sessions, write_rows
from bench.ratio import ratio_row

MESSAGES = int(os.environ.get("ACKTRAIL_BENCH_MESSAGES", "20000000"))
SESSIONS = 200
START_MS = int(START.timestamp() * 1000)
AUDIT = ("audit_parts", "audit_blocks", "delivery_ledger", "loss_events", "loss_incidents")
_ACCOUNT = ["session", "residual", "findings"]


KINDS = {"keyed": 1, "unkeyed": 100}
"""How many messages in a row go to one partition."""


def run() -> list[dict[str, Any]]:
    from pipelines import session

    spark = session.build(long_job=True)
    rows = []
    try:
        for kind, batch in KINDS.items():
            with tempfile.TemporaryDirectory() as directory:
                rows += _against_joins(kind, batch, Path(directory), spark)
    finally:
        session.stop(spark)
    return rows


def _against_joins(kind: str, batch: int, directory: Path, spark: Any) -> list[dict[str, Any]]:
    made = list(sessions(SESSIONS, MESSAGES // SESSIONS, START_MS, batch=batch))
    for tier in TIERS:
        write_rows(str(directory / f"{tier.value}.parquet"), tier, made)
    reports = directory / "reports"
    Lake(reports).append(AUDIT_REPORTS, report_rows(made, START_MS))
    lost = {(s.name, seq) for s in made for seq in np.flatnonzero(s.lost).tolist()}
    ours = min(_from_reports(reports, directory / "lake", lost, spark) for _ in range(3))
    by_duckdb, found = _best(lambda: _duckdb(directory))
    assert found == lost
    by_polars, found = _best(lambda: _polars(directory))
    assert found == lost
    encoding = _timed(lambda: _encoded(directory, made))[0]
    rows_mb = sum((directory / f"{t.value}.parquet").stat().st_size for t in TIERS) / 1e6
    return [
        ratio_row(f"audit_{kind}_vs_duckdb", ours, "duckdb", by_duckdb, 0.5),
        ratio_row(f"audit_{kind}_vs_polars", ours, "polars", by_polars, 0.8),
        ratio_row(
            f"audit_{kind}_with_encoding_vs_duckdb", ours + encoding, "duckdb", by_duckdb, 1.0
        ),
        *(
            ratio_row(
                f"audit_{kind}_{layer}_mb", _size(directory / "lake" / layer), "rows", rows_mb
            )
            for layer in ("bronze", "silver", "gold")
        ),
    ]


def _from_reports(reports: Path, path: Path, lost: set[tuple[str, int]], spark: Any) -> float:
    """Seconds from reports to incidents, on a lake of its own; its answer is checked."""
    from pipelines import runner
    from pipelines.registry import jobs_named

    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(reports, path)
    lake = Lake(path)

    def work() -> None:
        for job in jobs_named(AUDIT):
            runner.run(job, lake, lambda: spark, datetime.now(UTC))

    seconds, _ = _timed(work)
    accounts = lake.read(DELIVERY_LEDGER, ds.field("group") == "", _ACCOUNT).to_pylist()
    assert not any(a["residual"] for a in accounts)
    found = {
        (a["session"], seq)
        for a in accounts
        for f in a["findings"]
        for seq in range(f["first_seq"], f["last_seq"] + 1)
    }
    assert found == lost, "the audit is wrong"
    return seconds


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
