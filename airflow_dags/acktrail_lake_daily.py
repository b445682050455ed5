"""Every day: keep the lake small and quick, and publish what was checked."""

from __future__ import annotations

from datetime import UTC, datetime

from acktrail_operator import RETRIES, AcktrailOperator
from airflow.sdk import DAG

ON_CALL = """\
# Lake housekeeping, every day

| task | command | what it does |
| --- | --- | --- |
| `optimize` | `acktrail lake optimize` | joins small files |
| `expire` | `acktrail lake expire` | deletes rows older than the retention of their table |
| `vacuum` | `acktrail lake vacuum` | deletes files that no reader can need any more |
| `data_docs` | `acktrail check --docs DIR` | publishes what every expectation found. \
Skipped unless the Variable `acktrail_data_docs` names a directory |

**Red means** only that the lake grows: answers and alerts do not depend on it. It can wait until
the morning. The last line of the log says what to change; a lake that is busy or does not
answer is tried again. `data_docs` does not turn red for a failed expectation:
`acktrail_audit_5min` does.

**Is it safe to clear or repeat?** Yes, any task, at any time, also while the audit runs: readers
and writers are not disturbed, and a second pass finds nothing to do.

**Where to look next:** `acktrail lake tables` shows files, bytes and age per table.
"""

with DAG(
    dag_id="acktrail_lake_daily",
    description="Keep the lake small and quick; publish Data Docs.",
    doc_md=ON_CALL,
    schedule="17 3 * * *",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args=RETRIES,
    tags=["acktrail"],
):
    optimize, expire, vacuum = (
        AcktrailOperator(
            task_id=task,
            arguments=["lake", task, "--format", "json"],
            options={"acktrail_master": "--set spark.master={}"},
        )
        for task in ("optimize", "expire", "vacuum")
    )
    AcktrailOperator(
        task_id="data_docs",
        arguments=["check", "--format", "json"],
        options={"acktrail_data_docs": "--docs {}"},
        only_if="acktrail_data_docs",
        verdict_elsewhere=True,
    )
    optimize >> expire >> vacuum
