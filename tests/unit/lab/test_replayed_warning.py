"""The warning of a recorded run: found by what was printed until then, not by what came after."""

from __future__ import annotations

from datetime import timedelta

import pytest
from deltalake import write_deltalake

from acktrail.contracts.arrow import rows
from acktrail.contracts.silver import CLIENT_CONFIGS, PRODUCER_EVENTS
from acktrail.lake import Lake
from acktrail.operate.lab_warning import first_warning
from acktrail.window import day_of, hour_of
from tests.unit.retries.retry_lines import MAX, NOON


def event(second: float, left: int, number: int, **more) -> dict:
    at = NOON + timedelta(seconds=second)
    return {
        "cluster": "run", "source": "s", "event_key": f"s/{number}", "record_key": f"s/f/{number}",
        "host": "h", "client_id": "pay", "kind": "retry", "at": at, "hour": hour_of(at),
        "topic": "t", "partition": 0, "correlation_id": number, "attempts_left": left,
        "error": "NOT_ENOUGH_REPLICAS", **more,
    }  # fmt: skip


def start(retries: int) -> dict:
    return {
        "cluster": "run", "source": "s", "record_key": "s/f/0", "host": "h", "role": "producer",
        "client_id": "pay", "started_at": NOON - timedelta(minutes=1), "retries": retries,
        "delivery_timeout_ms": 120_000, "request_timeout_ms": 30_000, "linger_ms": 0,
        "retry_backoff_ms": 100, "retry_backoff_max_ms": 1000, "client_version": "4.3.1",
        "day": day_of(NOON),
    }  # fmt: skip


BURNING = [event(n, MAX - 1 - n, n + 1) for n in range(110)]
ENDING = event(119, None, 500, kind="expired", correlation_id=None, elapsed_ms=119_000, records=1)
WAITED = {"error": "REQUEST_TIMED_OUT"}
CASES = [
    # case, lines, retries, loss after -> warned after
    ("a quarter of the budget is gone", BURNING, MAX, 120, 35.0),
    ("that it ended is not known before", [*BURNING, ENDING], MAX, 120, 35.0),
    ("a request that waited counts as old", [event(0, MAX - 1, 1, **WAITED)], MAX, 90, 5.0),
    ("few attempts are critical at once", [event(2, 4, 1), event(2.3, 3, 2)], 5, 10, 2.3),
    ("one line of many, then silence", [event(0, MAX - 1, 1)], MAX, 120, None),
    ("lost before it was critical", BURNING, MAX, 20, None),
    ("nothing was printed", [], MAX, 120, None),
]


@pytest.mark.parametrize(
    ("lines", "retries", "lost", "warned"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_when_the_lines_first_warned(tmp_path, lines, retries, lost, warned):
    lake = Lake(tmp_path)
    if lines:
        write_deltalake(lake.path(PRODUCER_EVENTS), rows(PRODUCER_EVENTS, lines))
    write_deltalake(lake.path(CLIENT_CONFIGS), rows(CLIENT_CONFIGS, [start(retries)]))
    found = first_warning(lake, "run", "pay", NOON + timedelta(seconds=lost))
    assert (None if found is None else (found - NOON).total_seconds()) == warned
