"""The loop of `acktrail watch`: what a failing step does, and that nothing grows."""

from __future__ import annotations

import logging
import threading
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from acktrail.commands.watch_loop import PATIENCE, Watch
from acktrail.errors import ContractError, LakeBusy

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
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(17_280):
            loop.tick()
        assert tracemalloc.get_traced_memory()[0] - before < 64 * 1024
    finally:
        tracemalloc.stop()
        logging.disable(logging.NOTSET)
