"""Kafka sources: the cluster answers, the topics exist, and the rights are there.

All of it runs in a process of its own. Whatever happens to it, every source gets a row.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from acktrail.errors import AcktrailError, ConfigError
from acktrail.operate.probes.row import FAILED, OK, WARNING, Clock, Probe, Row, counted, failed
from acktrail.settings.model import KafkaSettings
from acktrail.settings.sources import (
    AuditTopicSource,
    ClusterStateSource,
    LogScanSource,
    LogTopicSource,
)

if TYPE_CHECKING:
    from ingest.kafka.cluster_view import ClusterView, PartitionState

KafkaSource = AuditTopicSource | ClusterStateSource | LogScanSource | LogTopicSource
KINDS = ("audit_topic", "cluster_state", "log_scan", "log_topic")
TIMEOUT_S = 4.0
_LIMIT_S = 9.0
_SOME = 5
"""So many topics or groups are asked about where all are meant."""


def kafka_probe(kafka: KafkaSettings, sources: Sequence[KafkaSource]) -> Probe:
    """The cluster, and every source that reads it."""
    return Probe("kafka", lambda: list(_in_a_process(kafka, sources)))


def _in_a_process(kafka: KafkaSettings, sources: Sequence[KafkaSource]) -> Iterator[Row | Clock]:
    spawn = multiprocessing.get_context("spawn")
    receiving, sending = spawn.Pipe(duplex=False)
    child = spawn.Process(target=_ask_all, args=(sending, kafka, sources), daemon=True)
    child.start()
    sending.close()
    waiting = ["kafka", *(f"source {source.name}" for source in sources)]
    ends = time.monotonic() + _LIMIT_S
    try:
        while waiting and receiving.poll(max(0.0, ends - time.monotonic())):
            row = Row(*receiving.recv())
            if row.what in waiting:
                waiting.remove(row.what)
            yield row
    except EOFError:
        child.join(1)
    finally:
        child.kill()
        child.join()
    code = child.exitcode or 0
    for what in waiting:
        if code < 0 and code != -9:
            yield Row(what, FAILED, f"the Kafka client crashed (signal {-code}); run doctor again")
        else:
            yield Row(what, FAILED, f"no answer within {_LIMIT_S:.0f} s")


def _ask_all(sending: Connection, kafka: KafkaSettings, sources: Sequence[KafkaSource]) -> None:
    """In the child: one row after another, so that a crash loses only what comes after."""
    row = _cluster(kafka)
    sending.send(tuple(row))
    for source in sources:
        what = f"source {source.name}"
        if row.state == FAILED:
            sending.send((what, FAILED, "not tried: see kafka"))
            continue
        sending.send(tuple(source_row(kafka, source)))


def source_row(kafka: KafkaSettings, source: KafkaSource) -> Row:
    """How one source stands with the cluster."""
    what = f"source {source.name}"
    try:
        return _source(what, kafka, source)
    except Exception as error:
        row = failed(what, error)
        if isinstance(source, ClusterStateSource):
            return row
        # Read is what the source needs; it implies Describe, which was missed first.
        return row._replace(remark=row.remark.replace("Describe on the", "Read on the"))


def _cluster(kafka: KafkaSettings) -> Row:
    from ingest.kafka.access import client_config
    from ingest.kafka.cluster_view import ClusterView

    try:
        brokers = ClusterView(client_config(kafka), TIMEOUT_S).brokers()
    except Exception as error:
        return failed("kafka", error)
    listed = ", ".join(str(broker) for broker in brokers[:20])
    return Row("kafka", OK, f"{kafka.bootstrap_servers}: brokers {listed}")


def _source(what: str, kafka: KafkaSettings, source: KafkaSource) -> Row:
    from ingest.kafka.access import client_config
    from ingest.kafka.cluster_view import ClusterView

    config = client_config(kafka)
    view = ClusterView(config, TIMEOUT_S)
    if isinstance(source, ClusterStateSource):
        return _state(what, view, source)
    states = view.partitions(source.topics)
    if view.missing:
        return Row(what, FAILED, " ".join(view.missing))
    tried = {state.topic: state for state in reversed(states) if state.latest_offset is not None}
    wrong = [said for state in tried.values() for said in _unreadable(config, state)]
    if wrong:
        return Row(what, FAILED, " ".join(wrong))
    silent = [topic for topic in source.topics if topic not in tried]
    if silent:
        return Row(what, WARNING, f"no partition of {', '.join(silent)} has a leader now")
    return Row(
        what,
        OK,
        f"{counted(len(source.topics), 'topic')}, {counted(len(states), 'partition')}, readable",
    )


def _unreadable(config: dict[str, Any], state: PartitionState) -> list[str]:
    """Why the end of one partition cannot be read; its last record is fetched, or its end seen."""
    from ingest.sources.partition_reader import PartitionReader

    reader = PartitionReader(config, TIMEOUT_S)
    end = int(state.latest_offset or 0)
    first = max(end - 1, int(state.earliest_offset or 0))
    try:
        reader.read(state.topic, state.partition, first, max(end, first + 1), 1)
    except AcktrailError as error:
        return [str(error)]
    finally:
        reader.close()
    return []


def _state(what: str, view: ClusterView, source: ClusterStateSource) -> Row:
    """Each question on its own, so that every missing right is named at once."""
    wrong: list[str] = []
    topics = _answer(wrong, lambda: list(source.topics) or view.topics()) or []
    states = _answer(wrong, lambda: view.partitions(topics)) or []
    wrong += view.missing
    some = [topic for topic in topics if any(s.topic == topic for s in states)][:_SOME]
    _answer(wrong, lambda: view.settings(some, []))
    _answer(wrong, lambda: view.settings([], view.brokers()[:1]))
    groups = _answer(wrong, lambda: list(source.groups) or view.groups()) or []
    _answer(wrong, lambda: view.commits(groups[:_SOME], states))
    if wrong:
        return Row(what, FAILED, " ".join(dict.fromkeys(wrong)))
    if view.notes:
        return Row(what, WARNING, "; ".join(dict.fromkeys(view.notes)))
    found = (topics, "topic"), (states, "partition"), (groups, "group")
    return Row(what, OK, ", ".join(counted(len(each), noun) for each, noun in found))


def _answer(wrong: list[str], ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except AcktrailError as error:
        said = str(error)
        wrong.append(said if isinstance(error, ConfigError) else f"no answer: {said}")
        return None
