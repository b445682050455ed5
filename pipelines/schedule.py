"""Several jobs side by side: each as soon as the jobs that write its inputs are done.

A small run is mostly planning on one core of the driver, so two jobs at once take little longer
than one. Tables do not care: one job writes one table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

from pipelines.job import Job

AT_ONCE = 3
"""One core's worth of planning more than a small machine has cores."""

Done = TypeVar("Done")


def waits_for(jobs: Sequence[Job]) -> dict[str, frozenset[str]]:
    """For each job, those of *jobs* that write one of its inputs."""
    written = {job.output.name for job in jobs}
    return {job.name: frozenset(t.name for t in job.inputs) & written for job in jobs}


def run_all(
    jobs: Sequence[Job], run_one: Callable[[Job], Done], at_once: int = AT_ONCE
) -> list[Done]:
    """*run_one* of each job, after the jobs it waits for; the outcomes in the order of *jobs*.

    When one fails, no further job is begun; those under way end, and the error is raised.
    """
    before = waits_for(jobs)
    left = list(jobs)
    done: dict[str, Done] = {}
    under_way: dict[Future[Done], Job] = {}
    with ThreadPoolExecutor(at_once, thread_name_prefix="job") as threads:
        while left or under_way:
            for job in [job for job in left if before[job.name] <= done.keys()]:
                if len(under_way) < at_once:
                    under_way[threads.submit(run_one, job)] = job
                    left.remove(job)
            for ended in wait(under_way, return_when=FIRST_COMPLETED).done:
                done[under_way.pop(ended).name] = ended.result()
    return [done[job.name] for job in jobs]
