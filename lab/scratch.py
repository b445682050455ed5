"""Scratch directories, free ports and room on the disk."""

from __future__ import annotations

import getpass
import os
import random
import shutil
import socket
import tempfile
from pathlib import Path

from acktrail.errors import LabError
from lab.disks import unmount

_NEEDED = 1 << 30
_LOWEST_PORT = 10_000
_OUTGOING = Path("/proc/sys/net/ipv4/ip_local_port_range")


def scratch_root() -> Path:
    """Where labs keep their data: `ACKTRAIL_LAB_DIR`, else a directory of this user in /tmp."""
    configured = os.environ.get("ACKTRAIL_LAB_DIR")
    root = Path(configured or Path(tempfile.gettempdir(), f"acktrail-lab-{getpass.getuser()}"))
    root.mkdir(parents=True, exist_ok=True)
    return root


def new_scratch(purpose: str) -> Path:
    """A fresh directory that belongs to this process; what dead processes left is removed first."""
    reap()
    root = scratch_root()
    free = shutil.disk_usage(root).free
    if free < _NEEDED:
        raise LabError(
            f"{root} has {free >> 20} MB free and a cluster wants {_NEEDED >> 20} MB. "
            "Free some, or set ACKTRAIL_LAB_DIR to a larger disk."
        )
    return Path(tempfile.mkdtemp(dir=root, prefix=f"{purpose}.{os.getpid()}.{born(os.getpid())}."))


def reap() -> list[Path]:
    """Remove scratch directories whose process is gone, and say which."""
    gone = []
    for path in scratch_root().iterdir():
        parts = path.name.split(".")
        if len(parts) != 4 or not (parts[1] + parts[2]).isdigit():
            continue
        if born(int(parts[1])) != int(parts[2]):
            for data in path.glob("kafka-*/data"):
                unmount(data)
            shutil.rmtree(path, ignore_errors=True)
            gone.append(path)
    return gone


def born(pid: int) -> int | None:
    """When process *pid* was started, in clock ticks since boot: tells a reused pid apart.

    None where it is gone, or ended and only not yet waited for.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] == "Z" else int(fields[19])


def free_ports(count: int) -> list[int]:
    """That many loopback ports that were free a moment ago.

    From below those that the kernel gives to outgoing connections: a broker that is down for a
    while, and others connecting meanwhile, still finds its own free.
    """
    first = _first_outgoing_port()
    below = range(_LOWEST_PORT, first) if first > _LOWEST_PORT + 1000 else range(1)
    sockets: list[socket.socket] = []
    try:
        while len(sockets) < count:
            each = socket.socket()
            try:
                each.bind(("127.0.0.1", random.choice(below)))
            except OSError:
                each.close()
                continue
            sockets.append(each)
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def _first_outgoing_port() -> int:
    """The first port of outgoing connections; 0: not known, then any port is as good."""
    try:
        return int(_OUTGOING.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 0
