"""Who answers ad hoc questions: a session of this process, or a running `acktrail serve`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from acktrail.lake import Lake
    from acktrail.settings import Loaded
    from pipelines.adhoc.ask import SqlAnswer


class QuestionSource(Protocol):
    """Answers questions."""

    def ask(
        self,
        text: str,
        *,
        limit: int,
        timeout_s: float,
        parameters: Mapping[str, object] | None = None,
    ) -> SqlAnswer:
        """The answer; UsageError with the reason where there is none."""

    def columns(self) -> dict[str, list[str]]:
        """The columns of each table, to complete names with."""

    def warm_up(self) -> None:
        """Do what the first question would have to wait for."""


@contextlib.contextmanager
def question_source(
    loaded: Loaded, lake: Lake | None, master: str | None, *, connect: bool
) -> Iterator[QuestionSource]:
    """The source to ask; it is closed at the end."""
    if connect:
        from acktrail.operate.sql_connect import ConnectSource, server_url

        source = ConnectSource(server_url(loaded))
        try:
            yield source
        finally:
            source.close()
        return
    from acktrail.operate.sql_session import SessionSource

    assert lake is not None
    with SessionSource(loaded, lake, master) as own:
        yield own
