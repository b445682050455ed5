"""What `acktrail lab score` does: evidence through all jobs, answers against the truth."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from acktrail.progress import Progress

if TYPE_CHECKING:
    from lab.score import Score
    from pipelines.job import Job
    from pipelines.rules.fleet import Burning


def put_through(places: Mapping[str, Path], lake_directory: Path) -> list[Score]:
    """Replay each run as a cluster of its own, run every job once, and score each."""
    from acktrail.commands.budget_rows import read_budgets
    from acktrail.contracts.gold import DELIVERY_LEDGER, LOSS_EVENTS
    from acktrail.lake import Lake
    from ingest.replay import replay
    from lab.score import score
    from pipelines import runner, session
    from pipelines.registry import JOBS
    from pipelines.schedule import run_all

    lake = Lake(lake_directory)
    for name, place in places.items():
        replay(place, lake, name)
    spark = session.build()
    try:
        with Progress(len(JOBS)) as progress:

            def run_one(job: Job) -> None:
                with progress.part(job.name):
                    runner.run(job, lake, lambda: spark, datetime.now(UTC))

            run_all(JOBS, run_one)
    finally:
        session.stop(spark)
    losses = lake.read(LOSS_EVENTS).to_pylist()
    accounts = lake.read(DELIVERY_LEDGER).to_pylist()
    budgets = read_budgets(lake, datetime.fromtimestamp(0, UTC), datetime.now(UTC))
    return [
        with_warning(
            score(
                place,
                [row for row in losses if row["cluster"] == name],
                [row for row in accounts if row["cluster"] == name],
            ),
            [one for one in budgets if one.cluster == name],
            place,
        )
        for name, place in places.items()
    ]


def with_warning(scored: Score, budgets: Sequence[Burning], evidence: Path) -> Score:
    """*scored* with how long before the first loss a budget was critical."""
    from lab.warning import first_loss_ms
    from pipelines.rules.budget import critical_at

    lost_at = first_loss_ms(evidence)
    exhausted = sum(one.budget.ended_by == "exhausted" for one in budgets)
    if lost_at is None:
        return replace(scored, false_exhausted=0 if scored.lost else exhausted)
    first = min(filter(None, (critical_at(one.budget) for one in budgets)), default=None)
    lead = None if first is None else round(lost_at / 1000 - first.timestamp(), 1)
    return replace(scored, warning_lead_s=lead)


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
