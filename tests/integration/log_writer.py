"""Write numbered log lines at an even pace; reopen the file when its name names another one.

Arguments: path, count, seconds. With "pause" as fourth argument nothing is written while a file
`<path>.pause` exists, as a program does that is told of its rotation.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path


def main(path: str, count: int, seconds: float, pausing: bool) -> None:
    began = time.monotonic()
    out = open(path, "ab", buffering=0)  # noqa: SIM115 - reopened in the loop
    chunk = 50
    for first in range(0, count, chunk):
        while pausing and Path(path + ".pause").exists():
            Path(path + ".paused").touch()
            time.sleep(0.002)
        try:
            moved = os.fstat(out.fileno()).st_ino != os.stat(path).st_ino
        except FileNotFoundError:
            moved = True
        if moved:
            out.close()
            out = open(path, "ab", buffering=0)  # noqa: SIM115
        text = b"".join(
            b"[2026-01-31 10:00:00,%03d] WARN [Producer clientId=p] Got error produce response "
            b"with correlation id 7, line %d END\n" % (n % 1000, n)
            for n in range(first, min(first + chunk, count))
        )
        # One write per two halves, so that a reader meets torn lines.
        half = len(text) // 2
        out.write(text[:half])
        out.write(text[half:])
        due = began + seconds * (first + chunk) / count
        time.sleep(max(0.0, due - time.monotonic()))
    out.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4:] == ["pause"])
