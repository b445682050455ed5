"""What `acktrail lab score --variants` does: many views of each run, each a cluster, in few lakes.

A result is kept for every scenario and variant, so that an interrupted score goes on. It names the
code and the evidence that made it: others make it again.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from acktrail.terminal.progress import Progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from acktrail.lake import Lake
    from lab.variant_score import VariantScore
    from lab.variants import Variant
    from pipelines.job import Job

VIEWS_AT_ONCE = 120
"""Clusters in one lake: a run of the jobs over them takes little longer than over a few."""
_PACKAGES = ("acktrail", "ingest", "lab", "pipelines")


@dataclass(frozen=True)
class _View:
    """One variant of one scenario, to be scored."""

    scenario: str
    evidence: Path
    variant: Variant
    results: Path
    made_by: str

    @property
    def file(self) -> str:
        """Its name without what a file name cannot have."""
        return re.sub(r"[^A-Za-z0-9+-]+", "-", self.variant.name)

    @property
    def cluster(self) -> str:
        """What its rows name."""
        return f"{self.scenario}.{self.file}"

    @property
    def result(self) -> Path:
        """Where its score is kept."""
        return self.results / self.scenario / f"{self.file}.json"


def score_variants(places: Mapping[str, Path], results: Path, scratch: Path) -> list[VariantScore]:
    """Score every variant of the runs at *places*; what *results* has already is not done again."""
    from lab.score import require_clients_worked
    from lab.variant_score import read_result

    for place in places.values():
        require_clients_worked(place)
    views = [view for name, place in places.items() for view in _views(name, place, results)]
    todo = [view for view in views if read_result(view.result, view.made_by) is None]
    if len(todo) < len(views):
        click.echo(f"{len(views) - len(todo)} of {len(views)} views are scored already.", err=True)
    batches = [todo[at : at + VIEWS_AT_ONCE] for at in range(0, len(todo), VIEWS_AT_ONCE)]
    jobs = _jobs()
    with _spark(bool(todo)) as spark, Progress(len(todo) + len(batches) * len(jobs)) as progress:
        for number, some in enumerate(batches):
            _score(some, jobs, scratch / f"batch-{number}", spark, progress)
    return [_kept(view) for view in views]


def _kept(view: _View) -> VariantScore:
    from lab.variant_score import read_result

    found = read_result(view.result, view.made_by)
    assert found is not None, "it was written a moment ago"
    return found


def _views(name: str, place: Path, results: Path) -> Iterator[_View]:
    from lab.variants import variants_of

    made_by = _digest(_sources()) + _digest(path for path in place.rglob("*") if path.is_file())
    for variant in variants_of(place):
        yield _View(name, place, variant, results, made_by)


def _score(
    views: Sequence[_View],
    jobs: Sequence[Job],
    scratch: Path,
    spark: Callable[[], SparkSession],
    progress: Progress,
) -> None:
    """One lake with a cluster for each of *views*, the jobs once, and the results."""
    from acktrail.contracts.gold import DELIVERY_LEDGER, LOSS_EVENTS
    from acktrail.lake import Lake
    from lab.score import score
    from lab.variant_score import VariantScore, write_result
    from pipelines import runner
    from pipelines.schedule import run_all

    def run_one(job: Job) -> None:
        with progress.part(job.name):
            runner.run(job, lake, spark, datetime.now(UTC))

    lake = Lake(scratch / "lake")
    try:
        _replay(views, lake, scratch / "views", jobs, progress)
        run_all(jobs, run_one)
        losses = _by_cluster(lake.read(LOSS_EVENTS).to_pylist())
        accounts = _by_cluster(lake.read(DELIVERY_LEDGER).to_pylist())
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    for view in views:
        found = score(view.evidence, losses[view.cluster], accounts[view.cluster])
        scored = VariantScore(view.variant.name, view.variant.called, found)
        write_result(view.result, view.made_by, scored)


def _replay(
    views: Sequence[_View], lake: Lake, scratch: Path, jobs: Sequence[Job], progress: Progress
) -> None:
    """Make each view's evidence, and write all of it into *lake*."""
    from acktrail.contracts.bronze import METRIC_SAMPLES
    from ingest.replay import Recording, replay_all
    from lab.variants import derive

    read = {table.name for job in jobs for table in job.inputs}
    unread = () if METRIC_SAMPLES.name in read else ("metrics",)

    def recordings() -> Iterator[Recording]:
        for view in views:
            with progress.part(view.cluster):
                target = scratch / view.scenario / view.file
                derive(view.evidence, view.variant, target, unread)
                yield Recording(target, view.cluster, view.variant.tiers)

    replay_all(recordings(), lake)


def _jobs() -> list[Job]:
    """The jobs that the accounts and the losses are made by, and those that they wait for."""
    from acktrail.contracts.gold import DELIVERY_LEDGER, LOSS_EVENTS
    from pipelines.registry import JOBS

    wanted = {DELIVERY_LEDGER.name, LOSS_EVENTS.name}
    while True:
        jobs = [job for job in JOBS if job.output.name in wanted]
        more = {table.name for job in jobs for table in job.inputs} - wanted
        if not more:
            return jobs
        wanted |= more


def _by_cluster(rows: Iterable[dict[str, Any]]) -> Mapping[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        found[row["cluster"]].append(row)
    return found


@contextmanager
def _spark(wanted: bool) -> Iterator[Callable[[], SparkSession]]:
    """A session for all batches, made when it is first asked for."""
    from pipelines import session

    made = session.build() if wanted else None

    def given() -> SparkSession:
        assert made is not None, "there is nothing to do"
        return made

    try:
        yield given
    finally:
        if made is not None:
            session.stop(made)


def _sources() -> Iterator[Path]:
    root = Path(__file__).parents[2]
    for package in _PACKAGES:
        yield from (root / package).rglob("*.py")


def _digest(paths: Iterable[Path]) -> str:
    made = hashlib.blake2b(digest_size=8)
    for path in sorted(paths):
        made.update(str(path).encode() + b"\0")
        made.update(path.read_bytes() + b"\0")
    return made.hexdigest()


def write_variants(scores: Sequence[VariantScore], output: str, page: Path | None) -> None:
    """Print the scores of all variants, and put the table into *page* if one is given."""
    from lab.score import put_into_page
    from lab.variant_score import BEGIN, END, as_json, table

    made = table(scores)
    if page is not None:
        text = page.read_text(encoding="utf-8")
        page.write_text(put_into_page(text, made, BEGIN, END), encoding="utf-8")
    click.echo(as_json(scores) if output == "json" else made)
    wrong = [s for s in scores if s.score.false_losses or s.score.false_skips]
    for each in wrong:
        click.echo(
            f"{each.score.name}, {each.variant}: {each.score.false_losses} false losses, "
            f"{each.score.false_skips} false skips",
            err=True,
        )
