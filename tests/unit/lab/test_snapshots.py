"""What was not answered is not written: neither an empty config nor an offset that is none."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace

from confluent_kafka import KafkaError, KafkaException

from lab import snapshots


def answered(value):
    done = Future()
    done.set_result(value)
    return done


def refused():
    done = Future()
    done.set_exception(KafkaException(KafkaError(KafkaError._TIMED_OUT)))
    return done


def entry(value, *, sensitive=False):
    return SimpleNamespace(value=value, is_sensitive=sensitive)


class Admin:
    """Answers for its settings unless the name is in *silent*; offsets as given."""

    def __init__(self, silent=(), offsets=()):
        self.silent, self.offsets = set(silent), list(offsets)

    def describe_configs(self, asked, request_timeout):  # noqa: ARG002 - as the real one is called
        entries = {"cleanup.policy": entry("compact"), "ssl.key": entry("x", sensitive=True)}
        return {r: refused() if r.name in self.silent else answered(entries) for r in asked}

    def list_offsets(self, asked, request_timeout):  # noqa: ARG002
        return {place: answered(self.offsets.pop(0)) for place in asked}


def test_who_does_not_answer_is_left_out_and_asked_again():
    asked = snapshots.config_resources(["t"], [1, 2])
    admin = Admin(silent={"t", "2"})
    rows, left = snapshots.config_states(admin, asked)  # type: ignore[arg-type]
    assert [(r["entity_kind"], r["entity"], r["settings"]) for r in rows] == [
        ("broker", "1", {"cleanup.policy": "compact"})
    ]
    assert [each.name for each in left] == ["t", "2"]
    admin.silent.clear()
    rows, left = snapshots.config_states(admin, left)  # type: ignore[arg-type]
    assert [(r["entity_kind"], r["entity"]) for r in rows] == [("topic", "t"), ("broker", "2")]
    assert left == []


def test_an_offset_that_the_leader_does_not_know_is_not_written():
    unknown = SimpleNamespace(offset=-1001, leader_epoch=None)
    known = SimpleNamespace(offset=7, leader_epoch=2)
    row = {"topic": "t", "partition": 0, "leader": 1, "latest_offset": None, "leader_epoch": None}
    for answer, expected in ((unknown, (None, None)), (known, (7, 2))):
        rows = [dict(row)]
        admin = Admin(offsets=[answer])
        snapshots._add_offsets(admin, rows, None, ("latest_offset", "leader_epoch"))  # type: ignore[arg-type]
        assert (rows[0]["latest_offset"], rows[0]["leader_epoch"]) == expected
