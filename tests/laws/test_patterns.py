"""A wording is one pattern: added to the registry, it is read everywhere."""

from __future__ import annotations

import json
import subprocess
import sys

# A fresh interpreter, whose registry has one more entry before anything is built from it.
SCRIPT = r"""
import json, sys
import acktrail.logs.patterns as registry
from acktrail.logs.pattern import Stock, pattern

LOGGER = "org.apache.kafka.clients.producer.internals.Sender"
registry.PATTERNS = (
    *registry.PATTERNS,
    pattern(
        "Batch fell overboard at node ",
        r"Batch fell overboard at node (?P<node>\d{1,9}),? after (?P<elapsed_ms>\d{1,9}) ms",
        "send_failed",
        "overboard",
        words=("fell overboard",),
        sure=True,
        continues=("after ",),
        stock=Stock(
            r"Batch fell overboard at node (?P<node>[0-9]+) after (?P<elapsed_ms>[0-9]+) ms", LOGGER
        ),
    ),
)

import pyarrow as pa
from click.testing import CliRunner

from acktrail.cli import main
from acktrail.contracts.arrow import schema
from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.logs.prefilter import clean_text
from ingest.files.block_scan import scan_block
from pipelines.job import Options
from pipelines.silver import log_events, unread_records
from pipelines.silver.common_lines import read_common

SAID = "Batch fell overboard at node 7"
LOG = (
    f"[2026-01-31 07:00:00,000] WARN [Producer clientId=p] {SAID} after 40 ms ({LOGGER})\n"
    "[2026-01-31 07:00:01,000] INFO nothing of interest\n"
    f"{SAID}\nafter 50 ms\n"
    "[2026-01-31 07:00:02,000] WARN Batch fell overboard at node of a release to come\n"
)

kept = [clean_text(k.text) for k in scan_block(LOG.encode(), closed=True).kept]
fields = {f.name: f.type for f in schema(LOG_RECORDS)}
given = {"cluster": "c", "source": "s", "file_id": "f", "day": "2026-01-31"}
rows = [given | {"text": text, "position": at} for at, text in enumerate(kept)]


def batch_for(job):
    columns = pa.schema([pa.field(name, fields[name]) for name in job.columns])
    return pa.RecordBatch.from_pylist(rows, schema=columns)


def made_by(job):
    return [row for part in job.reader(Options())(batch_for(job)).rows for row in part.to_pylist()]


job = log_events.PRODUCER_JOB
out = pa.schema([pa.field(f.name, f.type) for f in schema(job.output)])
columns_read, _ = read_common(batch_for(job), out)
open(sys.argv[1], "w").write(LOG)
printed = CliRunner().invoke(main, ["read", sys.argv[1], "--format", "json"]).stdout
unread = CliRunner().invoke(main, ["read", sys.argv[1], "--unread", "--format", "json"]).stdout
show = lambda rows: sorted([row["detail"], row["node"], row["elapsed_ms"]] for row in rows)
print(json.dumps({
    "kept": len(kept),
    "by the job": show(made_by(job)),
    "by column": show([row for part in columns_read for row in part.to_pylist()]),
    "unread by the job": len(made_by(unread_records.JOB)),
    "by the command": show(map(json.loads, printed.splitlines())),
    "unread by the command": len(unread.splitlines()),
}))
"""


def test_a_new_pattern_is_read_by_agent_job_and_command(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "app.log")],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    first, second = ["overboard", 7, 40], ["overboard", 7, 50]
    assert json.loads(done.stdout) == {
        "kept": 3,
        "by the job": [first, second],
        "by column": [first],
        "unread by the job": 1,
        "by the command": [first, second],
        "unread by the command": 1,
    }
