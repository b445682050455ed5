"""`acktrail serve`, asked by real Spark Connect clients in processes of their own."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from pipelines.adhoc.remote import with_values
from tests.integration.sql_lake import ROOT, environment, small_lake

WAIT_S = 180
ASK = """
import sys, time
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
took = []
for _ in range(3):
    began = time.monotonic()
    print(spark.sql("SELECT count(*) AS n FROM log_records").collect()[0].n)
    took.append(time.monotonic() - began)
columns = {row.col_name: row.comment for row in spark.sql("DESCRIBE runs").collect()}
print(columns["job"])
print(spark.sql("SELECT '${env:HOME}' AS x").collect()[0].x)
print(round(min(took), 2), file=sys.stderr)
"""


@dataclass
class Served:
    process: subprocess.Popen[str]
    url: str
    place: Path
    environment: Mapping[str, str]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    place = tmp_path_factory.mktemp("serve")
    small_lake(place / "lake")
    chosen = environment(place)
    with subprocess.Popen(
        [sys.executable, "-m", "acktrail", "serve", "--lake", "lake", "--port", "0"],
        cwd=place, env=chosen, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        line = process.stdout.readline()
        try:
            found = re.fullmatch(r"export SPARK_REMOTE='(sc://localhost:\d+/;token=\S+)'\n", line)
            assert found is not None, line
            yield Served(process, found[1], place, chosen)
        finally:
            process.kill()


def _run(served: Served, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words], cwd=served.place, env={**served.environment, **more},
        capture_output=True, text=True, timeout=WAIT_S, check=False,
    )  # fmt: skip


def test_a_connect_client_with_the_token_is_answered(served: Served) -> None:
    done = _run(served, "-c", ASK, served.url)
    assert done.stdout.splitlines() == ["3", "3", "3", "Name of the job.", "${env:HOME}"], (
        done.stderr
    )


@pytest.mark.parametrize("token", [";token=wrong", ""])
def test_one_with_another_token_or_none_is_refused(served: Served, token: str) -> None:
    url = re.sub(";token=.*", token, served.url)
    done = _run(served, "-m", "acktrail", "sql", "--connect", "SELECT 1", SPARK_REMOTE=url)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("UsageError: The server refused the token."), done.stderr


def test_the_command_asks_the_running_server(served: Served) -> None:
    sql = ("-m", "acktrail", "sql", "--connect", "--lake", "lake", "--format", "json")
    done = _run(
        served, *sql, "SELECT count(*) AS n FROM runs WHERE run < :most", "--param", "most=1"
    )
    assert (done.returncode, done.stdout) == (0, '{"n": 1}\n'), done.stderr
    wrong = _run(served, *sql, "SELECT rum FROM runs")
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("UsageError: There is no column rum. Did you mean run?\n")
    assert "  1 | SELECT rum FROM runs\n    |        ^" in wrong.stderr


VALUES = [
    ("SELECT :a, ':a', \":a\", `:a`, x::int -- :a", {"a": "1"},
     "SELECT '1', ':a', \":a\", `:a`, x::int -- :a"),
    ("SELECT :a /* :a */, v:b", {"a": "it's \\"}, "SELECT 'it\\'s \\\\' /* :a */, v:b"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "given", "wanted"), VALUES)
def test_values_of_parameters_are_literals(
    text: str, given: Mapping[str, object], wanted: str
) -> None:
    assert with_values(text, given) == wanted


def test_it_listens_on_loopback_only_and_its_token_is_on_no_command_line(served: Served) -> None:
    token = served.url.rpartition("=")[2]
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    assert token not in listed.stdout
    port = int(re.search(r":(\d+)/", served.url)[1])  # type: ignore[index]
    name = socket.gethostbyname(socket.gethostname())
    if not name.startswith("127."):
        with pytest.raises(OSError, match="refused"):
            socket.create_connection((name, port), timeout=5)
    socket.create_connection(("127.0.0.1", port), timeout=5).close()


def test_the_notebook_of_the_docs_runs_against_it(served: Served) -> None:
    notebook = json.loads((ROOT / "docs" / "ask_from_a_notebook.ipynb").read_text())
    code = ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]
    assert len(code) >= 3
    done = _run(served, "-c", "\n".join(code), SPARK_REMOTE=served.url)
    assert done.returncode == 0, done.stderr
    assert "log_records" in done.stdout


def test_it_ends_on_sigterm_and_leaves_nothing(served: Served) -> None:
    served.process.send_signal(signal.SIGTERM)
    assert served.process.wait(timeout=WAIT_S) == 0
    assert {path.name for path in served.place.iterdir()} == {"lake"}
    done = _run(served, "-m", "acktrail", "sql", "--connect", "--lake", "lake", "SELECT 1")
    assert done.returncode == 2
    assert "No `acktrail serve` for lake runs on this host as this user." in done.stderr
