"""One cluster and one Java producer for all tests that need them, started when first asked for."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient

from lab.clients import start_producer
from lab.cluster import cluster
from lab.scenario import Producer as JavaProducer
from lab.scenario import Topic
from lab.snapshots import create_topics
from lab.steps import wait_until
from tests.integration.kafka_nodes import TOPIC, acks_of


@pytest.fixture(scope="session")
def nodes():
    with cluster() as started:
        admin = AdminClient({"bootstrap.servers": started.direct})
        create_topics(
            admin,
            [
                Topic(TOPIC, ((1, 2, 3), (2, 3, 1))),
                Topic("other"),
                Topic("moved", ((1, 2),), {"unclean.leader.election.enable": "true"}),
            ],
        )
        yield started


@pytest.fixture(scope="session")
def java(nodes, tmp_path_factory):
    evidence = tmp_path_factory.mktemp("evidence")
    wanted = JavaProducer("shop", "other", messages=100_000, per_second=200)
    client = start_producer(nodes, wanted, evidence)
    try:
        assert wait_until(lambda: acks_of(client) > 200, 180)
        yield client
    finally:
        client.process.kill()
