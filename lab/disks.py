"""A disk of a few megabytes for one broker, and filling it: a tmpfs, which needs root."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from acktrail.errors import LabError

if TYPE_CHECKING:
    from lab.run import Run

_BALLAST = "ballast"
_BLOCK = 64 * 1024


@dataclass(frozen=True)
class SmallDisk:
    """Move the data of a broker that is down to a small disk of its own."""

    broker: int
    megabytes: int = 64
    name: str = "small_disk"

    @property
    def target(self) -> str:
        """The broker's host and the size."""
        return f"kafka-{self.broker} {self.megabytes} MB"

    def start(self, run: Run) -> None:
        """Mount it over the data directory, with the data in it."""
        broker = run.cluster.brokers[self.broker]
        if broker.running:
            raise LabError(f"broker {self.broker} still runs: its disk is not changed under it")
        aside = broker.data.with_name("data.aside")
        broker.data.rename(aside)
        broker.data.mkdir()
        _mount("-t", "tmpfs", "-o", f"size={self.megabytes}m", "tmpfs", str(broker.data))
        for path in aside.iterdir():
            shutil.move(path, broker.data / path.name)
        aside.rmdir()

    def stop(self, run: Run) -> None:
        """It stays until the cluster ends."""


@dataclass(frozen=True)
class FullDisk:
    """Fill the disk of a broker, which must be one of its own; mending makes room again."""

    broker: int
    name: str = "full_disk"

    @property
    def target(self) -> str:
        """The broker's host."""
        return f"kafka-{self.broker}"

    def start(self, run: Run) -> None:
        """Write until nothing more can be written."""
        data = run.cluster.brokers[self.broker].data
        if not data.is_mount():
            raise LabError(f"{data} is not a disk of its own: filling it would fill the machine's")
        with (data / _BALLAST).open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"\0" * _BLOCK)
            except OSError:
                pass  # It is full.

    def stop(self, run: Run) -> None:
        """Remove the ballast, and start the broker if it has ended for want of room."""
        broker = run.cluster.brokers[self.broker]
        (broker.data / _BALLAST).unlink(missing_ok=True)
        run.note(f"broker_{self.broker}_ended_for_want_of_room", not broker.running)
        run.cluster.launch(self.broker)
        run.cluster.wait_started(self.broker)


def unmount(data: Path) -> None:
    """Take a disk away that `SmallDisk` mounted; nothing where there is none."""
    if data.is_mount():
        subprocess.run(["umount", "-l", str(data)], check=False, capture_output=True)


def _mount(*arguments: str) -> None:
    if os.geteuid() != 0:
        raise LabError("A small disk is a tmpfs mount, which needs root.")
    done = subprocess.run(["mount", *arguments], check=False, capture_output=True, text=True)
    if done.returncode:
        raise LabError(f"A tmpfs could not be mounted: {done.stderr.strip()}")
