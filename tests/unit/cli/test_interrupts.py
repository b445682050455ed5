"""^C after Spark has started goes where it went before."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from pipelines.session import _interrupts_as_before


@pytest.fixture
def restored() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


def _stop(*_: object) -> None: ...


def _of_spark(*_: object) -> None: ...


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (_stop, _stop),  # `watch` ends in good order
        (signal.default_int_handler, _of_spark),  # `run`: PySpark cancels its jobs first
        (signal.SIG_IGN, _of_spark),
    ],
)
@pytest.mark.usefixtures("restored")
def test_a_command_that_handles_interrupts_keeps_them(before, after) -> None:
    signal.signal(signal.SIGINT, before)
    with _interrupts_as_before():
        signal.signal(signal.SIGINT, _of_spark)  # as SparkContext does
    assert signal.getsignal(signal.SIGINT) is after
