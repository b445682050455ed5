"""Watching a run: what stops although it never began."""

from __future__ import annotations

from types import SimpleNamespace

from lab import observer, snapshots


class Commits:
    """Stands for the reader of commits: it is closed once."""

    def __init__(self, *_given: object) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


def test_a_run_that_fails_before_anything_is_watched_can_be_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(snapshots, "observer", lambda _direct: None)
    monkeypatch.setattr(snapshots, "Commits", Commits)
    cluster = SimpleNamespace(direct="127.0.0.1:1", brokers={})
    scenario = SimpleNamespace(consumers=(), topics=())
    watching = observer.Observer(cluster, scenario, tmp_path)  # type: ignore[arg-type]
    watching.stop()
    assert watching._commits.closed == 1
