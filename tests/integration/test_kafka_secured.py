"""Against a broker with TLS, SASL and ACLs: the listed rights suffice, and what lacks is named."""

from __future__ import annotations

import base64
import http.server
import json
import os
import re
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from acktrail_client import Audit, AuditedProducer
from confluent_kafka import Consumer, Producer, TopicPartition
from pydantic import SecretStr

from acktrail.audit.wire import Report, decode_reports, encode_reports
from acktrail.contracts.bronze import (
    AUDIT_REPORTS,
    BRONZE,
    CLUSTER_CONFIGS,
    CLUSTER_STATES,
    GROUP_OFFSETS,
    LOG_RECORDS,
)
from acktrail.contracts.vocabulary import Tier
from acktrail.errors import ConfigError
from acktrail.lake import Lake
from acktrail.operate.probes import kafka as kafka_probes
from acktrail.settings.model import KafkaSettings
from acktrail.settings.sources import (
    AuditTopicSource,
    ClusterStateSource,
    LogScanSource,
    LogTopicSource,
)
from ingest.agent.loop import Agent
from ingest.registry import SourceContext, build_source
from lab.scenario import Topic
from lab.snapshots import create_topics
from lab.steps import wait_until
from tests.integration.kafka_nodes import produce
from tests.integration.process_list import process_list
from tests.integration.secured_broker import (
    PASSWORD,
    USER,
    Acl,
    SecuredBroker,
    make_certificates,
    secured_broker,
)

SOURCES = {
    "log_scan": LogScanSource(kind="log_scan", name="scan", topics=("orders",), mode="whole"),
    "log_topic": LogTopicSource(
        kind="log_topic", name="fleet", topics=("logs",), shape="filebeat", timeout_s=5
    ),
    "cluster_state": ClusterStateSource(kind="cluster_state", name="state", timeout_s=5),
    "audit_topic": AuditTopicSource(kind="audit_topic", name="clients", timeout_s=5),
}
DOCS = Path(__file__).parents[2] / "docs" / "agents.md"
_KINDS = {"topic": "TOPIC", "group": "GROUP", "cluster": "BROKER"}


def listed_acls() -> dict[str, tuple[Acl, ...]]:
    """What docs/agents.md tells people to grant, by source."""
    found: dict[str, tuple[Acl, ...]] = {}
    source = ""
    for line in DOCS.read_text().partition("## Least privileges")[2].splitlines():
        if line.startswith("# "):
            source = line[2:].partition(",")[0]
        if line.startswith("kafka-acls"):
            words = shlex.split(line)
            operations = [words[n + 1] for n, word in enumerate(words) if word == "--operation"]
            (kind,) = [k for k in _KINDS if f"--{k}" in words]
            name = "kafka-cluster" if kind == "cluster" else words[words.index(f"--{kind}") + 1]
            made = tuple(
                Acl(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", each).upper(), _KINDS[kind], name)
                for each in operations
            )
            found[source] = found.get(source, ()) + made
    return found


ACLS = listed_acls()


@pytest.fixture(scope="module")
def broker() -> Iterator[SecuredBroker]:
    with secured_broker() as started:
        names = ("orders", "logs", "acktrail-reports")
        create_topics(started.admin, [Topic(name, ((1,),)) for name in names])
        produce(SimpleNamespace(direct=started.direct), "orders", range(50), 0)
        shipper = Producer({"bootstrap.servers": started.direct})
        for number in range(10):
            text = f"2026-01-31 10:00:00,001 ERROR no luck with produce response {number}"
            message = {"@timestamp": "2026-01-31T10:00:00Z", "message": text}
            message |= {"host": {"name": "h"}, "log": {"file": {"path": "/a.log"}}}
            shipper.produce("logs", json.dumps(message))
        report = Report("r", Tier.SENT, "orders", 1, 1_790_000_000_000, "s")
        shipper.produce("acktrail-reports", encode_reports([report]))
        shipper.flush(30)
        member = Consumer({"bootstrap.servers": started.direct, "group.id": "billing"})
        member.commit(offsets=[TopicPartition("orders", 0, 7)], asynchronous=False)
        member.close()
        yield started


@pytest.fixture(scope="module")
def other_ca(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("other")
    make_certificates(folder, folder / "ca.pem")
    return folder / "ca.pem"


def read(settings, kafka: KafkaSettings, lake: Lake) -> tuple[str, ...]:
    """As `acktrail agent --once` reads one source; what it notes."""
    agent = Agent(lake, [build_source(settings, SourceContext("c", kafka, once=True))], once=True)
    agent.run()
    (counts,) = agent.counts.values()
    return counts.health.notes


def rows_in(lake: Lake) -> dict[str, int]:
    counted = {table.name: lake.read(table).num_rows for table in BRONZE}
    return {name: count for name, count in counted.items() if count}


READ = {
    "log_scan": {AUDIT_REPORTS.name: 2},
    "log_topic": {LOG_RECORDS.name: 10},
    "cluster_state": {CLUSTER_STATES.name: 3, CLUSTER_CONFIGS.name: 4, GROUP_OFFSETS.name: 1},
    "audit_topic": {AUDIT_REPORTS.name: 1},
}


@pytest.mark.parametrize("kind", SOURCES)
def test_the_listed_rights_suffice(broker, tmp_path, kind):
    broker.allow(ACLS[kind])
    lake = Lake(tmp_path)
    assert read(SOURCES[kind], broker.access(), lake) == ()
    assert rows_in(lake) == READ[kind]


def _missing() -> list[tuple[str, Acl]]:
    return [(kind, acl) for kind in SOURCES for acl in ACLS[kind]]


@pytest.mark.parametrize(
    ("kind", "acl"),
    _missing(),
    ids=[f"{k}: {a.operation} {a.kind}" for k, a in _missing()],
)
def test_the_one_right_that_is_missing_is_named(broker, tmp_path, kind, acl):
    broker.allow([other for other in ACLS[kind] if other != acl])
    # A user who may describe nothing sees nothing: what it asks for by name is refused.
    named = {"topics": ("orders",), "groups": ("billing",)} if kind == "cluster_state" else {}
    settings = SOURCES[kind].model_copy(update=named)
    resource = {"TOPIC": "topic", "GROUP": "group", "BROKER": "cluster"}[acl.kind]
    operation = "DescribeConfigs" if acl.operation == "DESCRIBE_CONFIGS" else "(Describe|Read)"
    with pytest.raises(ConfigError, match=f"the user needs {operation} on the {resource}"):
        read(settings, broker.access(), Lake(tmp_path))


def test_what_cannot_be_seen_at_all_is_noted(broker, tmp_path):
    broker.allow([acl for acl in ACLS["cluster_state"] if acl.operation == "DESCRIBE_CONFIGS"])
    notes = read(SOURCES["cluster_state"], broker.access(), Lake(tmp_path))
    assert [note.partition(":")[0] for note in notes] == [
        "no topic is visible",
        "no group is visible",
    ]


def test_records_can_be_described_but_not_read(broker, tmp_path):
    broker.allow([Acl("DESCRIBE", "TOPIC", "*")])
    for kind in ("log_scan", "log_topic", "audit_topic"):
        with pytest.raises(ConfigError, match="the user needs Read on the topic"):
            read(SOURCES[kind], broker.access(), Lake(tmp_path / kind))


WRONG = [
    # what is wrong, changed settings, said
    ("a CA that did not sign", {"ssl_ca_location": "{other_ca}"}, "TLS failed.*ssl.ca.location"),
    ("no CA given: the system's", {"ssl_ca_location": "probe"}, "TLS failed.*ssl.ca.location"),
    ("a user nobody knows", {"sasl_username": "nobody"}, "refuses our credentials"),
    ("another mechanism", {"sasl_mechanism": "PLAIN"}, "refuses our credentials"),
]


@pytest.mark.parametrize(("change", "said"), [c[1:] for c in WRONG], ids=[c[0] for c in WRONG])
def test_wrong_access_is_refused_and_says_what_to_change(
    broker, other_ca, tmp_path, capfd, change, said
):
    changed = {name: value.format(other_ca=other_ca) for name, value in change.items()}
    settings = SOURCES["cluster_state"].model_copy(update={"timeout_s": 3.0})
    with pytest.raises(ConfigError, match=said) as refused:
        read(settings, broker.access(**changed), Lake(tmp_path / "lake"))
    assert PASSWORD not in str(refused.value)
    assert len(str(refused.value)) < 260
    assert capfd.readouterr().err == "", "librdkafka prints to stderr by itself"


def test_a_certificate_of_another_host_is_refused(broker, tmp_path):
    access = broker.access()
    elsewhere = access.model_copy(update={"bootstrap_servers": f"localhost:{broker.scram}"})
    settings = SOURCES["cluster_state"].model_copy(update={"timeout_s": 3.0})
    with pytest.raises(ConfigError, match=r"TLS failed.*name the host"):
        read(settings, elsewhere, Lake(tmp_path))


CONFIG = """
lake.uri = "{folder}/lake"
[kafka]
bootstrap_servers = "127.0.0.1:{port}"
[kafka.client]
"security.protocol" = "SASL_SSL"
"sasl.mechanism" = "SCRAM-SHA-512"
"sasl.username" = "{user}"
"ssl.ca.location" = "{ca}"
debug = "security,broker"
[kafka.secret_files]
"sasl.password" = "{folder}/password"
[[sources]]
kind = "log_topic"
name = "fleet"
topics = ["logs"]
shape = "filebeat"
timeout_s = 3
[[sources]]
kind = "log_scan"
name = "scan"
topics = ["orders"]
mode = "whole"
"""


@pytest.mark.parametrize("user", [USER, "nobody"])
def test_no_secret_in_any_output_or_in_the_process_list(broker, tmp_path, user):
    """The command itself, as talkative as librdkafka can be made."""
    broker.allow((*ACLS["log_topic"], *ACLS["log_scan"]))
    (tmp_path / "password").write_text(f"{PASSWORD}\n")
    settings = CONFIG.format(folder=tmp_path, port=broker.scram, user=user, ca=broker.ca)
    (tmp_path / "acktrail.toml").write_text(settings)
    words = [sys.executable, "-m", "acktrail", "agent", "--once", "--config", "acktrail.toml"]
    out, err = tmp_path / "out", tmp_path / "err"
    seen: set[str] = set()
    with out.open("w") as stdout, err.open("w") as stderr:
        home = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        agent = subprocess.Popen(words, cwd=tmp_path, env=home, stdout=stdout, stderr=stderr)
        with agent:
            while agent.poll() is None:
                seen.update(process_list(agent.pid))
                time.sleep(0.05)
    assert agent.returncode == (0 if user == USER else 2), err.read_text()[-2000:]
    assert any("acktrail agent" in line for line in seen)
    encoded = base64.b64encode(PASSWORD.encode()).decode()
    for said in (*seen, out.read_text(), err.read_text(), *_files(tmp_path / "lake")):
        assert PASSWORD not in said
        assert encoded not in said


def _files(folder: Path) -> list[str]:
    return [f.read_bytes().decode("latin-1") for f in folder.rglob("*") if f.is_file()]


class _TokenServer(http.server.BaseHTTPRequestHandler):
    """Gives the bearer of the client's secret a token of one hour that the broker believes."""

    asked: tuple[str, ...] = ()

    def do_POST(self) -> None:
        type(self).asked += (self.headers["Authorization"],)
        now = int(time.time())
        parts = ({"alg": "none"}, {"sub": USER, "iat": now, "exp": now + 3600})
        token = ".".join(_unpadded(json.dumps(part)) for part in parts) + "."
        body = json.dumps({"access_token": token, "token_type": "Bearer"}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return


def _unpadded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def test_oauth_settings_pass_through(broker, tmp_path):
    """A token is fetched by librdkafka itself, with the id and the secret from the settings."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _TokenServer)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    kafka = KafkaSettings(
        bootstrap_servers=f"127.0.0.1:{broker.oauth}",
        client={
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": "acktrail-agent",
            "sasl.oauthbearer.token.endpoint.url": f"http://127.0.0.1:{server.server_port}/token",
            "ssl.ca.location": str(broker.ca),
        },
        secrets={"sasl.oauthbearer.client.secret": PASSWORD},
    )
    try:
        broker.allow((*ACLS["log_topic"], *ACLS["log_scan"]))
        for kind in ("log_scan", "log_topic"):
            lake = Lake(tmp_path / kind)
            read(SOURCES[kind], kafka, lake)
            assert rows_in(lake) == READ[kind]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    given = base64.b64encode(f"acktrail-agent:{PASSWORD}".encode()).decode()
    assert set(_TokenServer.asked) == {f"Basic {given}"}


@pytest.mark.parametrize(
    ("kind", "acl"),
    _missing(),
    ids=[f"{k}: {a.operation} {a.kind}" for k, a in _missing()],
)
def test_the_doctor_names_the_missing_right(broker, kind, acl):
    broker.allow([other for other in ACLS[kind] if other != acl])
    named = {"topics": ("orders",), "groups": ("billing",)} if kind == "cluster_state" else {}
    row = kafka_probes.source_row(broker.access(), SOURCES[kind].model_copy(update=named))
    resource = {"TOPIC": "topic", "GROUP": "group", "BROKER": "cluster"}[acl.kind]
    operation = {"DESCRIBE_CONFIGS": "DescribeConfigs"}.get(acl.operation, acl.operation.title())
    assert row.state == "failed"
    assert f"the user needs {operation} on the {resource}" in row.remark


def test_the_doctor_is_content_with_the_listed_rights(broker):
    """In a process of its own, as the command asks; all sources at once."""
    broker.allow(tuple({acl for acls in ACLS.values() for acl in acls}))
    rows = kafka_probes.kafka_probe(broker.access(), list(SOURCES.values())).run()
    assert [(row.what, row.state) for row in rows] == [
        ("kafka", "ok"), ("source scan", "ok"), ("source fleet", "ok"), ("source state", "ok"),
        ("source clients", "ok"),
    ]  # fmt: skip


def test_the_doctor_does_not_get_in_with_a_wrong_password(broker):
    access = broker.access().model_copy(update={"secrets": {"sasl.password": SecretStr("wrong")}})
    rows = kafka_probes.kafka_probe(access, [SOURCES["log_scan"]]).run()
    assert [row.state for row in rows] == ["failed", "failed"]
    assert "refuses our credentials" in rows[0].remark
    assert rows[1].remark == "not tried: see kafka"


WRITE = (Acl("WRITE", "TOPIC", "orders"), Acl("WRITE", "TOPIC", "acktrail-reports"))
AUDITS = [
    # case, what the user may write to, how the audit differs, what the audit then says
    ("both topics", WRITE, {}, ""),
    ("no right to the audit topic", WRITE[:1], {}, "takes no reports: .*authorization failed"),
    ("no audit topic", WRITE, {"topic": "no-such-topic"}, "takes no reports: "),
    ("wrong password", WRITE, {"sasl.password": "wrong"}, "the audit cluster: .*uthentication"),
]


@pytest.mark.parametrize("case", AUDITS, ids=[case[0] for case in AUDITS])
def test_an_audited_application_goes_on_whatever_it_may_write_to(broker, caplog, case):
    """It takes the client's access; where that is wrong, one ERROR line is all that happens."""
    _, rights, change, said = case
    broker.allow(rights)
    access = broker.access()
    conf = {"bootstrap.servers": access.bootstrap_servers, **access.client}
    conf |= {"sasl.password": PASSWORD, "log_level": 0}
    audit = Audit(interval_s=0.5, close_s=1 if said else 30)
    if "topic" in change:
        audit = Audit(interval_s=0.5, topic=change["topic"], conf={"message.timeout.ms": 2_000})
    elif change:
        audit = Audit(
            bootstrap_servers=access.bootstrap_servers, interval_s=0.5, conf={**conf, **change}
        )
    heard = []
    producer = AuditedProducer(conf, audit=audit)
    for _ in range(100):
        producer.produce("orders", b"x", on_delivery=lambda error, _: heard.append(error))
    assert producer.flush(30) == 0
    assert heard == [None] * 100
    reporter = producer._audit._reporter
    if said:
        assert wait_until(lambda: bool(reporter.problems), 30)
    producer.close()
    own = [r for r in caplog.records if r.thread in (reporter._thread.ident, MAIN)]
    texts = [record.getMessage() for record in own if record.name == "acktrail_client"]
    assert len({text.partition(":")[0] for text in texts}) == len(texts)
    # What the case before it could not report may arrive now.
    made = [m for m in _reports(broker) if producer._audit.key.encode() in m]
    assert bool(made) is not bool(said)
    if said:
        assert re.search(said, "\n".join(texts)), texts
    else:
        assert texts == []
        assert {row.tier for m in made for row in decode_reports(m)} >= {Tier.SENT, Tier.ACKED}
        assert PASSWORD.encode() not in b"".join(made)


MAIN = threading.get_ident()


def _reports(broker) -> list[bytes]:
    """What is on the audit topic, by the open door."""
    reader = Consumer(
        {"bootstrap.servers": broker.direct, "group.id": "look", "enable.partition.eof": True}
    )
    reader.assign([TopicPartition("acktrail-reports", 0, 0)])
    found = []
    while (message := reader.poll(20)) is not None and message.error() is None:
        found.append(message.value())
    reader.close()
    return found
