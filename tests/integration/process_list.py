"""What everybody on the machine can see of a process and of those it started: their arguments."""

from __future__ import annotations

from pathlib import Path


def process_list(pid: int) -> list[str]:
    """The command lines of the process and all its descendants, as `ps` shows them."""
    here = Path(f"/proc/{pid}")
    try:
        line = (here / "cmdline").read_bytes().decode("utf-8", "replace").replace("\0", " ")
        children = [int(c) for t in here.glob("task/*/children") for c in t.read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [line, *(each for child in children for each in process_list(child))]
