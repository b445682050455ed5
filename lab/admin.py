"""What an administrator does: in the journal when, and in `actions` with its facts."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    ElectionType,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from acktrail.audit.wire.identity import topic_id_text
from acktrail.errors import LabError
from lab import snapshots
from lab.processes import now_ms

if TYPE_CHECKING:
    from lab.run import Run

_WITHIN = 30.0
# Of a data directory: what a wiped disk of a node that is also a controller keeps.
_KEPT = ("meta.properties", "bootstrap.checkpoint", "__cluster_metadata-0")


@dataclass(frozen=True)
class DeleteRecords:
    """Delete all records of a partition but the newest."""

    topic: str
    keep: int
    partition: int = 0
    name: str = "delete_records"

    @property
    def target(self) -> str:
        """The partition and how many stay."""
        return f"{self.topic}-{self.partition} but {self.keep}"

    def start(self, run: Run) -> None:
        """Delete them."""
        state = run.partition(self.topic, self.partition)
        end = state["latest_offset"] if state is not None else None
        if end is None or end <= self.keep:
            raise LabError(f"{self.target}: the partition ends at {end}")
        place = TopicPartition(self.topic, self.partition, end - self.keep)
        (done,) = run.admin.delete_records([place], request_timeout=_WITHIN).values()
        low = _result(done, "records could not be deleted").low_watermark
        facts = {"topic": self.topic, "partition": self.partition, "offset": low}
        run.act(self.name, **facts)

    def stop(self, run: Run) -> None:
        """Nothing is left to mend."""


@dataclass(frozen=True)
class ResetGroup:
    """Move an empty group's commit by a number of offsets."""

    group: str
    topic: str
    by: int
    partition: int = 0
    name: str = "reset_group"

    @property
    def target(self) -> str:
        """The group and the partition."""
        return f"{self.group} at {self.topic}-{self.partition} by {self.by}"

    def start(self, run: Run) -> None:
        """Move it as soon as the group is empty."""
        place = TopicPartition(self.topic, self.partition)
        before = _committed(run, self.group, place)
        place.offset = before + self.by
        deadline = time.monotonic() + _WITHIN
        while True:
            wanted = ConsumerGroupTopicPartitions(self.group, [place])
            (done,) = run.admin.alter_consumer_group_offsets([wanted]).values()
            try:
                answered = done.result(_WITHIN)
            except KafkaException as error:
                if time.monotonic() > deadline:
                    raise LabError(f"{self.group} was not moved: {error.args[0].str()}") from error
                time.sleep(0.5)
                continue
            refused = [each.error for each in answered.topic_partitions if each.error]
            if not refused:
                break
            if time.monotonic() > deadline:
                raise LabError(f"{self.group} was not moved: {refused[0].str()}")
            time.sleep(0.5)
        facts = {"group": self.group, "topic": self.topic, "partition": self.partition}
        run.act(self.name, **facts, before=before, offset=place.offset)

    def stop(self, run: Run) -> None:
        """Nothing is left to mend."""


@dataclass(frozen=True)
class RecreateTopic:
    """Delete a topic of the scenario and create it again as it was."""

    topic: str
    name: str = "recreate_topic"

    @property
    def target(self) -> str:
        """The topic."""
        return self.topic

    def start(self, run: Run) -> None:
        """Delete it, wait until it is gone, create it."""
        old = _topic_id(run, self.topic)
        asked = now_ms()
        (done,) = run.admin.delete_topics([self.topic], operation_timeout=_WITHIN).values()
        _result(done, f"topic {self.topic} could not be deleted")
        deadline = time.monotonic() + _WITHIN
        while _topic_id(run, self.topic) is not None:
            if time.monotonic() > deadline:
                raise LabError(f"topic {self.topic} was still there after {_WITHIN:.0f} s")
            time.sleep(0.2)
        gone = now_ms()
        (topic,) = (each for each in run.scenario.topics if each.name == self.topic)
        snapshots.create_topics(run.admin, [topic])
        facts = {"topic": self.topic, "from_ms": asked, "gone_ms": gone, "old_id": old}
        run.act(self.name, **facts, new_id=_topic_id(run, self.topic))

    def stop(self, run: Run) -> None:
        """Nothing is left to mend."""


@dataclass(frozen=True)
class AlterTopic:
    """Change settings of a topic."""

    topic: str
    settings: Mapping[str, str] = field(default_factory=dict)
    name: str = "alter_topic"

    @property
    def target(self) -> str:
        """The topic and what is set."""
        return f"{self.topic} {' '.join(f'{k}={v}' for k, v in self.settings.items())}"

    def start(self, run: Run) -> None:
        """Set them."""
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in self.settings.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, self.topic, incremental_configs=entries)
        (done,) = run.admin.incremental_alter_configs([resource]).values()
        _result(done, f"settings of {self.topic} could not be changed")
        run.act(self.name, topic=self.topic, settings=dict(self.settings))

    def stop(self, run: Run) -> None:
        """Nothing is left to mend."""


@dataclass(frozen=True)
class WipeBroker:
    """Empty the data directory of a broker that is down: its disk was replaced."""

    broker: int
    name: str = "wipe_broker"

    @property
    def target(self) -> str:
        """The broker's host."""
        return f"kafka-{self.broker}"

    def start(self, run: Run) -> None:
        """Remove everything but what makes it a member of the cluster."""
        broker = run.cluster.brokers[self.broker]
        if broker.running:
            raise LabError(f"broker {self.broker} still runs: its disk is not wiped under it")
        removed = 0
        for path in broker.data.iterdir():
            if path.name in _KEPT:
                continue
            removed += 1
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
        run.act(self.name, broker=self.broker, removed=removed)

    def stop(self, run: Run) -> None:
        """Nothing is left to mend."""


@dataclass(frozen=True)
class ElectPreferred:
    """Give the leadership of a partition back to the first of its replicas."""

    topic: str
    partition: int = 0
    name: str = "elect_preferred"

    @property
    def target(self) -> str:
        """The partition."""
        return f"{self.topic}-{self.partition}"

    def start(self, run: Run) -> None:
        """Ask the controller for it."""
        place = TopicPartition(self.topic, self.partition)
        done = run.admin.elect_leaders(ElectionType.PREFERRED, [place])
        _result(done, f"the leader of {self.target} could not be moved")
        run.act(self.name, topic=self.topic, partition=self.partition)

    def stop(self, run: Run) -> None:
        """Nothing is left to mend."""


def _result(done: Any, otherwise: str) -> Any:
    try:
        return done.result(_WITHIN + 5)
    except (KafkaException, TimeoutError) as error:
        raise LabError(f"{otherwise}: {error}") from error


def _topic_id(run: Run, topic: str) -> str | None:
    (done,) = run.admin.describe_topics(TopicCollection([topic])).values()
    try:
        return topic_id_text(done.result(_WITHIN).topic_id)
    except KafkaException:
        return None


def _committed(run: Run, group: str, place: TopicPartition) -> int:
    reader = Consumer(
        {
            "bootstrap.servers": run.cluster.direct,
            "group.id": group,
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    try:
        (answer,) = reader.committed([place], timeout=_WITHIN)
    finally:
        reader.close()
    return max(0, int(answer.offset))
