"""`python -m bench [NAME…]`: run the benchmarks, print a table, write bench/results.json.

Each benchmark is a module here with `run() -> list[dict]`; a row has name, ours_s, peer, peer_s,
ratio (our time / the peer's) and bar. A benchmark that fails says so and the others go on.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from acktrail.terminal.output import write_rows

BENCHMARKS = (
    "log_scan",
    "log_parse",
    "audit",
    "client",
    "java_client",
    "commands",
    "history",
    "sql",
)
RESULTS = Path(__file__).with_name("results.json")
COLUMNS = ("name", "ours_s", "peer", "peer_s", "ratio", "bar")


def main(names: list[str]) -> int:
    rows: list[dict[str, Any]] = []
    failed = []
    for name in names or BENCHMARKS:
        began = time.monotonic()
        print(f"{name} …", file=sys.stderr, flush=True)
        try:
            rows.extend(importlib.import_module(f"bench.{name}").run())
        except Exception:
            traceback.print_exc()
            failed.append(name)
        print(f"{name} took {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    kept = [row for row in _before() if row["name"] not in {r["name"] for r in rows}]
    RESULTS.write_text(json.dumps({"results": [*kept, *rows]}, indent=1) + "\n")
    write_rows(rows, COLUMNS)
    over = [r["name"] for r in rows if _over(r)]
    if over:
        print(f"Over the bar: {', '.join(over)}", file=sys.stderr)
    return 1 if failed or over else 0


def _over(row: dict[str, Any]) -> bool:
    """Whether a row has a bar and a ratio beyond it; a figure without a peer has neither."""
    return bool(row.get("bar") and row.get("ratio") and row["ratio"] > row["bar"])


def _before() -> list[dict[str, Any]]:
    if not RESULTS.is_file():
        return []
    found: list[dict[str, Any]] = json.loads(RESULTS.read_text())["results"]
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
