"""What the cluster says of itself, asked with AdminClient past the proxy."""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
    TopicDescription,
)

from acktrail.audit.wire.identity import topic_id_text
from acktrail.errors import LabError
from lab.processes import now_ms
from lab.scenario import Topic

_WITHIN = 4.0
Row = dict[str, Any]


def observer(bootstrap: str) -> AdminClient:
    """An AdminClient that does not complain on stderr when a broker dies: that is the plan."""
    return AdminClient(
        {
            "bootstrap.servers": bootstrap,
            "log_level": 0,
            "client.id": "lab",
            "reconnect.backoff.max.ms": 500,
            "topic.metadata.refresh.interval.ms": 2000,
        }
    )


def create_topics(admin: AdminClient, topics: Iterable[Topic], within: float = 60.0) -> None:
    """Create *topics* and wait until every partition has a leader and all replicas in sync."""
    wanted = list(topics)
    new = [
        NewTopic(
            topic.name,
            num_partitions=len(topic.replicas),
            replica_assignment=[list(replicas) for replicas in topic.replicas],
            config=dict(topic.settings),
        )
        for topic in wanted
    ]
    _create(admin, new, within)
    wait_in_sync(admin, [topic.name for topic in wanted], within)


def _create(admin: AdminClient, new: list[NewTopic], within: float) -> None:
    """Ask until each is there: a new client may lose its first request."""
    left = {topic.topic: topic for topic in new}
    deadline = time.monotonic() + within
    again = False
    while left:
        for name, done in admin.create_topics(
            list(left.values()), operation_timeout=within
        ).items():
            try:
                done.result(within)
            except KafkaException as error:
                problem = error.args[0]
                if problem.code() < 0 and time.monotonic() < deadline:
                    continue  # librdkafka's own: no broker has refused it
                if not (again and problem.code() == KafkaError.TOPIC_ALREADY_EXISTS):
                    raise LabError(f"topic {name} could not be created: {problem.str()}") from error
            left.pop(name)
        again = True


def wait_in_sync(admin: AdminClient, topics: list[str], within: float = 90.0) -> None:
    """Wait until all replicas of *topics* are in sync and each partition has a leader."""
    deadline = time.monotonic() + within
    while True:
        rows = partition_states(admin, topics)
        if rows and all(
            row["leader"] >= 0 and len(row["isr"]) == len(row["replicas"]) for row in rows
        ):
            return
        if time.monotonic() > deadline:
            behind = [f"{row['topic']}-{row['partition']} isr {row['isr']}" for row in rows]
            raise LabError(f"replicas were not in sync after {within:.0f} s: {behind}")
        time.sleep(0.3)


def partition_states(admin: AdminClient, topics: list[str]) -> list[Row]:
    """One row per partition, with offsets where the leader answered.

    `asked_ms` is when the first question began, `at_ms` when the last answer came.
    """
    asked_ms = now_ms()
    described = _settled(admin.describe_topics(TopicCollection(topics), request_timeout=_WITHIN))
    rows = [row for each in described.values() for row in _partitions(each, asked_ms)]
    for spec, names in (
        (OffsetSpec.earliest(), ("earliest_offset", None)),
        (OffsetSpec.latest(), ("latest_offset", "leader_epoch")),
    ):
        _add_offsets(admin, rows, spec, names)
    return rows


def first_at_or_after(bootstrap: str, topic: str, partition: int, offset: int) -> int | None:
    """The offset of the first record at or after *offset*; None where none came within seconds."""
    settings = {"bootstrap.servers": bootstrap, "log_level": 0, "enable.auto.commit": False}
    reader = Consumer({**settings, "group.id": "lab-look"})
    try:
        reader.assign([TopicPartition(topic, partition, offset)])
        message = reader.poll(_WITHIN)
    finally:
        reader.close()
    if message is None or message.error() is not None:
        return None
    return message.offset()


class Commits:
    """What groups have committed, asked as a member would, without joining.

    Not with `AdminClient.list_consumer_group_offsets`: asked while the coordinator is being loaded
    it ends the process with a segmentation fault (librdkafka 2.16 against Kafka 4.3).
    """

    def __init__(self, bootstrap: str, groups: Iterable[str]) -> None:
        settings = {"bootstrap.servers": bootstrap, "log_level": 0, "enable.auto.commit": False}
        self._readers = {group: Consumer({**settings, "group.id": group}) for group in groups}

    def rows(self, admin: AdminClient, places: dict[str, list[TopicPartition]]) -> list[Row]:
        """One row per group and partition, with the commit's metadata and the group's state."""
        asked_ms = now_ms()
        listed = _settled({"": admin.list_consumer_groups(request_timeout=_WITHIN)})
        states = {each.group_id: each.state.name for each in listed[""].valid} if listed else {}
        rows = []
        for group, partitions in places.items():
            try:
                answers = self._readers[group].committed(partitions, timeout=_WITHIN)
            except KafkaException:
                continue  # No coordinator just now.
            rows += [
                _commit(group, each, states.get(group), asked_ms)
                for each in answers
                if each.error is None
            ]
        return rows

    def close(self) -> None:
        """Close the readers."""
        for reader in self._readers.values():
            reader.close()


def config_resources(topics: Iterable[str], brokers: Iterable[int]) -> list[ConfigResource]:
    """What `config_states` is asked for."""
    found = [ConfigResource(ResourceType.TOPIC, name) for name in topics]
    return found + [ConfigResource(ResourceType.BROKER, str(id)) for id in brokers]


def config_states(
    admin: AdminClient, resources: Iterable[ConfigResource]
) -> tuple[list[Row], list[ConfigResource]]:
    """One row per topic or broker with its effective settings, secrets left out.

    Also those that did not answer: nothing is known of their settings.
    """
    rows, unanswered = [], []
    for asked in resources:  # One by one: a call takes one broker only.
        answer = _settled(admin.describe_configs([asked], request_timeout=_WITHIN))
        if not answer:
            unanswered.append(asked)
        for entries in answer.values():
            settings = {name: each.value for name, each in entries.items() if not each.is_sensitive}
            kind = "topic" if asked.restype == ResourceType.TOPIC else "broker"
            row = {"at_ms": now_ms(), "entity_kind": kind, "entity": asked.name}
            rows.append({**row, "settings": settings})
    return rows, unanswered


def _settled(futures: dict[Any, Future[Any]]) -> dict[Any, Any]:
    """The answers that came; a broker that is down answers nothing, which is not an error here."""
    answers = {}
    for key, future in futures.items():
        try:
            answers[key] = future.result(_WITHIN + 2)
        except (KafkaException, TimeoutError):
            continue
    return answers


def _partitions(topic: TopicDescription, asked_ms: int) -> list[Row]:
    return [
        {
            "asked_ms": asked_ms,
            "at_ms": now_ms(),
            "topic": topic.name,
            "topic_id": topic_id_text(topic.topic_id),
            "partition": each.id,
            "leader": each.leader.id if each.leader is not None else -1,
            "isr": sorted(node.id for node in each.isr),
            "replicas": [node.id for node in each.replicas],
            "earliest_offset": None,
            "latest_offset": None,
            "leader_epoch": None,
        }
        for each in topic.partitions
    ]


def _add_offsets(
    admin: AdminClient, rows: list[Row], spec: OffsetSpec, names: tuple[str, str | None]
) -> None:
    offset_name, epoch_name = names
    by_place = {(row["topic"], row["partition"]): row for row in rows if row["leader"] >= 0}
    if not by_place:
        return
    asked = {TopicPartition(topic, number): spec for topic, number in by_place}
    answers = _settled(admin.list_offsets(asked, request_timeout=_WITHIN))
    for place, answer in answers.items():
        if answer.offset < 0:
            continue  # -1001: the leader answered that it does not know
        row = by_place[place.topic, place.partition]
        row[offset_name] = answer.offset
        row["at_ms"] = now_ms()
        if epoch_name is not None and (answer.leader_epoch or 0) >= 0:
            row[epoch_name] = answer.leader_epoch


def _commit(group: str, place: TopicPartition, state: str | None, asked_ms: int) -> Row:
    return {
        "asked_ms": asked_ms,
        "at_ms": now_ms(),
        "group": group,
        "topic": place.topic,
        "partition": place.partition,
        "committed_offset": place.offset if place.offset >= 0 else None,
        "metadata": place.metadata,
        "group_state": state,
    }
