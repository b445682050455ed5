"""Answers of a cluster that are none: they are noted, and never taken for facts."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import ConfigResource, ResourceType

from acktrail.errors import SourceUnavailable
from ingest.kafka.cluster_view import ClusterView, PartitionState


def answered(value: Any) -> Future[Any]:
    future: Future[Any] = Future()
    if isinstance(value, Exception):
        future.set_exception(value)
    else:
        future.set_result(value)
    return future


def offset(value: int, epoch: int | None = 3) -> SimpleNamespace:
    return SimpleNamespace(offset=value, leader_epoch=epoch)


def view(**answers: Any) -> ClusterView:
    """A view whose admin client gives *answers*; nothing is asked on the network."""
    made = ClusterView({"bootstrap.servers": "127.0.0.1:9"}, 0.1)
    made._admin = SimpleNamespace(poll=lambda _: 0, **answers)
    return made


SILENT = KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE))
STATES = [
    # case                  earliest     latest          earliest, latest, epoch
    ("an answer", offset(3), offset(9), (3, 9, 3)),
    ("no offset", offset(-1001), offset(-1001, -1), (None, None, None)),
    ("no end", offset(3), offset(-1001), (3, None, None)),
    ("no epoch", offset(3), offset(9, -1), (3, 9, None)),
    ("an error", SILENT, SILENT, (None, None, None)),
    ("an empty log", offset(0), offset(0), (0, 0, 3)),
]


@pytest.mark.parametrize(("case", "earliest", "latest", "wanted"), STATES)
def test_offsets(case, earliest, latest, wanted):
    given = iter((earliest, latest))
    place = TopicPartition("t", 0)
    asked = view(list_offsets=lambda *_, **__: {place: answered(next(given))})
    state = PartitionState("t", "id", 0, 1, (1,), (1,))
    asked._add_offsets([state])
    assert (state.earliest_offset, state.latest_offset, state.leader_epoch) == wanted, case
    assert bool(asked.notes) == (None in wanted[:2]), case


def test_settings_that_were_not_answered_are_not_empty_settings():
    topic = ConfigResource(ResourceType.TOPIC, "t")
    entry = SimpleNamespace(value="delete", is_sensitive=False)
    for answer, wanted in (({"cleanup.policy": entry}, 1), ({}, 0)):
        asked = view(describe_configs=lambda *_, answer=answer, **__: {topic: answered(answer)})
        assert len(asked.settings(["t"], [])) == wanted
        assert bool(asked.notes) == (not wanted)
    silent = view(describe_configs=lambda *_, **__: {topic: answered(SILENT)})
    with pytest.raises(SourceUnavailable):
        silent.settings(["t"], [])
