"""Progress of long work: on a terminal's stderr only, so that logs and pipes stay clean."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID


class Progress:
    """A bar over *total* parts that names those under way; silent where nobody looks."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._under_way: list[str] = []
        self._lock = threading.Lock()
        self._bar: Bar | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Progress:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
            from rich.progress import Progress as Bar

            columns = (BarColumn(24), MofNCompleteColumn(), TimeElapsedColumn())
            said = TextColumn("{task.description}")
            self._bar = Bar(*columns, said, console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task("", total=self._total)
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    @contextlib.contextmanager
    def part(self, name: str) -> Iterator[None]:
        """One part's work: shown while it lasts, counted when it ends well."""
        self._show(begun=name)
        try:
            yield
        except BaseException:
            self._show(ended=name)
            raise
        self._show(ended=name, advance=1)

    def _show(self, begun: str = "", ended: str = "", advance: int = 0) -> None:
        with self._lock:
            if begun:
                self._under_way.append(begun)
            if ended:
                self._under_way.remove(ended)
            if self._bar is not None and self._task is not None:
                described = ", ".join(self._under_way)
                self._bar.update(self._task, advance=advance, description=described)
