"""Runs one `acktrail` command as a task. The one way from Airflow to acktrail: a process.

acktrail lives in an environment of its own (its dependencies and Airflow's exclude each other), so
nothing of it is imported here. Where things are is looked up when a task runs, never while a DAG
file is read: first the Airflow Variable, then the environment of the worker.

| Variable              | environment           | what                                            |
| --------------------- | --------------------- | ----------------------------------------------- |
| `acktrail_command`    | `ACKTRAIL_COMMAND`    | the command, e.g. /opt/acktrail/bin/acktrail    |
| `acktrail_config`     | `ACKTRAIL_CONFIG`     | the settings file                               |
| `acktrail_master`     | `ACKTRAIL_MASTER`     | optional: the Spark master of the jobs          |
| `acktrail_agent_once` | `ACKTRAIL_AGENT_ONCE` | optional: `true` where Airflow runs the agent   |
| `acktrail_data_docs`  | `ACKTRAIL_DATA_DOCS`  | optional: directory for Data Docs               |
"""

from __future__ import annotations

import os
import shlex
import subprocess
import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from acktrail_outcome import Fate, Outcome, outcome_of, told
from airflow.sdk import Asset, AssetAlias, BaseOperator, Context, Variable
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

GOLD_TABLES = (
    "retry_budgets",
    "delivery_ledger",
    "offset_accounts",
    "loss_events",
    "loss_incidents",
    "verdict_changes",
    "producer_reliability",
)
GOLD = {
    table: Asset(f"acktrail_{table}", uri=f"acktrail://gold/{table}", group="acktrail")
    for table in GOLD_TABLES
}
CHANGED = AssetAlias("acktrail_gold", group="acktrail")
"""Outlet of the tasks that write gold: an event for each table that really changed."""

RETRIES = {
    "owner": "acktrail",
    "retries": 4,
    "retry_delay": timedelta(seconds=10),
    "retry_exponential_backoff": 2,
    "max_retry_delay": timedelta(minutes=5),
    "execution_timeout": timedelta(hours=2),
}
"""Exit code 75 is tried again after about 10, 20, 40 and 80 seconds. Other failures are not."""

AS_OF = ("{{ '--as-of' if params.as_of else '' }}", "{{ params.as_of or '' }}")
"""Asks about the present, unless a run was triggered with the parameter `as_of`: a cleared old run
must not decide today's alerts by what was true then."""
MASTER = {"acktrail_master": "--master {}"}

_NOT_FOR_THE_COMMAND = ("AIRFLOW", "_AIRFLOW", "__AIRFLOW", "PYTHONPATH", "PYTHONHOME")
"""Airflow's own settings (secrets among them) and module paths stay with Airflow."""
_OFF = ("false", "no", "off", "0")
_STDERR_KEPT = 200
_STOP_S = 20


class AcktrailOperator(BaseOperator):
    """`acktrail ARGUMENTS`, with its exit code as the task's fate.

    *arguments* may use templates; empty ones are left out. *words* is a template of further
    arguments, separated by spaces. *options* are added where their
    Variable is set, e.g. {"acktrail_master": "--master {}"}. *only_if* names a Variable
    without which the task is skipped. *verdict_elsewhere*: failed checks do not fail this task,
    since another task is red for them.
    """

    template_fields = ("arguments", "words")
    ui_color = "#e8f1f5"

    def __init__(
        self,
        *,
        arguments: Sequence[str],
        words: str = "",
        options: Mapping[str, str] | None = None,
        only_if: str | None = None,
        verdict_elsewhere: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.arguments = list(arguments)
        self.words = words
        self.options = dict(options or {})
        self.only_if = only_if
        self.verdict_elsewhere = verdict_elsewhere
        self._process: subprocess.Popen[str] | None = None

    def execute(self, context: Context) -> list[dict[str, Any]]:
        """Run the command; what it printed as JSON is the task's XCom."""
        if self.only_if and (looked_up(self.only_if) or "false").lower() in _OFF:
            raise AirflowSkipException(f"The Variable `{self.only_if}` is not set here.")
        command = self._command_line()
        self.log.info("Runs: %s", shlex.join(command))
        outcome = self._run(command)
        for line in told(outcome.records):
            self.log.info("%s", line)
        if not (self.verdict_elsewhere and outcome.fate is Fate.CHECKS_FAILED):
            _conclude(outcome, context, self)
        return list(outcome.records)

    def on_kill(self) -> None:
        """Stop the command: it commits or leaves no trace, so that it can be repeated."""
        process = self._process
        if process is None or process.poll() is not None:
            return
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()

    def _command_line(self) -> list[str]:
        command = shlex.split(required("acktrail_command", "the path of the acktrail command"))
        required("acktrail_config", "the settings file")
        line = [*command, *(part for part in self.arguments if part), *self.words.split()]
        for name, option in {"acktrail_config": "--config {}", **self.options}.items():
            value = looked_up(name)
            line += [part.format(value) for part in option.split()] if value else []
        return line

    def _run(self, command: list[str]) -> Outcome:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=_environment(),
                text=True,
                errors="replace",
            )
        except OSError as error:
            raise AirflowFailException(
                f"{command[0]} cannot be run: {error.strerror}. The Variable `acktrail_command`"
                " (or ACKTRAIL_COMMAND) must name the acktrail command of this worker."
            ) from None
        self._process = process
        tail: deque[str] = deque(maxlen=_STDERR_KEPT)
        reader = threading.Thread(target=self._follow, args=(process.stderr, tail), daemon=True)
        reader.start()
        try:
            stdout = process.stdout.read() if process.stdout else ""
            code = process.wait()
        finally:
            self.on_kill()
        reader.join(_STOP_S)
        return outcome_of(code, stdout, tuple(tail))

    def _follow(self, lines: Iterable[str], tail: deque[str]) -> None:
        """Progress and errors go to the task's log as they come."""
        for line in lines:
            tail.append(line)
            self.log.info("%s", line.rstrip())


def looked_up(name: str) -> str | None:
    """The value of Variable *name*, else of the environment's ACKTRAIL_..., else None."""
    value = Variable.get(name, default=None)
    return value or os.environ.get(name.upper()) or None


def required(name: str, what: str) -> str:
    """As *looked_up*; a task without it fails at once and says where it was looked for."""
    value = looked_up(name)
    if value is None:
        raise AirflowFailException(
            f"{what} is not set. Looked in:\n"
            f"  1. the Airflow Variable `{name}`   not set\n"
            f"  2. {name.upper()} in the worker's environment   not set\n"
            f"Set one of them, for example: airflow variables set {name} ..."
        )
    return value


def _environment() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_NOT_FOR_THE_COMMAND)
    }


def _conclude(outcome: Outcome, context: Context, task: BaseOperator) -> None:
    """Raise what the outcome deserves; where all is fine, say which gold tables changed."""
    if outcome.fate is Fate.FINE:
        if CHANGED in task.outlets:
            _announce(outcome, context)
        return
    if outcome.fate is Fate.TRY_AGAIN:
        raise AirflowException(outcome.said)
    if outcome.fate is Fate.CHECKS_FAILED:
        context["ti"].xcom_push(key="findings", value=list(outcome.findings))
        runbooks = list(dict.fromkeys(str(found.get("runbook")) for found in outcome.findings))
        context["ti"].xcom_push(key="runbooks", value=runbooks)
    for line in outcome.said.splitlines():
        task.log.error("%s", line)
    raise AirflowFailException(outcome.said)


def _announce(outcome: Outcome, context: Context) -> None:
    """An event for each gold table that this run wrote; a run with nothing new makes none."""
    for record in outcome.records:
        asset = GOLD.get(str(record.get("job")))
        if asset is not None and record.get("said") != "nothing new":
            extra = {name: record.get(name) for name in ("rows_in", "rows_out", "touched")}
            context["outlet_events"][CHANGED].add(asset, extra=extra)
