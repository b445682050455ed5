"""The lineage of tables is that of the jobs."""

from __future__ import annotations

from acktrail.contracts.lineage import MADE, inputs_of
from pipelines.registry import JOBS


def test_every_table_is_made_from_the_inputs_of_its_job():
    of_jobs = {job.output.name: [t.name for t in job.inputs] for job in JOBS}
    listed = {table.name: [t.name for t in inputs_of(table)] for table in MADE}
    assert listed == of_jobs, "change acktrail/contracts/lineage.py with the job"


def test_inputs_are_listed_before_what_is_made_from_them():
    names = [table.name for table in MADE]
    for number, table in enumerate(MADE):
        later = {t.name for t in inputs_of(table)} & set(names[number:])
        assert not later
