"""An audit cluster that refuses or hangs: the application does not notice, and the lake is told."""

from __future__ import annotations

import os
import shutil
import time

import pytest

from acktrail.contracts.vocabulary import Tier
from lab.scratch import new_scratch
from tests.integration import java_client as kit
from tests.integration.conftest import nodes as cluster_nodes
from tests.integration.secured_broker import PASSWORD, USER, Acl, SecuredBroker

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.skipif(not os.environ.get("ACKTRAIL_SOAK"), reason="make soak"),
]
nodes = cluster_nodes
REPORTS = "acktrail-reports"
MANY = 200_000


@pytest.fixture(scope="module")
def audit_cluster():
    """A broker of its own, and its process, which a test may stop for a while."""
    home = new_scratch("audit-cluster")
    broker = SecuredBroker(home)
    process = broker.start()
    try:
        kit.create_topics(broker.direct, REPORTS)
        yield broker, process
    finally:
        process.kill()
        shutil.rmtree(home, ignore_errors=True)


def settings(nodes, broker: SecuredBroker, password: str = PASSWORD, **more: str) -> dict[str, str]:
    """Of an application on an open cluster whose audit cluster is locked."""
    login = "org.apache.kafka.common.security.scram.ScramLoginModule"
    own = {
        "bootstrap.servers": f"127.0.0.1:{broker.scram}",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": f'{login} required username="{USER}" password="{password}";',
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(broker.ca),
    }
    given = {f"acktrail.producer.{name}": value for name, value in own.items()}
    return kit.audited(nodes.direct, REPORTS, **more) | given


@pytest.mark.parametrize("version", kit.VERSIONS)
@pytest.mark.parametrize("refused", ["no right", "wrong password"])
def test_a_refusal_is_one_error_line_and_nothing_else(nodes, audit_cluster, version, refused):
    broker, _ = audit_cluster
    broker.allow([])
    topic = f"refused-{version}-{refused.replace(' ', '-')}"
    kit.create_topics(nodes.direct, topic)
    password = "wrong" if refused == "wrong password" else PASSWORD
    told = kit.run_producer(
        *(version, settings(nodes, broker, password), f"send:{topic}:1000"),
        *("wait:30", "sleep:6000", f"send:{topic}:10", "wait:30", "close"),
    )
    assert told.code == 0, told.log
    assert len(told.acks) == 1010
    assert told.times_ms["close"] < 3000
    assert 1 <= len(told.error_lines) <= 2, told.log
    assert kit.books_of(broker.direct, REPORTS, topic) == {}


@pytest.mark.parametrize("version", kit.VERSIONS)
def test_a_frozen_audit_cluster_costs_no_message_and_loses_no_report(nodes, audit_cluster, version):
    broker, process = audit_cluster
    broker.allow([Acl("WRITE", "TOPIC", REPORTS), Acl("DESCRIBE", "TOPIC", REPORTS)])
    topic, bare = f"frozen-{version}", f"bare-{version}"
    kit.create_topics(nodes.direct, topic, bare)
    plain = {"bootstrap.servers": nodes.direct}
    steps = ("send:%s:1000", "wait:60", "sleep:3000", f"keyed:%s:{MANY}", "flush", "close")
    beside = kit.run_producer(version, plain, *(s.replace("%s", bare) for s in steps))
    app = kit.start_producer(
        *(version, settings(nodes, broker)),
        [*(s.replace("%s", topic) for s in steps[:-1]), "sleep:30000", "close"],
    )
    time.sleep(4)
    process.pause()
    time.sleep(20)
    process.resume()
    told = kit.ended(app, 240)
    assert told.code == 0, told.log
    assert len(told.acks) == 1000 + MANY
    assert told.times_ms["close"] < 3000
    (books,) = kit.books_of(broker.direct, REPORTS, topic).values()
    assert books.last.dropped == {}
    assert books.last.records == len(told.acks)
    if version in kit.EXACT:
        assert set(books.acked) == set(told.acks)
    else:
        assert books.ack_count == len(told.acks)
    assert Tier.FAILED not in books.plain
    print(
        f"{version}: {MANY} keyed messages in {told.times_ms['keyed'] + told.times_ms['flush']} ms"
        f" with the audit cluster frozen, {beside.times_ms['keyed'] + beside.times_ms['flush']} ms"
        " without the audit"
    )
