"""Runs `airflow` commands one after the other in one process, since starting one takes seconds.

Run by the interpreter of Airflow's environment. Each line of standard input is a request
{"argv": [...]}; each answer is a line {"code": n, "output": "..."}.
"""

import json
import os
import sys
import tempfile


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    with tempfile.TemporaryFile("w+b") as captured:
        os.dup2(captured.fileno(), 1)
        os.dup2(captured.fileno(), 2)
        for line in sys.stdin:
            request = json.loads(line)
            captured.seek(0)
            captured.truncate()
            code = run(request["argv"])
            sys.stdout.flush()
            sys.stderr.flush()
            captured.seek(0)
            output = captured.read().decode("utf-8", "replace")
            answers.write(json.dumps({"code": code, "output": output}) + "\n")


def run(argv: list[str]) -> int:
    """What `airflow ARGV` would have exited with; `bag` and `kill` are below."""
    import traceback

    from airflow.cli import cli_parser

    if argv[0] in PROBES:
        sys.stdout.write("\n" + json.dumps(PROBES[argv[0]](*argv[1:])) + "\n")
        return 0
    try:
        arguments = cli_parser.get_parser().parse_args(argv)
        arguments.func(arguments)
    except SystemExit as end:
        if isinstance(end.code, str):
            sys.stderr.write(end.code)
            return 1
        return end.code or 0
    except Exception:
        traceback.print_exc()
        return 1
    return 0


def describe_bag(folder: str) -> dict[str, object]:
    """What Airflow finds in *folder*, and how long our files took it.

    What the files import of Airflow is imported before, so that the time is our own.
    """
    from pathlib import Path

    import airflow.sdk.exceptions
    from airflow.dag_processing.dagbag import BundleDagBag
    from airflow.sdk import DAG, Asset, AssetAlias, BaseOperator, Param, Variable

    assert all((DAG, Asset, AssetAlias, BaseOperator, Param, Variable, airflow.sdk.exceptions))
    bag = BundleDagBag(folder, bundle_path=Path(folder), bundle_name="dags-folder")
    dags = {
        dag.dag_id: {
            "tasks": {task.task_id: sorted(task.downstream_task_ids) for task in dag.tasks},
            "max_active_runs": dag.max_active_runs,
            "catchup": dag.catchup,
            "on_call": dag.doc_md,
        }
        for dag in bag.dags.values()
    }
    seconds = {stat.file: stat.duration.total_seconds() for stat in bag.dagbag_stats}
    return {"errors": bag.import_errors, "dags": dags, "seconds": seconds}


def kill_a_task(folder: str, *command: str) -> dict[str, object]:
    """What becomes of a task, and of its command, when Airflow ends it after two seconds."""
    import threading

    sys.path.append(folder)
    import acktrail_operator

    task = acktrail_operator.AcktrailOperator(task_id="ended", arguments=[])
    threading.Timer(2, task.on_kill).start()
    outcome = task._run(list(command))
    return {"fate": outcome.fate.value, "said": outcome.said, "code": task._process.returncode}


PROBES = {"bag": describe_bag, "kill": kill_a_task}


if __name__ == "__main__":
    main()
