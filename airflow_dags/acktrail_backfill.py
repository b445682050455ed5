"""By hand: recompute the answers of a window from the evidence in the lake."""

from __future__ import annotations

from datetime import UTC, datetime

from acktrail_operator import CHANGED, MASTER, RETRIES, AcktrailOperator
from airflow.sdk import DAG, Param

ON_CALL = """\
# Backfill

Recomputes the facts and answers of a window from the evidence in the lake: `acktrail run --rebuild
FROM/TO`. Use it after an upgrade whose notes say so, or when a table was restored from a backup.
Late evidence needs no backfill: the five-minute audit reads it.

Trigger it with the parameters `start` and `end`, e.g. `2026-01-31T00:00Z` and `2026-02-01T00:00Z`;
`jobs` restricts it to the tables named there, e.g. `loss_events loss_incidents`.

**Red means** the window was not recomputed; the tables are as they were. Wrong parameters and
settings fail at once and the last line of the log says what to change; a lake that does not answer
is tried again.

**Is it safe to clear or repeat?** Yes. A window is replaced in one commit or not at all, and
recomputing it gives the same rows. While it runs, the five-minute audit may have to wait for a
table; it tries again by itself.

**Where to look next:** `acktrail_audit_5min` checks the new answers at its next run.
"""

with DAG(
    dag_id="acktrail_backfill",
    description="Recompute the facts and answers of a window from the evidence.",
    doc_md=ON_CALL,
    schedule=None,
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args={**RETRIES, "execution_timeout": None},
    params={
        "start": Param("2026-01-31T00:00Z", type="string", description="From this moment on."),
        "end": Param("2026-02-01T00:00Z", type="string", description="Up to, without, this one."),
        "jobs": Param("", type="string", description="Only these jobs; empty: all of them."),
    },
    tags=["acktrail"],
):
    AcktrailOperator(
        task_id="rebuild",
        arguments=[
            *("run", "--format", "json"),
            *("--rebuild", "{{ params.start }}/{{ params.end }}"),
        ],
        words="{{ params.jobs }}",
        options=MASTER,
        outlets=[CHANGED],
    )
