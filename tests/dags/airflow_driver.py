"""Runs `airflow` commands one after the other in one process, since starting one takes seconds.

Run by the interpreter of Airflow's environment. Each line of standard input is a request
{"argv": [...], "env": {...}}; each answer is a line {"code": n, "output": "..."}.
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
            code = run(request["argv"], request["env"])
            sys.stdout.flush()
            sys.stderr.flush()
            captured.seek(0)
            output = captured.read().decode("utf-8", "replace")
            answers.write(json.dumps({"code": code, "output": output}) + "\n")


def run(argv: list[str], env: dict[str, str]) -> int:
    """What `airflow ARGV` would have exited with."""
    import traceback

    from airflow.cli import cli_parser

    before = dict(os.environ)
    os.environ.update(env)
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
    finally:
        os.environ.clear()
        os.environ.update(before)
    return 0


if __name__ == "__main__":
    main()
