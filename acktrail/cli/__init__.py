"""The command: each subcommand is a module in `acktrail/cli/`, loaded when asked for."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import traceback
from typing import Any

import click

from acktrail import __version__
from acktrail.errors import AcktrailError, TransientError
from acktrail.nearest import did_you_mean

COMMANDS: dict[str, str] = {
    # name: what `acktrail --help` says of it. The module is acktrail.cli.<name>.
    "demo": "Run a recorded real incident through every step, offline.",
    "init": "Write a settings file for your cluster.",
    "doctor": "Test every setting, source and receiver; report what fails and what to do.",
    "agent": "Read evidence from the configured sources into the lake.",
    "ingest": "Read audit files and recorded lab runs into the lake.",
    "read": "Show the events in a log file, at once.",
    "run": "Turn new evidence into facts and answers (Spark jobs).",
    "losses": "List lost messages, and why they were lost.",
    "ledger": "Count every message: what was sent, and what became of it.",
    "explain": "Show the timeline of one loss.",
    "resend-list": "List what to send again after a loss.",
    "audit": "Show which clients are audited, and which are not.",
    "budgets": "List the retries that are about to run out, the most urgent first.",
    "report": "Write everything about a window of time into one HTML file.",
    "ui": "Serve live pages: producers, incidents, budgets, groups, coverage, checks.",
    "check": "Run every check, send alerts, and fail if a check has failed.",
    "watch": "Read, run and check every few seconds, and alert at once.",
    "exporter": "Serve the lake's answers as Prometheus metrics.",
    "alerts": "List, acknowledge and send alerts; test the receivers.",
    "sql": "Query the lake with Spark SQL, read-only: a prompt, saved questions.",
    "serve": "Serve the lake's tables to notebooks (Spark Connect).",
    "lake": "List and maintain the lake's tables.",
    "pack": "Pack this Python environment for executors of a Spark cluster.",
    "lab": "Run a real Kafka cluster on loopback, with real faults.",
}


EXTRAS = {
    # a package that an agent host may lack: the extra that brings it
    "pyspark": "spark",
    "prompt_toolkit": "spark",
    "grpc": "connect",
    "pandas": "spark,checks",
    "great_expectations": "checks",
    "scipy": "checks",
    "yaml": "policy",
    "prometheus_api_client": "prometheus",
    "starlette": "ui",
    "uvicorn": "ui",
}


class _Lazy(click.Group):
    """A group that imports a subcommand only when it is run, so that `--help` is quick."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"acktrail.cli.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            ctx.fail(f"There is no command {args[0]}.{did_you_mean(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except AcktrailError as error:
            _print_trace(error)
            click.echo(f"{type(error).__name__}: {error}", err=True)
            sys.exit(error.exit_code)
        except ModuleNotFoundError as error:
            extra = EXTRAS.get((error.name or "").partition(".")[0])
            if extra is None:
                raise
            if ctx.invoked_subcommand == "check" and "checks" in extra:
                extra = "checks"
            click.echo(
                f"This needs {error.name}, which is not installed here. "
                f"Install it: pip install 'acktrail[{extra}]'",
                err=True,
            )
            sys.exit(2)
        except KeyboardInterrupt:
            click.echo("Interrupted. What was committed stays in the lake; run it again.", err=True)
            sys.exit(128 + signal.SIGINT)
        except BrokenPipeError:
            sys.exit(0)
        except Exception as error:
            from acktrail.lake.store_errors import uncaught_store_error

            refused = uncaught_store_error(str(error))
            if refused is not None:
                _print_trace(error)
                click.echo(f"{type(refused).__name__}: {refused}", err=True)
                sys.exit(refused.exit_code)
            if not _is_of_spark(error):
                raise
            _print_trace(error)
            from pipelines import spark_errors, spark_log

            click.echo(
                f"Spark failed: {spark_errors.message(error)}\n"
                f"Its log is {spark_log.jvm_log()}. "
                "ACKTRAIL_STACK_TRACE=1 prints the stack traces.",
                err=True,
            )
            sys.exit(TransientError.exit_code)


def _is_of_spark(error: Exception) -> bool:
    return type(error).__module__.partition(".")[0] in ("pyspark", "py4j")


def _print_trace(error: Exception) -> None:
    """The stack traces of *error* and of its causes, where the user has asked for them."""
    if os.environ.get("ACKTRAIL_STACK_TRACE", "0") not in ("", "0"):
        traceback.print_exception(error, file=sys.stderr)


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="acktrail")
def main() -> None:
    """The audit trail of Kafka delivery.

    Which messages were lost, why, and which producers are about to run out of retries.

    Example:

    \b
        acktrail demo
        acktrail read app.log
        acktrail init && acktrail doctor
        acktrail run --lake ./lake && acktrail check --lake ./lake
    """
