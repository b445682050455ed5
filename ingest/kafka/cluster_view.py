"""What the brokers report about partitions, offsets, settings and groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import ConfigResource, OffsetSpec, ResourceType

from acktrail.audit.wire.identity import topic_id_text
from acktrail.errors import SourceUnavailable
from ingest.kafka.access import (
    Listener,
    explained,
    open_admin,
    reason,
    refused,
    unknown_topic,
)
from ingest.kafka.group_commits import group_commits
from ingest.kafka.topic_names import no_such_topic


@dataclass
class PartitionState:
    """One partition as the cluster described it; None where no leader could be asked."""

    topic: str
    topic_id: str
    partition: int
    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    earliest_offset: int | None = None
    latest_offset: int | None = None
    leader_epoch: int | None = None


@dataclass(frozen=True)
class Commit:
    """What a group has committed for one partition."""

    group: str
    topic: str
    partition: int
    offset: int | None
    metadata: str | None
    members: int | None
    state: str | None


class ClusterView:
    """One AdminClient. What could not be asked is said in `notes`, never guessed."""

    def __init__(self, config: Mapping[str, Any], timeout_s: float) -> None:
        self._heard = Listener()
        self._config = config
        self._admin = open_admin(config, self._heard)
        self._timeout = timeout_s
        self.notes: list[str] = []
        self.missing: tuple[str, ...] = ()
        """One sentence for each topic asked for last that the cluster does not have."""

    def topics(self) -> list[str]:
        """All topics but internal ones."""
        found = self._metadata("the cluster's topics").topics
        seen = sorted(name for name in found if not name.startswith("__"))
        if not seen:
            self.notes.append("no topic is visible: there is none, or we need Describe on topics")
        return seen

    def cluster_id(self) -> str:
        """Kafka's own id of the cluster; empty where the brokers give none."""
        return str(self._metadata("the cluster's id").cluster_id or "")

    def brokers(self) -> list[int]:
        """Ids of the brokers that are up."""
        return sorted(self._metadata("the cluster's brokers").brokers)

    def _metadata(self, what: str) -> Any:
        try:
            found = self._admin.list_topics(timeout=self._timeout)
        except KafkaException as error:
            raise self._explained(what, error) from None
        self._heard.answered()
        return found

    def partitions(self, topics: Sequence[str]) -> list[PartitionState]:
        """Every partition of *topics*, with earliest and latest offset where it has a leader.

        A topic that does not exist is one of `missing`, and has no partitions.
        """
        self.missing = ()
        if not topics:
            return []
        described = self._answers(
            self._ask(
                lambda: self._admin.describe_topics(
                    TopicCollection(list(topics)), request_timeout=self._timeout
                )
            ),
            needs="Describe on the topic",
            absent=self._note_missing,
        )
        states = [
            PartitionState(
                topic=topic.name,
                topic_id=topic_id_text(topic.topic_id),
                partition=each.id,
                leader=each.leader.id if each.leader is not None else -1,
                replicas=tuple(node.id for node in each.replicas),
                isr=tuple(sorted(node.id for node in each.isr)),
            )
            for topic in described.values()
            for each in topic.partitions
        ]
        self._add_offsets(states)
        return states

    def _add_offsets(self, states: Iterable[PartitionState]) -> None:
        led = {(s.topic, s.partition): s for s in states if s.leader >= 0}
        if not led:
            return
        specs: Any = OffsetSpec  # its constructors carry no annotations
        # Earliest first: retention in between may make it stale, never higher than it was.
        for place, answer in self._offsets(led, specs.earliest()).items():
            led[place].earliest_offset = answer.offset
        for place, answer in self._offsets(led, specs.latest()).items():
            led[place].latest_offset = answer.offset
            epoch = answer.leader_epoch
            led[place].leader_epoch = epoch if epoch is not None and epoch >= 0 else None

    def _offsets(self, places: Iterable[tuple[str, int]], spec: Any) -> dict[tuple[str, int], Any]:
        asked = {TopicPartition(*place): spec for place in places}
        answers = self._answers(
            self._ask(lambda: self._admin.list_offsets(asked, request_timeout=self._timeout)),
            needs="Describe on the topic",
            needed=False,
        )
        found = {}
        for place, answer in answers.items():
            if answer.offset >= 0:
                found[place.topic, place.partition] = answer
            else:  # librdkafka's -1001: no offset came, and no error either
                self.notes.append(f"{_name(place)}: the leader gave no offset")
        return found

    def settings(self, topics: Sequence[str], brokers: Sequence[int]) -> dict[Any, dict[str, str]]:
        """(kind, name) to settings, those the broker calls sensitive left out."""
        answers: dict[Any, Any] = {}
        if topics:
            resources = [ConfigResource(ResourceType.TOPIC, name) for name in topics]
            answers |= self._configs(resources, "DescribeConfigs on the topic")
        # librdkafka takes one broker per call: each answers for itself.
        for id in brokers:
            resources = [ConfigResource(ResourceType.BROKER, str(id))]
            answers |= self._configs(resources, "DescribeConfigs on the cluster")
        if not answers and (topics or brokers):
            said = SourceUnavailable(f"no settings: {'; '.join(self.notes[-3:])}")
            raise self._explained("the cluster's settings", said)
        found = {}
        for resource, entries in answers.items():
            if not entries:  # every topic and broker has settings
                self.notes.append(f"{_name(resource)}: the answer has no settings")
                continue
            kind = "topic" if resource.restype == ResourceType.TOPIC else "broker"
            found[kind, resource.name] = {
                name: str(entry.value)
                for name, entry in sorted(entries.items())
                if not entry.is_sensitive and entry.value is not None
            }
        return found

    def _configs(self, resources: list[ConfigResource], needs: str) -> dict[Any, Any]:
        asked = self._ask(
            lambda: self._admin.describe_configs(resources, request_timeout=self._timeout)
        )
        return self._answers(asked, needs, needed=False)

    def groups(self) -> list[str]:
        """Ids of all consumer groups."""
        try:
            future = self._admin.list_consumer_groups(request_timeout=self._timeout)
            listed = future.result(self._timeout + 5)
        except (KafkaException, TimeoutError) as error:
            raise self._explained("the consumer groups", error) from None
        for trouble in listed.errors or ():
            self.notes.append(
                f"some consumer groups could not be listed: {reason(KafkaException(trouble))}"
            )
        seen = sorted(group.group_id for group in listed.valid or ())
        if not seen:
            self.notes.append("no group is visible: there is none, or we need Describe on groups")
        return seen

    def commits(self, groups: Sequence[str], states: Iterable[PartitionState]) -> list[Commit]:
        """What *groups* have committed for the partitions in *states*, with members and state."""
        places = [(s.topic, s.partition) for s in states]
        if not groups or not places:
            return []
        described = self._answers(
            self._ask(
                lambda: self._admin.describe_consumer_groups(
                    list(groups), request_timeout=self._timeout
                )
            ),
            needs="Describe on the group",
        )
        # One that could not be described has no coordinator to ask; it is in the notes already.
        asked = group_commits(self._config, list(described), places, self._timeout)
        return [
            _commit(group, place, described[group])
            for group, answer in self._answers(asked, "Describe on the group").items()
            for place in answer
        ]

    def _ask(self, request: Callable[[], Any]) -> dict[Any, Future[Any]]:
        try:
            futures: dict[Any, Future[Any]] = request()
        except KafkaException as error:
            raise self._explained("the cluster", error) from None
        return futures

    def _note_missing(self, topics: Sequence[str]) -> None:
        found = self._metadata("the cluster's topics").topics if topics else {}
        self.missing = tuple(no_such_topic(topic, found) for topic in topics)
        self.notes += self.missing

    def _answers(
        self,
        futures: Mapping[Any, Future[Any]],
        needs: str,
        needed: bool = True,
        absent: Callable[[Sequence[str]], None] | None = None,
    ) -> dict[Any, Any]:
        """The answers that came. One that did not is noted; none at all, where *needed*, raises.

        *needs* is the ACL without which the question is refused: that always raises. *absent* is
        told which topics do not exist: that is an answer.
        """
        answers: dict[Any, Any] = {}
        errors: list[tuple[Any, Exception]] = []
        unknown: list[tuple[Any, Exception]] = []
        for key, future in futures.items():
            try:
                answers[key] = future.result(self._timeout + 5)
            except (KafkaException, TimeoutError) as error:
                (unknown if absent and unknown_topic(error) else errors).append((key, error))
        if answers or unknown:
            self._heard.answered()
        if absent is not None:
            absent([_name(key) for key, _ in unknown])
        self.notes += [f"{_name(key)}: {reason(why, needs)}" for key, why in errors]
        if errors and not answers and (needed or any(refused(why) for _, why in errors)):
            raise self._explained(_name(errors[0][0]), errors[0][1], needs)
        return answers

    def _explained(self, what: str, error: Exception, needs: str = "") -> Exception:
        self._admin.poll(0)  # what the client reports about its connections goes to the listener
        return explained(what, error, needs, self._heard)


def _name(key: Any) -> str:
    if isinstance(key, TopicPartition):
        return f"{key.topic}-{key.partition}"
    if isinstance(key, ConfigResource):
        return f"{'broker' if key.restype == ResourceType.BROKER else 'topic'} {key.name}"
    return str(getattr(key, "name", key))


def _commit(group: str, place: TopicPartition, about: Any) -> Commit:
    return Commit(
        group=group,
        topic=place.topic,
        partition=place.partition,
        offset=place.offset,
        metadata=place.metadata,
        members=len(about.members) if about is not None else None,
        state=about.state.name if about is not None else None,
    )
