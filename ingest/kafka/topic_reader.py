"""Whole topics read from positions that the lake keeps: no group is joined, nothing is committed.

A topic that was created again has another id, and is another file for positions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from acktrail.errors import SourceUnavailable
from ingest.kafka.access import Listener, explained, open_consumer
from ingest.kafka.cluster_view import ClusterView, PartitionState

POISON = "poison"
"""Dropped: a message that is not what the source reads."""
EXPIRED = "expired_before_read"
"""Dropped: offsets that retention deleted before they were read."""
CONSUMED_AT_ONCE = 5_000
CONSUME_S = 0.5
"""librdkafka waits this long to fill a batch, even if there is something in it."""
LOOK_S = 60.0
"""How often new partitions are looked for."""

Place = tuple[str, int]


@dataclass
class PartitionProgress:
    """How far one partition has been read."""

    file_id: str
    """Topic, partition and topic id."""
    earliest: int
    """The first offset that the log had when it was looked at."""
    next: int
    end: int
    at_end: bool = False
    """Whether everything in the log had come when its newest message, or its end, was met."""


class TopicReader:
    """One consumer for all partitions of some topics."""

    def __init__(
        self,
        name: str,
        config: Mapping[str, Any],
        topics: Sequence[str],
        timeout_s: float,
        *,
        once: bool = False,
    ) -> None:
        self._name = name
        self._topics = topics
        self._timeout = timeout_s
        self._once = once
        self._heard = Listener()
        self._view = ClusterView(config, timeout_s)
        self._consumer: Consumer = open_consumer(_reader_config(config, name), self._heard)
        self.places: dict[Place, PartitionProgress] = {}
        self._next_look = 0.0

    @property
    def missing(self) -> tuple[str, ...]:
        """One sentence for each topic that the cluster does not have."""
        return self._view.missing

    def cluster_id(self) -> str:
        """Kafka's own id of the cluster."""
        return self._view.cluster_id()

    def look_due(self, now: float) -> bool:
        """Every minute; and when no broker is connected, which a consumer does not raise."""
        return not self._once and (self._heard.all_down or now >= self._next_look)

    def look(self, now: float, begin: Callable[[Mapping[Place, PartitionProgress]], None]) -> None:
        """Learn of partitions and their ends; *begin* moves new ones to where they were left."""
        states = self._view.partitions(self._topics)
        self._heard.answered()
        self._next_look = now + LOOK_S
        new = {place: self.places[place] for state in states if (place := self._note(state))}
        if new:
            begin(new)
            self._consumer.assign(
                [TopicPartition(*place, found.next) for place, found in self.places.items()]
            )

    def _note(self, state: PartitionState) -> Place | None:
        """Keep the partition's end; its place if it was not known, or is of a new topic."""
        place = (state.topic, state.partition)
        if state.latest_offset is None or state.earliest_offset is None:
            raise SourceUnavailable(f"{place[0]}-{place[1]} has no leader to read from.")
        known = self.places.get(place)
        file_id = f"{state.topic}-{state.partition}@{state.topic_id}"
        if known is not None and file_id == known.file_id:
            known.end = state.latest_offset
            return None
        earliest = state.earliest_offset
        self.places[place] = PartitionProgress(file_id, earliest, earliest, state.latest_offset)
        return place

    @property
    def drained(self) -> bool:
        """Whether everything that was there at the last look has come."""
        return all(found.next >= found.end for found in self.places.values())

    @property
    def lag(self) -> int:
        """Messages up to the ends at the last look."""
        return sum(max(0, found.end - found.next) for found in self.places.values())

    def read(self, timeout_s: float) -> list[Message]:
        """Messages that came; with *once*, waited for while the end is known to be ahead."""
        until = time.monotonic() + (self._timeout if self._once else timeout_s)
        while True:
            try:
                came = self._consumer.consume(CONSUMED_AT_ONCE, min(timeout_s, CONSUME_S))
            except KafkaException as error:
                what = f"the topics of {self._name}"
                raise explained(what, error, heard=self._heard) from None
            kept = [message for message in came if self._advance(message)]
            if kept or (self._once and self.drained):
                return kept
            if time.monotonic() >= until:
                if not self._once:
                    return []
                said = SourceUnavailable("The topic's end was not reached; nothing came.")
                lost = self._heard.last is not None
                raise explained(self._name, said, heard=self._heard) if lost else said

    def _advance(self, message: Message) -> bool:
        """Move on behind *message*; whether it is one."""
        error, offset = message.error(), int(message.offset() or 0)
        place = (str(message.topic()), int(message.partition() or 0))
        if error is None:
            self.places[place].next, self.places[place].at_end = offset + 1, False
            return True
        if error.code() == KafkaError._PARTITION_EOF:
            found = self.places[place]
            found.next, found.at_end = max(found.next, offset), True
            return False
        if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
            return False  # librdkafka asks for a coordinator; we need none
        raise explained(f"{place[0]}-{place[1]}", KafkaException(error), "Read on the topic")

    def close(self) -> None:
        """Leave the cluster."""
        self._consumer.close()


def _reader_config(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {
        "queued.max.messages.kbytes": 8_192,
        "fetch.message.max.bytes": 1_048_576,
        **config,
        # librdkafka wants a name; with assign() no group is joined and nothing is committed.
        "group.id": f"acktrail-{name}",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
    }
