"""The loop of `acktrail watch`: what a failing step does, and that nothing grows."""

from __future__ import annotations

import gc
import logging
import threading
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from click.testing import CliRunner

from acktrail.cli import main
from acktrail.cli.watch import Reading
from acktrail.errors import ConfigError, ContractError, LakeBusy
from acktrail.operate.watch_loop import PATIENCE, Watch, is_due

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@dataclass
class Scripted:
    """A step that does what it is told for each tick, and counts."""

    name: str
    script: Callable[[int], bool | Exception] = lambda _n: False
    calls: int = 0

    def __call__(self, _as_of: datetime) -> bool:
        self.calls += 1
        outcome = self.script(self.calls)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def watch(*steps: Scripted, **more) -> Watch:
    return Watch(list(steps), 0.001, lambda: NOON, **more)


def test_whoever_comes_second_tries_again_and_the_others_go_on() -> None:
    busy = Scripted("retry_budgets", lambda n: LakeBusy("second") if n == 1 else True)
    checks = Scripted("checks")
    loop = watch(busy, checks)
    first, second = loop.tick(), loop.tick()
    assert (first.done, first.again) == ((), ("retry_budgets",))
    assert (second.done, second.again) == (("retry_budgets",), ())
    assert checks.calls == 2


def test_an_unknown_failure_renews_the_session() -> None:
    renewed = []
    loop = watch(
        Scripted("job", lambda n: RuntimeError("JVM gone") if n == 1 else True),
        on_failure=lambda: renewed.append(1),
    )
    assert loop.tick().again == ("job",)
    assert loop.tick().done == ("job",)
    assert renewed == [1]


def test_a_failed_step_is_one_line(caplog) -> None:
    watch(Scripted("checks", lambda _n: RuntimeError("Job aborted\n\tat java\n" * 99))).tick()
    (record,) = caplog.records
    assert record.getMessage().startswith("checks failed (1 of 10 times in a row): RuntimeError: J")
    assert len(record.getMessage().splitlines()) == 1
    assert len(record.getMessage()) < 600


def test_it_gives_up_only_after_many_failures_in_a_row() -> None:
    loop = watch(Scripted("job", lambda n: LakeBusy(f"{n}") if n % PATIENCE else True))
    for _ in range(5 * PATIENCE):
        loop.tick()
    hopeless = watch(Scripted("job", lambda n: LakeBusy(f"{n}")))
    for _ in range(PATIENCE - 1):
        hopeless.tick()
    with pytest.raises(LakeBusy, match=str(PATIENCE)):
        hopeless.tick()


def test_what_trying_again_cannot_cure_ends_it() -> None:
    with pytest.raises(ContractError):
        watch(Scripted("job", lambda _n: ContractError("changed"))).tick()


def test_stopping_ends_the_round_after_the_step_at_hand() -> None:
    stopping = threading.Event()

    def stop(_n: int) -> bool:
        stopping.set()
        return True

    later = Scripted("checks")
    loop = watch(Scripted("job", stop), later, stopping=stopping)
    loop.run()
    assert later.calls == 0


def test_memory_is_flat_over_a_day_of_ticks() -> None:
    loop = watch(
        Scripted("busy", lambda n: LakeBusy("x") if n % 3 == 0 else n % 2 == 0), Scripted("checks")
    )
    logging.disable()  # pytest would keep every line
    tracemalloc.start()
    try:
        for _ in range(500):
            loop.tick()
        gc.collect()  # errors and their frames are cycles: some wait for the collector
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(17_280):
            loop.tick()
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 16 * 1024
    finally:
        tracemalloc.stop()
        logging.disable(logging.NOTSET)


@pytest.mark.parametrize(
    ("case", "last", "due"),
    [
        ("never before", None, True),
        ("just now", timedelta(0), False),
        ("nearly", timedelta(seconds=-59), False),
        ("in time", timedelta(seconds=-60), True),
        ("the clock was set back by a day", timedelta(days=1), True),
    ],
)
def test_what_is_done_now_and_then_survives_a_clock_that_is_set(case, last, due) -> None:
    assert is_due(None if last is None else NOON + last, NOON, timedelta(minutes=1)) is due, case


class Agents:
    """Agents whose sources all end with an error, by themselves or when they are stopped."""

    def __init__(self, asked: bool) -> None:
        self.stopping = threading.Event()
        if asked:
            self.stopping.set()

    def run(self) -> None:
        raise ConfigError("no such topic")


@pytest.mark.parametrize("asked", [False, True], ids=["by itself", "after SIGTERM"])
def test_a_watch_with_a_source_that_needs_a_person_ends_with_the_reason(asked) -> None:
    stopping = threading.Event()
    reading = Reading(Agents(asked), stopping)  # type: ignore[arg-type]
    reading.start()
    reading.join()
    assert stopping.is_set()
    with pytest.raises(ConfigError, match="no such topic"):
        reading.tell()


def test_without_sources_there_is_nothing_to_wait_for() -> None:
    stopping = threading.Event()
    reading = Reading(None, stopping)
    reading.start()
    reading.join()
    reading.tell()
    assert not stopping.is_set()


@pytest.mark.parametrize("every", ["-5", "0", "nan", "inf"])
def test_a_pace_that_is_none_is_refused(every) -> None:
    done = CliRunner().invoke(main, ["watch", "--every", every])
    assert done.exit_code == 2
    assert "above 0" in done.output
