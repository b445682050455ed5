"""`acktrail agent --once` ends on a file that is being written: it reads to the end once."""

from __future__ import annotations

from pathlib import Path

import pytest

from acktrail.errors import AcktrailError
from acktrail.lake import Lake
from acktrail.settings.sources import LogFilesSource, VerifiableSource
from ingest.agent.loop import Agent
from ingest.agent.reading import Pace
from ingest.registry import SourceContext, build_source

LINE = "2026-11-18 09:00:00,000 WARN [Producer clientId=a] Got error produce response\n"
EVENT = (
    '{{"timestamp":1790000000000,"name":"producer_send_success","key":null,"value":"0.{n}",'
    '"topic":"orders","partition":0,"offset":{n}}}\n'
)
KINDS = [
    pytest.param(LogFilesSource, "log_files", lambda _n: LINE, id="log_files"),
    pytest.param(VerifiableSource, "verifiable", lambda n: EVENT.format(n=n), id="verifiable"),
]


@pytest.mark.parametrize(("settings", "kind", "line"), KINDS)
def test_a_file_that_grows_with_every_look_is_read_to_its_end_once(
    settings, kind, line, tmp_path: Path
):
    path = tmp_path / "app.log"
    path.write_text("".join(map(line, range(10))))
    source = build_source(
        settings(kind=kind, name="app", paths=(str(path),)), SourceContext("c", once=True)
    )
    poll, polls = source.poll, []

    def growing_poll(timeout_s: float):
        polls.append(timeout_s)
        if len(polls) > 20:
            raise AcktrailError("it would never end")
        yield from poll(timeout_s)
        with path.open("a") as log:
            log.write(line(10 + len(polls)))

    source.poll = growing_poll
    agent = Agent(Lake(tmp_path / "lake"), [source], Pace(poll_s=0.001), once=True)
    agent.run()
    assert agent.counts["app"].received >= 1
    assert len(polls) <= 3
