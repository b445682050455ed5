"""What `acktrail lab score` does: evidence through all jobs, answers against the truth."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from lab.score import Score


def put_through(places: Mapping[str, Path], lake_directory: Path) -> list[Score]:
    """Replay each run as a cluster of its own, run every job once, and score each."""
    from acktrail.contracts.gold import DELIVERY_LEDGER, LOSS_EVENTS
    from acktrail.lake import Lake
    from ingest.replay import replay
    from lab.score import score
    from pipelines import runner, session
    from pipelines.registry import JOBS

    lake = Lake(lake_directory)
    for name, place in places.items():
        replay(place, lake, name)
    spark = session.build()
    try:
        for job in JOBS:
            click.echo(f"{job.name} …", err=True)
            runner.run(job, lake, lambda: spark, datetime.now(UTC))
    finally:
        session.stop(spark)
    losses = lake.read(LOSS_EVENTS).to_pylist()
    accounts = lake.read(DELIVERY_LEDGER).to_pylist()
    return [
        score(
            place,
            [row for row in losses if row["cluster"] == name],
            [row for row in accounts if row["cluster"] == name],
        )
        for name, place in places.items()
    ]


def write_scores(scores: Sequence[Score], output: str, page: Path | None) -> None:
    """Print the scores, and put the table into *page* if one is given."""
    from lab.score import put_into_page, table, totals

    if page is not None:
        text = page.read_text(encoding="utf-8")
        page.write_text(put_into_page(text, scores), encoding="utf-8")
    total = totals(scores)
    if output == "json":
        listed = [asdict(one) for one in scores]
        click.echo(json.dumps({"scenarios": listed, "total": total}, indent=1, ensure_ascii=False))
        return
    click.echo(table(scores))
    ratio = total["cause_right_ratio"]
    click.echo(
        f"{total['found']:,} of {total['lost']:,} lost messages found, "
        f"{total['false_losses']:,} false losses, cause right in "
        f"{'-' if ratio is None else f'{ratio:.1%}'} of {total['ranges']} lost ranges"
    )
