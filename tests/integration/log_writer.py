"""Write numbered log lines as they are ordered; reopen the file when its name names another one.

Arguments: path. Each line on stdin orders `count seconds`: that many lines, at an even pace. With
"pause" as second argument nothing is written while a file `<path>.pause` exists, as a program does
that is told of its rotation.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

CHUNK = 50


def main(path: str, pausing: bool) -> None:
    out = open(path, "ab", buffering=0)  # noqa: SIM115 - reopened in the loop
    number = 0
    for order in sys.stdin:
        count, seconds = int(order.split()[0]), float(order.split()[1])
        began, last = time.monotonic(), number + count
        for first in range(number, last, CHUNK):
            while pausing and Path(path + ".pause").exists():
                Path(path + ".paused").touch()
                time.sleep(0.002)
            if _moved(path, out.fileno()):
                out.close()
                out = open(path, "ab", buffering=0)  # noqa: SIM115
            text = _text(first, min(first + CHUNK, last))
            # One write per two halves, so that a reader meets torn lines.
            half = len(text) // 2
            out.write(text[:half])
            out.write(text[half:])
            due = began + seconds * (first + CHUNK - number) / count
            time.sleep(max(0.0, due - time.monotonic()))
        number = last
    out.close()


def _moved(path: str, descriptor: int) -> bool:
    try:
        return os.fstat(descriptor).st_ino != os.stat(path).st_ino
    except FileNotFoundError:
        return True


def _text(first: int, end: int) -> bytes:
    return b"".join(
        b"[2026-01-31 10:00:00,%03d] WARN [Producer clientId=p] Got error produce response "
        b"with correlation id 7, line %d END\n" % (n % 1000, n)
        for n in range(first, end)
    )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:] == ["pause"])
