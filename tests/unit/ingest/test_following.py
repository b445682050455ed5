"""Whatever happens to the files and to the agent, each line is in the lake exactly once."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from memory_lake import MemoryLake

from acktrail.settings.sources import LogFilesSource
from ingest.registry import SourceContext
from ingest.source import Flush
from ingest.sources.log_files import LogFiles

_NUMBER = re.compile(r"line (\d+) END")


class Following(RuleBasedStateMachine):
    """A writer, a rotation and an agent that may die at any point."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="following-"))
        self.log = self.folder / "app.log"
        self.lake = MemoryLake()
        self.now = 1_700_000_000.0
        self.written = 0
        self.torn = ""
        self.agent = self.start()
        self.pending: dict[str, Flush] = {}

    def teardown(self) -> None:
        self.agent.close()
        shutil.rmtree(self.folder)

    def start(self) -> LogFiles:
        wanted = LogFilesSource(
            kind="log_files",
            name="s",
            host="h",
            paths=(str(self.folder / "*.log"),),
            torn_line_s=1e9,
        )
        made = LogFiles(wanted, SourceContext("c"), clock=lambda: self.now)
        made.open(self.lake)  # type: ignore[arg-type]
        return made

    # -- the writer -----------------------------------------------------------------------------

    @initialize()
    def begin(self) -> None:
        self.write(1, 0, False)

    @rule(lines=st.integers(1, 25), noise=st.integers(0, 3), trace=st.booleans())
    def write(self, lines: int, noise: int, trace: bool) -> None:
        text = self.torn
        self.torn = ""
        for _ in range(lines):
            self.written += 1
            text += f"2026-01-31 10:00:00,001 WARN Got error produce response line {self.written}"
            text += " END\n" + "\tat a.b.C(D.java:1)\n" * trace
            text += "2026-01-31 10:00:00,002 INFO nothing of interest\n" * noise
        self._append(text)

    @rule()
    @precondition(lambda self: not self.torn)
    def write_half_a_line(self) -> None:
        self.written += 1
        whole = f"2026-01-31 10:00:00,001 WARN Got error produce response line {self.written} END\n"
        self._append(whole[:40])
        self.torn = whole[40:]

    def _append(self, text: str) -> None:
        with self.log.open("a") as out:
            out.write(text)
        os.utime(self.log, (self.now, self.now))

    # -- the rotation ---------------------------------------------------------------------------

    def _whole(self) -> bool:
        return not self.torn and self.log.exists() and self.log.stat().st_size > 0

    def _shift(self) -> None:
        for number in range(20, 0, -1):
            for ending in ("", ".gz"):
                old = self.folder / f"app.log.{number}{ending}"
                if old.exists():
                    old.rename(self.folder / f"app.log.{number + 1}{ending}")

    @rule()
    @precondition(_whole)
    def rotate_by_rename(self) -> None:
        self._shift()
        self.log.rename(self.folder / "app.log.1")
        self.log.touch()

    @rule(look=st.booleans())
    @precondition(_whole)
    def rotate_by_copytruncate(self, look: bool) -> None:
        self._shift()
        shutil.copy(self.log, self.folder / "app.log.1")
        if look:
            self.poll()
        os.truncate(self.log, 0)

    @rule(look=st.booleans())
    def compress(self, look: bool) -> None:
        for path in sorted(self.folder.glob("app.log.*")):
            if path.suffix != ".gz":
                packed = path.with_name(path.name + ".gz")
                packed.write_bytes(gzip.compress(path.read_bytes()))
                if look:
                    self.poll()
                path.unlink()
                return

    @rule()
    def delete_the_oldest(self) -> None:
        """As rotation does long after the agent has read it."""
        self.drain()
        rotated = sorted(self.folder.glob("app.log.*"), key=lambda p: p.stat().st_mtime)
        if rotated:
            rotated[0].unlink()

    # -- the agent ------------------------------------------------------------------------------

    @rule()
    def poll(self) -> None:
        self.now += 1
        for batch in self.agent.poll(0):
            self.pending.setdefault(batch.table.name, Flush(batch.table)).add(batch)

    @rule()
    def commit(self) -> None:
        for flush in list(self.pending.values()):
            self.lake.append(flush.table, flush.data(), flush.positions)
            for batch in flush.batches:
                self.agent.committed(batch)
            del self.pending[flush.table.name]

    @rule()
    def die_and_start_again(self) -> None:
        self.agent.close()
        self.pending = {}
        self.agent = self.start()

    @rule()
    def nothing_for_a_while(self) -> None:
        self.now += 10

    def drain(self) -> None:
        for _ in range(3):
            self.poll()
            self.now += 10
        self.commit()

    # -- the promise ----------------------------------------------------------------------------

    def numbers(self) -> list[int]:
        return sorted(int(n) for row in self.lake.rows for n in _NUMBER.findall(row["text"]))

    @invariant()
    def nothing_is_doubled(self) -> None:
        numbers = self.numbers()
        assert len(numbers) == len(set(numbers))

    @rule()
    def everything_is_there_in_the_end(self) -> None:
        self.drain()
        whole = self.written - bool(self.torn)
        assert self.numbers() == list(range(1, whole + 1))


_EXAMPLES = 2_000 if os.environ.get("ACKTRAIL_SOAK") else 40
Following.TestCase.settings = settings(
    max_examples=_EXAMPLES, stateful_step_count=25, deadline=None
)
TestFollowing = Following.TestCase
