"""An agent's host has neither pandas nor Spark: no source imports them."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import importlib, sys
from ingest.agent.lean import without_pandas
from ingest.registry import BUILDERS
without_pandas(reading=True)  # as `acktrail agent` does first
for module in BUILDERS.values():
    importlib.import_module(module)
import ingest.messages.message_files, ingest.replay
import prometheus_api_client.prometheus_connect
print([m for m in ("pandas", "pyspark", "great_expectations", "matplotlib") if m in sys.modules])
"""


def test_no_source_imports_what_an_agent_does_not_have():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.strip() == "[]"
