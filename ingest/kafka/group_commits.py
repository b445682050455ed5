"""What consumer groups have committed, asked as a member would ask, without joining.

Each group is asked by a consumer of its name that subscribes to nothing and lives for one question
(5 ms of CPU, about 40 ms against a healthy cluster). `AdminClient.list_consumer_group_offsets` ends
the process when a coordinator moves or is being loaded, with a segmentation fault or with
`rd_kafka_enq_once_del_source_return: Assertion eonce->refcnt > 0` (librdkafka 2.16, Kafka 4.3): the
first restart of a broker was enough.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from confluent_kafka import KafkaException, TopicPartition

from ingest.kafka.access import Listener, open_consumer, refused

_AT_ONCE = 4
"""Groups asked at the same time."""
_ROUNDS = 4
"""All groups together may take so many times the timeout of one."""

Place = tuple[str, int]


def group_commits(
    config: Mapping[str, Any], groups: Sequence[str], places: Sequence[Place], timeout_s: float
) -> dict[str, Future[list[TopicPartition]]]:
    """For each group what it has committed at *places*; a partition without a commit is left out.

    The futures are done. One holds a KafkaException where the group's coordinator did not answer,
    and a TimeoutError where the time was up before the group had its turn.
    """
    deadline = time.monotonic() + _ROUNDS * timeout_s
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="groups") as pool:
        return {
            group: pool.submit(_committed, config, group, places, timeout_s, deadline)
            for group in groups
        }


def _committed(
    config: Mapping[str, Any],
    group: str,
    places: Sequence[Place],
    timeout_s: float,
    deadline: float,
) -> list[TopicPartition]:
    if time.monotonic() > deadline:
        raise TimeoutError("there was no time left to ask: other groups did not answer")
    settings = {**config, "group.id": group, "enable.auto.commit": False}
    consumer = open_consumer(settings, Listener())
    try:
        answers = consumer.committed([TopicPartition(*p) for p in places], timeout=timeout_s)
    finally:
        consumer.close()
    for answer in answers:
        if answer.error is not None and refused(denied := KafkaException(answer.error)):
            raise denied
    return [answer for answer in answers if answer.offset >= 0]
