"""A failure of Spark's in any command: one line and the log, the traces only when asked for."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner
from pyspark.errors import PySparkRuntimeError

from acktrail import cli


@click.command()
def failing() -> None:
    raise PySparkRuntimeError("no space left on the disk")


@pytest.mark.parametrize("asked", [None, "0", "1"])
def test_spark_failed(monkeypatch, asked):
    monkeypatch.setattr(cli._Lazy, "get_command", lambda *_: failing)
    done = CliRunner(env={"ACKTRAIL_STACK_TRACE": asked}).invoke(cli.main, ["run"])
    assert done.exit_code == 75
    assert "Spark failed: no space left on the disk\nIts log is " in done.stderr
    assert ("Traceback" in done.stderr) == (asked == "1")
