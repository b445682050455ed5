"""The reader finds what a plain second count finds, on a recorded incident of real Kafka."""

from __future__ import annotations

from pathlib import Path

from bench import lab_lines

INCIDENT = Path(__file__).resolve().parents[3] / "acktrail" / "demo" / "incident"


def test_every_event_is_found_and_no_other(capsys):
    assert lab_lines.main([str(INCIDENT)]) == 0
    printed = capsys.readouterr()
    assert "0 differences" in printed.err
    figures = dict(line.split() for line in printed.out.splitlines()[1:])
    assert int(figures["lines"]) > 4000
    assert int(figures["retry"]) > 20
