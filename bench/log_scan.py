"""The log agent on text that is no evidence, against ripgrep looking for the same literals.

Ours is the whole agent's reading of the file: blocks, line counts, positions. ripgrep counts the
lines that hold one of the literals. Both are single-threaded, and seconds are of CPU time, so that
a busy machine does not decide. Then: lines of evidence per second, rows built and redacted
included, and the memory of a whole `acktrail agent --once` over a file with one line of 100 MB.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from acktrail.logs.prefilter import EVIDENCE

NOISE_BYTES = 256 * 1024 * 1024
HEAVY_LINES = 100_000
LONG_LINE = 100 * 1024 * 1024
MEMORY_BAR_MB = 150
_WORDS = (
    *("user", "order", "cache", "request", "handled", "response", "service", "completed"),
    *("thread", "pool", "database", "query", "connection", "idle", "metrics", "report"),
)

_READ = """
import sys, time
from ingest.agent.lean import without_pandas
without_pandas()
from acktrail.lake import Lake
from acktrail.settings.sources import LogFilesSource
from ingest.registry import SourceContext
from ingest.sources.log_files import LogFiles
settings = LogFilesSource(kind="log_files", name="bench", paths=(sys.argv[1],))
source = LogFiles(settings, SourceContext("c", once=True))
source.open(Lake(sys.argv[2]))
began = time.process_time()
while any([batch.received for batch in source.poll(0)]):
    pass
print(time.process_time() - began)
"""


def run() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        return [_against_ripgrep(folder), _evidence(folder), _memory(folder)]


def _against_ripgrep(folder: Path) -> dict[str, Any]:
    noise = folder / "noise.log"
    _write_noise(noise)
    literals = folder / "literals"
    literals.write_bytes(b"".join(literal + b"\n" for literal in EVIDENCE))
    ours_s, peer_s = [], []
    for _ in range(3):
        peer_s.append(_ripgrep(literals, noise))
        ours_s.append(_read(noise, folder))
    noise.unlink()
    ours, peer = min(ours_s), min(peer_s)
    return _row("log_scan_vs_ripgrep", ours, "ripgrep -cFf", peer, ours / peer, 2.0)


def _evidence(folder: Path) -> dict[str, Any]:
    heavy = folder / "heavy.log"
    with heavy.open("wb") as out:
        for n in range(HEAVY_LINES):
            out.write(
                b"[2026-01-31 10:%02d:%02d,%03d] WARN [Producer clientId=perf-%d] Got error "
                b"produce response with correlation id %d on topic-partition my-topic-%d, retrying "
                b"(2147483646 attempts left). Error: REQUEST_TIMED_OUT "
                b"(org.apache.kafka.clients.producer.internals.Sender)\n"
                % (n // 60 % 60, n % 60, n % 1000, n % 9, n, n % 12)
            )
    seconds = min(_read(heavy, folder) for _ in range(2))
    heavy.unlink()
    name = f"log_evidence_{HEAVY_LINES}_lines ({HEAVY_LINES / seconds:.0f} lines/s)"
    return _row(name, seconds, "", None, None, None)


def _memory(folder: Path) -> dict[str, Any]:
    long = folder / "long.log"
    with long.open("wb") as out:
        out.write(b"2026-01-31 10:00:00,001 WARN Got error produce response\n" * 1_000)
        out.write(b"2026-01-31 10:00:00,002 WARN Got error produce response ")
        for _ in range(LONG_LINE // (1024 * 1024)):
            out.write(b"x" * 1024 * 1024)
        out.write(b"\n2026-01-31 10:00:00,003 WARN Got error produce response\n")
    config = folder / "acktrail.toml"
    config.write_text(
        f'[lake]\nuri = "{folder}/memory-lake"\n'
        f'[[sources]]\nkind = "log_files"\nname = "a"\npaths = ["{long}"]\n'
    )
    command = [sys.executable, "-m", "acktrail", "agent", "--once", "--config", str(config)]
    began = time.perf_counter()
    agent = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(agent.pid, 0)
    if status:
        raise RuntimeError(f"the agent ended with {status}")
    agent.returncode = 0
    megabytes = used.ru_maxrss / 1024
    seconds = time.perf_counter() - began
    name = f"agent_memory_100_mb_line ({megabytes:.0f} MB RSS of {MEMORY_BAR_MB})"
    return _row(name, seconds, f"{MEMORY_BAR_MB} MB", None, megabytes / MEMORY_BAR_MB, 1.0)


def _write_noise(path: Path) -> None:
    chance = random.Random(1)
    lines = []
    for n in range(20_000):
        words = " ".join(chance.choice(_WORDS) for _ in range(chance.randint(4, 14)))
        lines.append(
            f"2026-01-31 10:{n // 60 % 60:02}:{n % 60:02},{n % 1000:03} INFO  [http-nio-{n % 8}] "
            f"com.acme.{chance.choice(_WORDS)}.Service : {words} id={n} took {n % 997} ms\n"
        )
    piece = "".join(lines).encode()
    with path.open("wb") as out:
        for _ in range(NOISE_BYTES // len(piece)):
            out.write(piece)


def _ripgrep(literals: Path, noise: Path) -> float:
    command = ["rg", "-c", "-a", "-F", "-f", str(literals), str(noise)]
    peer = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(peer.pid, 0)
    peer.returncode = os.waitstatus_to_exitcode(status)
    if peer.returncode != 1:
        raise RuntimeError("ripgrep found evidence in the noise, or did not run")
    return used.ru_utime + used.ru_stime


def _read(path: Path, folder: Path) -> float:
    """Seconds of reading alone, in a process of its own, as ripgrep has one."""
    with tempfile.TemporaryDirectory(dir=folder) as lake:
        ran = subprocess.run(
            [sys.executable, "-c", _READ, str(path), lake],
            capture_output=True,
            text=True,
            check=True,
        )
    return float(ran.stdout)


def _row(
    name: str, ours: float, peer: str, peer_s: float | None, ratio: float | None, bar: float | None
) -> dict[str, Any]:
    return {
        "name": name,
        "ours_s": round(ours, 2),
        "peer": peer,
        "peer_s": None if peer_s is None else round(peer_s, 2),
        "ratio": None if ratio is None else round(ratio, 2),
        "bar": bar,
    }
