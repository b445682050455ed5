"""A topic that was created again under a running reader is read from its own beginning."""

from __future__ import annotations

from collections.abc import Mapping

from ingest.kafka.cluster_view import PartitionState
from ingest.kafka.topic_reader import PartitionProgress, Place, TopicReader


def state(topic_id: str, end: int) -> PartitionState:
    found = PartitionState("reports", topic_id, 0, 1, (1,), (1,))
    found.earliest_offset, found.latest_offset = 0, end
    return found


def test_a_topic_of_another_id_is_another_file():
    reader = TopicReader("r", {"bootstrap.servers": "127.0.0.1:1"}, ["reports"], 1.0)
    begun: list[str] = []

    def begin(new: Mapping[Place, PartitionProgress]) -> None:
        begun.extend(found.file_id for found in new.values())

    answers = [state("one", 5), state("one", 7), state("two", 9)]
    reader._view.partitions = lambda _topics: [answers.pop(0)]  # type: ignore[method-assign]
    try:
        reader.look(0.0, begin)
        reader.places["reports", 0].next = 5
        reader.look(60.0, begin)
        assert (reader.places["reports", 0].next, reader.lag) == (5, 2)
        reader.look(120.0, begin)
        assert (reader.places["reports", 0].next, reader.lag) == (0, 9)
        (assigned,) = reader._consumer.assignment()
        assert assigned.offset == 0
    finally:
        reader.close()
    assert begun == ["reports-0@one", "reports-0@two"]
