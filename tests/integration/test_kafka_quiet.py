"""Against real brokers: what an agent's log says when the cluster or a topic is not there."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka.admin import AdminClient

from acktrail.contracts.bronze import CLUSTER_STATES, LOG_RECORDS
from acktrail.errors import ConfigError, SourceUnavailable
from acktrail.lake import Lake
from acktrail.settings.model import KafkaSettings
from acktrail.settings.sources import ClusterStateSource, LogScanSource, LogTopicSource
from ingest.agent.loop import Agent
from ingest.agent.reading import Pace
from ingest.registry import SourceContext, build_source, hosted_source
from lab.scenario import Topic
from lab.snapshots import create_topics
from lab.steps import wait_until
from tests.integration.kafka_nodes import TOPIC, around
from tests.integration.servers import free_port

STATE = ClusterStateSource(kind="cluster_state", name="state", timeout_s=0.5, interval_s=0.2)
SCAN = LogScanSource(kind="log_scan", name="scan", topics=(TOPIC,))
FLEET = LogTopicSource(
    kind="log_topic", name="fleet", topics=("other",), shape="vector", timeout_s=1.5
)
POISON = "Messages that are not "
"""A note about messages of the topic, which may be read before the outage or after it."""
CRASHED = "The process of source "
"""librdkafka may crash in an outage; its last word, a failed assertion, is on stderr."""


@contextmanager
def running(lake: Lake, kafka: KafkaSettings, *settings) -> Iterator[Agent]:
    """An agent over *settings*, ended with the block; librdkafka may crash in its own process."""
    sources = [hosted_source(each, SourceContext("lab", kafka)) for each in settings]
    agent = Agent(lake, sources, Pace(flush_s=0.1, poll_s=0.1, first_pause_s=0.1))
    thread = threading.Thread(target=agent.run)
    thread.start()
    try:
        yield agent
    finally:
        agent.stop()
        thread.join(60)


def lines(caplog) -> list[tuple[str, str]]:
    """(source, sentence) of every line an agent's log would show."""
    shown = [r for r in caplog.records if r.levelno >= logging.INFO]
    return [(getattr(r, "source", r.name), r.getMessage()) for r in shown]


def about(caplog, words: str) -> list[str]:
    """The sentences with *words*; a busy broker may answer late, and that is a line of its own."""
    return [said for _, said in lines(caplog) if words in said]


def turns(said: list[str]) -> list[str]:
    """Which lines report a failure and which its end; reminders and notes are left out."""
    ends = {"Will try again.": "fails", "Works again": "works"}
    new = [each for each in said if not each.startswith("Still failing")]
    return [turn for each in new for words, turn in ends.items() if words in each]


WRONG = [
    # case, bootstrap servers, what the one line says
    ("nobody listens", "127.0.0.1:{port}", "No connection to Kafka at 127.0.0.1:{port}: Conn"),
    ("no such host", "no-such-host.invalid:9092", "No connection to Kafka at no-such-host.invali"),
    ("not a broker", "127.0.0.1:{http}", "Kafka at 127.0.0.1:{http} did not answer ("),
]


@pytest.mark.parametrize(("servers", "said"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG])
def test_a_wrong_address_is_one_line(nodes, tmp_path, caplog, capfd, servers, said):
    caplog.set_level(logging.INFO)
    ports = {"port": free_port(), "http": nodes.brokers[1].exporter_port}
    kafka = KafkaSettings(bootstrap_servers=servers.format(**ports))
    # Time for the first answer to be heard, of the host's name too, on a machine that is busy.
    patient = STATE.model_copy(update={"timeout_s": 2.0})
    with running(Lake(tmp_path), kafka, patient) as agent:
        assert wait_until(lambda: agent.counts["state"].failures.total() >= 2, 50)
    ((source, sentence),) = lines(caplog)
    assert source == "state"
    assert sentence.startswith(said.format(**ports))
    assert "kafka.bootstrap_servers" in sentence
    assert len(sentence) < 160
    assert capfd.readouterr().err == "", "librdkafka prints to stderr by itself"


def test_a_setting_that_librdkafka_refuses_is_named(nodes, tmp_path):
    kafka = KafkaSettings(bootstrap_servers=nodes.direct, client={"no.such.setting": "1"})
    for settings in (STATE, SCAN, FLEET):
        source = build_source(settings, SourceContext("lab", kafka))
        with pytest.raises(ConfigError, match=r"no\.such\.setting"):
            source.open(Lake(tmp_path))


def test_a_cluster_that_goes_and_comes_back_is_a_few_lines_per_source(
    nodes, tmp_path, caplog, capfd
):
    caplog.set_level(logging.INFO)
    kafka = KafkaSettings(bootstrap_servers=nodes.bootstrap)
    settings = (STATE.model_copy(update={"topics": ("other",), "groups": ("g",)}), FLEET)
    lake = Lake(tmp_path)
    with running(lake, kafka, *settings) as agent:
        counts = agent.counts
        told = lambda name: [said for source, said in lines(caplog) if source == name]  # noqa: E731
        changes = lambda name: [said for said in told(name) if POISON not in said]  # noqa: E731
        ends = lambda name: changes(name)[-1:] and "Works again" in changes(name)[-1]  # noqa: E731
        assert wait_until(lambda: counts["state"].commits and counts["fleet"].running, 120)
        try:
            for broker in nodes.brokers:
                nodes.proxy.change(broker, refused=True)
            failed = lambda: all(c.failures for c in counts.values())  # noqa: E731
            assert wait_until(failed, 180), {n: c.failures for n, c in counts.items()}
        finally:
            for broker in nodes.brokers:
                nodes.proxy.change(broker, refused=False)
        assert wait_until(lambda: all(ends(name) for name in counts), 180), lines(caplog)
    for name in counts:
        said = changes(name)
        assert said[0].startswith(("No connection to Kafka", "Kafka at ", CRASHED)), said
        # Brokers are back one after another: it may work and fail again in between. However often
        # it was tried, a failure that lasts is one line, and so is its end.
        changed = turns(said)
        assert changed == ["fails", "works"] * (len(changed) // 2), said
        assert len(said) <= 12, said
    printed = capfd.readouterr().err.splitlines()
    assert [line for line in printed if line.startswith("%")] == [], "librdkafka's own lines"


def test_a_missing_topic_is_named_and_read_when_it_appears(nodes, tmp_path, caplog):
    caplog.set_level(logging.INFO)
    kafka = KafkaSettings(bootstrap_servers=nodes.direct)
    named = {"topics": ("other", "othre"), "groups": ("g",), "timeout_s": 20.0}
    settings = STATE.model_copy(update=named)
    lake = Lake(tmp_path)
    missing = lambda: about(caplog, "opic othre")  # noqa: E731

    def topics() -> set[str]:
        return set(lake.read(CLUSTER_STATES, columns=["topic"]).column("topic").to_pylist())

    with running(lake, kafka, settings):
        assert wait_until(lambda: topics() == {"other"} and missing(), 120)
        (sentence,) = missing()
        assert sentence.startswith("Topic othre does not exist on this cluster, or this user may")
        assert "Did you mean other" in sentence
        create_topics(AdminClient({"bootstrap.servers": nodes.direct}), [Topic("othre")])
        assert wait_until(lambda: topics() == {"other", "othre"}, 120)
        assert wait_until(lambda: len(missing()) > 1, 120)
    assert missing() == [sentence, f"No longer so: {sentence}"]
    assert about(caplog, "Topic other does not") == []


@pytest.mark.parametrize("settings", [STATE, SCAN, FLEET], ids=lambda s: s.kind)
def test_once_reads_the_other_topics_and_fails(nodes, tmp_path, settings):
    named = {"topics": (TOPIC, "no-such-topic"), "groups": ("g",)}
    wanted = settings.model_copy(update=named if settings is STATE else {"topics": named["topics"]})
    lake = Lake(tmp_path)
    agent = Agent(lake, [build_source(wanted, around(nodes))], once=True)
    with pytest.raises(SourceUnavailable, match="Topic no-such-topic does not exist") as error:
        agent.run()
    assert error.value.exit_code == 75
    assert "did not answer" not in str(error.value)
    if settings is STATE:
        assert set(lake.read(CLUSTER_STATES).column("topic").to_pylist()) == {TOPIC}
    if settings is FLEET:
        assert not lake.exists(LOG_RECORDS) or agent.counts["fleet"].balances
