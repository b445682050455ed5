"""Run probes side by side, each in a thread, with one time limit for all."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Sequence

from acktrail.operate.probes.row import FAILED, Clock, Probe, Row, failed

LIMIT_S = 10.0
"""How long all probes together may take; what has not answered by then has failed."""


def run_probes(probes: Sequence[Probe], limit_s: float = LIMIT_S) -> tuple[list[Row], list[Clock]]:
    """The rows of all *probes* in their order, and the clocks that were seen."""
    answers: queue.Queue[tuple[int, list[Row | Clock]]] = queue.Queue()

    def run(number: int, probe: Probe) -> None:
        try:
            answers.put((number, probe.run()))
        except Exception as error:
            # Whatever a probe meets is its own row; the others go on.
            answers.put((number, [failed(probe.what, error)]))

    # Daemons: a name server that hangs must not keep the command from ending.
    for number, probe in enumerate(probes):
        threading.Thread(target=run, args=(number, probe), daemon=True).start()
    ends = time.monotonic() + limit_s
    found: dict[int, list[Row | Clock]] = {}
    while len(found) < len(probes):
        try:
            number, answer = answers.get(timeout=max(0.0, ends - time.monotonic()))
        except queue.Empty:
            break
        found[number] = answer
    rows: list[Row] = []
    clocks: list[Clock] = []
    for number, probe in enumerate(probes):
        late = [Row(probe.what, FAILED, f"no answer within {limit_s:.0f} s")]
        for each in found.get(number, late):
            (rows if isinstance(each, Row) else clocks).append(each)  # type: ignore[arg-type]
    return rows, clocks
