"""Keeping a run: a compact copy of its evidence and truth, scrubbed, replayable without Kafka."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import socket
from pathlib import Path

from acktrail import artifacts
from acktrail import recorded_receipts as receipts
from acktrail.errors import LabError
from lab.scratch import scratch_root

# `ssl.keystore.password = [hidden]` and `= null` say nothing; anything else is taken out.
_SECRET = re.compile(
    rb"(?i)((?:password|secret|token|jaas\.config|credentials)[\w.]*\"?\s*[=:]\s*\"?)"
    rb"(?!null|\[hidden\]|\"|,|\}|\s)[^\s,\"}]+"
)


def record(evidence: Path, out: Path) -> int:
    """Write a scrubbed, gzipped copy of *evidence* to the new directory *out*; return its bytes."""
    if out.exists() and any(out.iterdir()):
        raise LabError(f"{out} is not empty. Name a new directory.")
    places = _places()
    total = 0
    noted = evidence / receipts.FILE
    for source in sorted(path for path in evidence.rglob("*") if path.is_file()):
        target = out / source.relative_to(evidence)
        target.parent.mkdir(parents=True, exist_ok=True)
        text = source.read_bytes()
        text = (
            _scrubbed_receipts(text, evidence, places) if source == noted else scrub(text, places)
        )
        if source.suffix in (".jsonl", ".log"):
            target = target.with_name(target.name + ".gz")
            text = gzip.compress(text, compresslevel=9, mtime=0)
        target.write_bytes(text)
        total += len(text)
    return total


def replay(recording: Path, evidence: Path) -> None:
    """Unpack a recording into the new directory *evidence*, as a run would have left it."""
    for source in sorted(path for path in recording.rglob("*") if path.is_file()):
        target = evidence / source.relative_to(recording)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".gz":
            target.with_suffix("").write_bytes(gzip.decompress(source.read_bytes()))
        else:
            shutil.copyfile(source, target)


def scrub(text: bytes, places: dict[bytes, bytes]) -> bytes:
    """Take out secrets, and put neutral names for this machine's hosts and directories."""
    for found, instead in places.items():
        whole = rb"(?<![\w-])" + re.escape(found) + rb"(?![\w-])"
        text = re.sub(whole, instead, text)
    return _SECRET.sub(rb"\1[scrubbed]", text)


def _scrubbed_receipts(text: bytes, evidence: Path, places: dict[bytes, bytes]) -> bytes:
    """Receipts that count the bytes of scrubbed files: their whole lines at each look."""
    rows = [json.loads(line) for line in text.splitlines()]
    files = {name: (evidence / name).read_bytes() for row in rows for name in row["sizes"]}
    for row in rows:
        for name, size in row["sizes"].items():
            whole = files[name][: files[name].rfind(b"\n", 0, size) + 1]
            row["sizes"][name] = len(scrub(whole, places))
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def _places() -> dict[bytes, bytes]:
    """What would tell of this machine, longest first so that none hides in another."""
    names = {
        str(scratch_root()): "/var/lib/kafka",
        str(artifacts.cache_directory()): "/opt/kafka",
        str(Path.home()): "/home/kafka",
        str(Path(__file__).parents[1]): "/opt/acktrail",
        socket.getfqdn(): "localhost",
        socket.gethostname(): "localhost",
        os.uname().release: "linux",
    }
    by_length = sorted(names.items(), key=lambda pair: -len(pair[0]))
    return {key.encode(): value.encode() for key, value in by_length if key}
