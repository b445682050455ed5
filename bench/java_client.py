"""What the audit costs a Java application: CPU, allocation and garbage collection per message.

A real cluster beside it, 200-byte values, keys, a callback of the application in both. The peer is
the same client without the audit. CPU of the whole process, the best of runs.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient

from acktrail import artifacts
from lab.cluster import cluster
from lab.scenario import Topic
from lab.snapshots import create_topics

_ROOT = Path(__file__).parents[1]
_JVM = ("-Xmx512m", "-Xms512m", "-XX:+UseG1GC")
MESSAGES = 800_000
RATE = 100_000
RUNS = 2
READ = "bench-read"
BAR = 1.3
WAYS = {"4.3.1": ("interceptor", "wrapper"), "2.8.2": ("interceptor", "wrapper")}
Figures = dict[str, int]


def run() -> list[dict[str, Any]]:
    """One row for each version and way, with what is allocated more, and the collector's time."""
    subprocess.run(
        ["bash", "scripts/jar.sh", str(Path(sys.executable).parent)], cwd=_ROOT, check=True
    )
    with cluster() as nodes:
        topics = [Topic("bench", ((1,), (2,), (3,), (1,)))]
        topics += [Topic(READ, ((1,),)), Topic("acktrail-reports", ((1,),))]
        create_topics(AdminClient({"bootstrap.servers": nodes.direct}), topics)
        return _rows(nodes.direct)


def _rows(servers: str) -> list[dict[str, Any]]:
    rows = []
    for version, ways in WAYS.items():
        bare = _best(version, "produce", "bare", servers)
        for way in ways:
            figures = _best(version, "produce", way, servers)
            rows.append(_row(f"java_{way}_{version}", figures, bare))
    _measure("4.3.1", "produce", "interceptor", servers, READ)  # so that there are ids to read
    bare = _best("4.3.1", "consume", "bare", servers)
    audited = _best("4.3.1", "consume", "audited", servers)
    return [*rows, _row("java_consumer_4.3.1", audited, bare)]


def _best(version: str, role: str, way: str, servers: str) -> Figures:
    topic = READ if role == "consume" else "bench"
    runs = [_measure(version, role, way, servers, topic) for _ in range(RUNS)]
    return min(runs, key=lambda found: found["process_ns"])


def _measure(version: str, role: str, way: str, servers: str, topic: str) -> Figures:
    (jar,) = (_ROOT / "dist").glob("acktrail-client-*.jar")
    jars = artifacts.resolve(f"kafka-clients-{version}")
    path = f"{jar}:{_ROOT / 'build/java/more'}:{jars}/*"
    done = subprocess.run(
        [
            *(artifacts.java(), *_JVM, "-cp", path, "io.acktrail.BenchClients"),
            *(role, way, servers, str(MESSAGES), str(RATE), topic),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    if done.returncode != 0:
        raise RuntimeError(done.stdout + done.stderr[-2000:])
    return {name: int(value) for name, value in (w.split("=") for w in done.stdout.split())}


def _row(name: str, ours: Figures, bare: Figures) -> dict[str, Any]:
    more = ours["bytes"] - bare["bytes"]
    print(f"  {name}: {ours}\n  bare: {bare}", file=sys.stderr)
    return {
        "name": f"{name} ({more:+d} bytes a message, GC {ours['gc_ms']} ms, {bare['gc_ms']} bare)",
        "ours_s": ours["process_ns"] * MESSAGES / 1e9,
        "peer": "kafka-clients",
        "peer_s": bare["process_ns"] * MESSAGES / 1e9,
        "ratio": ours["process_ns"] / bare["process_ns"],
        "bar": BAR,
    }
