"""Every hour: the losses of the last day as they are known now, late evidence included."""

from __future__ import annotations

from datetime import UTC, datetime

from acktrail_operator import AS_OF, CHANGED, MASTER, RETRIES, AcktrailOperator
from airflow.sdk import DAG, Param

ON_CALL = """\
# Delivery audit, every hour

Lists the loss incidents of the last 24 hours as they are known now. Evidence may come late (an
agent that was down, a consumer that caught up, a scan that got further): it can change
verdicts, and this list shows the result.

| task | command | red means |
| --- | --- | --- |
| `run` | `acktrail run` | late evidence was not read |
| `losses` | `acktrail losses --since ...` | the answer could not be read |

**A loss does not turn this DAG red**: it turns `acktrail_audit_5min` red, which also sends the
alert. The list is in the log of `losses` and in its XCom `return_value`, for a mail, a report or
a dashboard.

**Red means** a person must fix a source, the lake or the settings: the last line of the log says
what to change. A source or lake that does not answer is tried again four times.

**Is it safe to clear, re-run, or trigger by hand?** Yes, always, also while another DAG runs.

**Where to look next:** `acktrail explain` for the timeline of one loss; the table
`verdict_changes` for verdicts that later evidence replaced.
"""
SINCE = (
    "--since",
    "{{ (macros.datetime.fromisoformat(params.as_of) if params.as_of else dag_run.run_after)"
    " - macros.timedelta(hours=24) }}",
)

with DAG(
    dag_id="acktrail_audit_hourly",
    description="The losses of the last day as they are known now, late evidence included.",
    doc_md=ON_CALL,
    schedule="7 * * * *",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args=RETRIES,
    params={"as_of": Param(None, type=["null", "string"], description="Moment; empty: now.")},
    tags=["acktrail"],
):
    run = AcktrailOperator(
        task_id="run",
        arguments=["run", "--format", "json", *AS_OF],
        options=MASTER,
        outlets=[CHANGED],
    )
    losses = AcktrailOperator(task_id="losses", arguments=["losses", "--format", "json", *SINCE])
    run >> losses
