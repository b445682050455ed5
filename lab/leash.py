"""Run a program that cannot outlive its parent: `python leash.py PARENT_PID PROGRAM ARGS...`.

The kernel kills it when the parent ends, however the parent ends (`kill -9` included).
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Tie this process to its parent, then become the program."""
    parent, program = int(sys.argv[1]), sys.argv[2:]
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # It died before the leash was on.
        sys.exit(1)
    os.execvp(program[0], program)


if __name__ == "__main__":
    main()
