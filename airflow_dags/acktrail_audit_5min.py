"""Every five minutes: take evidence in, turn it into answers, page if an expectation failed."""

from __future__ import annotations

from datetime import UTC, datetime

from acktrail_operator import AS_OF, CHANGED, MASTER, RETRIES, AcktrailOperator
from airflow.sdk import DAG, Param

ON_CALL = """\
# Delivery audit, every five minutes

Finds lost messages and their causes, and producers that are about to run out of retries.

| task | command | red means |
| --- | --- | --- |
| `agent` | `acktrail agent --once` | evidence could not be read. Skipped unless the Variable \
`acktrail_agent_once` is `true`: usually agents run beside the applications |
| `run` | `acktrail run` | facts and answers were not brought up to date |
| `check` | `acktrail check` | **expectations failed**: messages were lost, or soon will be. \
The alerts are already delivered |

**`check` is red:** its log ends with every failed check, what it found, and the runbook to follow.
The same is in its XCom `findings`. Every run stays red until the cause is
fixed; meanwhile Alertmanager shows one alert per fault and owner.

**`agent` or `run` is red:** the last line of the log says what to change (settings, credentials, a
damaged table). A source or lake that does not answer is tried again four times by itself.

**Is it safe to clear, re-run, or trigger by hand?** Yes: any task, any run, also while
another one runs. Evidence is read once, answers are replaced atomically, alerts keep their
fingerprint. A cleared run evaluates the present, not its old date.

**Where to look next:** the runbook; `acktrail explain` for the timeline of a loss; `acktrail
budgets` for the producers that run out next; `acktrail agent status` for missing evidence.
"""

with DAG(
    dag_id="acktrail_audit_5min",
    description="Which messages were lost, and which producers are about to run out of retries.",
    doc_md=ON_CALL,
    schedule="*/5 * * * *",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args=RETRIES,
    params={"as_of": Param(None, type=["null", "string"], description="Moment; empty: now.")},
    tags=["acktrail"],
):
    agent = AcktrailOperator(
        task_id="agent", arguments=["agent", "--once"], only_if="acktrail_agent_once"
    )
    run = AcktrailOperator(
        task_id="run",
        arguments=["run", "--format", "json", *AS_OF],
        options=MASTER,
        outlets=[CHANGED],
        trigger_rule="none_failed",
    )
    check = AcktrailOperator(task_id="check", arguments=["check", "--format", "json", *AS_OF])
    agent >> run >> check
