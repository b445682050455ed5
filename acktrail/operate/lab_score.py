"""What `acktrail lab score` does: evidence through all jobs, answers against the truth."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from acktrail.terminal.progress import Progress

if TYPE_CHECKING:
    from acktrail.lake import Lake
    from acktrail.retries.fleet import Burning
    from lab.score import Score
    from pipelines.job import Job


def put_through(places: Mapping[str, Path], lake_directory: Path) -> list[Score]:
    """Replay each run as a cluster of its own, run every job once, and score each."""
    from acktrail.answers.budgets import read_budgets
    from acktrail.contracts.gold import DELIVERY_LEDGER, LOSS_EVENTS
    from acktrail.lake import Lake
    from ingest.replay import replay
    from lab.score import require_clients_worked, score
    from pipelines import runner, session
    from pipelines.registry import JOBS
    from pipelines.schedule import run_all

    for place in places.values():
        require_clients_worked(place)
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
            lake,
            name,
            place,
        )
        for name, place in places.items()
    ]


def with_warning(
    scored: Score, budgets: Sequence[Burning], lake: Lake, cluster: str, evidence: Path
) -> Score:
    """*scored* with how long before its first loss a producer was warned of; see `lab_warning`.

    None where no application was told of a loss, or one was and no line had warned of it before;
    of several producers the shortest lead counts.
    """
    from acktrail.operate.lab_warning import first_warning
    from lab.warning import first_loss_ms

    exhausted = sum(one.budget.ended_by == "exhausted" for one in budgets)
    scenario = json.loads((evidence / "scenario.json").read_text(encoding="utf-8"))
    leads = []
    for producer in scenario["producers"]:
        lost_ms = first_loss_ms(evidence, producer["name"])
        if lost_ms is not None:
            lost_at = datetime.fromtimestamp(lost_ms / 1000, UTC)
            warned = first_warning(lake, cluster, producer["name"], lost_at)
            leads.append(None if warned is None else (lost_at - warned).total_seconds())
    known = [lead for lead in leads if lead is not None]
    return replace(
        scored,
        false_exhausted=0 if scored.lost or leads else exhausted,
        warning_lead_s=round(min(known), 1) if known and len(known) == len(leads) else None,
    )


def write_scores(scores: Sequence[Score], output: str, page: Path | None) -> None:
    """Print the scores, and put the table into *page* if one is given."""
    from lab.score import put_into_page, table, totals

    if page is not None:
        text = page.read_text(encoding="utf-8")
        page.write_text(put_into_page(text, table(scores)), encoding="utf-8")
    total = totals(scores)
    if output == "json":
        listed = [asdict(one) for one in scores]
        click.echo(json.dumps({"scenarios": listed, "total": total}, indent=1, ensure_ascii=False))
        return
    click.echo(table(scores))
    ratio = total["cause_right_ratio"]
    click.echo(
        f"{total['found']:,} of {total['lost']:,} lost messages found, "
        f"{total['false_losses']:,} false losses, {total['hidden']:,} hidden, "
        f"{total['false_skips']:,} false skips of groups, cause right in "
        f"{'-' if ratio is None else f'{ratio:.1%}'} of {total['ranges']} lost ranges"
    )
