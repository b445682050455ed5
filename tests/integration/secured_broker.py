"""One real broker with everything locked: TLS, SASL (SCRAM, OAuth) and an authorizer."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from acktrail import artifacts
from acktrail.settings.model import KafkaSettings
from lab.cluster import VERSIONS
from lab.layouts import broker_logging
from lab.processes import Process
from lab.scratch import free_ports, new_scratch
from lab.steps import wait_until

USER, PASSWORD = "acktrail", "hunter2-is-not-it"
_JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
_LOGIN = "org.apache.kafka.common.security"


@dataclass(frozen=True)
class Acl:
    """One operation on one resource; `*` is every one of its kind."""

    operation: str
    kind: str
    name: str

    def binding(self) -> AclBinding:
        return AclBinding(
            ResourceType[self.kind],
            "kafka-cluster" if self.kind == "BROKER" else self.name,
            ResourcePatternType.LITERAL,
            f"User:{USER}",
            "*",
            AclOperation[self.operation],
            AclPermissionType.ALLOW,
        )


class SecuredBroker:
    """Clients come in by SCRAM or OAuth over TLS; only the test itself by the open door."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.ca = home / "ca.pem"
        self.open, self.scram, self.oauth, self._controller = free_ports(4)
        self._admin: AdminClient | None = None

    @property
    def direct(self) -> str:
        """Past all locks: who comes in here may do everything."""
        return f"127.0.0.1:{self.open}"

    @property
    def admin(self) -> AdminClient:
        """Made when first asked for: the broker is up by then."""
        if self._admin is None:
            self._admin = AdminClient({"bootstrap.servers": self.direct, "log_level": 0})
        return self._admin

    def access(self, **client: str) -> KafkaSettings:
        """The settings of the one user, by SCRAM; *client* (dots as underscores) changes them."""
        given = {name.replace("_", "."): value for name, value in client.items()}
        return KafkaSettings(
            bootstrap_servers=f"127.0.0.1:{self.scram}",
            client={
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.username": USER,
                "ssl.ca.location": str(self.ca),
                **given,
            },
            secrets={"sasl.password": PASSWORD},
        )

    def allow(self, acls: Sequence[Acl]) -> None:
        """Let the user do these things and no other; returns when the broker goes by it."""
        everything = AclBindingFilter(
            *(ResourceType.ANY, None, ResourcePatternType.ANY, None, None),
            *(AclOperation.ANY, AclPermissionType.ANY),
        )
        for done in self.admin.delete_acls([everything]).values():
            done.result(60)
        wanted = [acl.binding() for acl in acls]
        for done in (self.admin.create_acls(wanted) if wanted else {}).values():
            done.result(60)
        assert wait_until(
            lambda: len(self.admin.describe_acls(everything).result(60)) == len(acls), 60
        )

    def start(self) -> Process:
        make_certificates(self.home, self.ca)
        settings = self.home / "server.properties"
        settings.write_text("".join(f"{k}={v}\n" for k, v in self._settings().items()))
        logging = broker_logging(VERSIONS[0], self.home, self.home / "log4j2.properties")
        java = (artifacts.java(), *_JVM, logging, "-cp")
        classes = f"{artifacts.resolve(f'kafka-{VERSIONS[0]}')}/*"
        scram = f"SCRAM-SHA-512=[name={USER},password={PASSWORD}]"
        subprocess.run(
            [
                *(*java, classes, "kafka.tools.StorageTool", "format", "-t"),
                *("MkU3OEVBNTcwNTJENDM2Qk", "-c", str(settings), "--add-scram", scram),
            ],
            check=True,
            capture_output=True,
            timeout=300,
        )
        output = self.home / "output.txt"
        process = Process([*java, classes, "kafka.Kafka", str(settings)], output=output)
        log = self.home / "server.log"
        started = wait_until(
            lambda: log.exists() and "Kafka Server started" in log.read_text(errors="replace"), 300
        )
        if not started:
            process.kill()
            raise AssertionError(output.read_text()[-2000:] + log.read_text()[-2000:])
        return process

    def _settings(self) -> dict[str, str]:
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{self._controller}",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "INTERNAL",
            "listeners": (
                f"INTERNAL://127.0.0.1:{self.open},SCRAM://127.0.0.1:{self.scram},"
                f"OAUTH://127.0.0.1:{self.oauth},CONTROLLER://127.0.0.1:{self._controller}"
            ),
            "listener.security.protocol.map": (
                "INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT,SCRAM:SASL_SSL,OAUTH:SASL_SSL"
            ),
            "listener.name.scram.sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "listener.name.scram.scram-sha-512.sasl.jaas.config": (
                f"{_LOGIN}.scram.ScramLoginModule required;"
            ),
            "listener.name.oauth.sasl.enabled.mechanisms": "OAUTHBEARER",
            "listener.name.oauth.oauthbearer.sasl.jaas.config": (
                f"{_LOGIN}.oauthbearer.OAuthBearerLoginModule required "
                'unsecuredLoginStringClaim_sub="broker";'
            ),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.home / "server.pem"),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "log.dirs": str(self.home / "data"),
            "auto.create.topics.enable": "false",
            "offsets.topic.num.partitions": "1",
            "offsets.topic.replication.factor": "1",
            "group.initial.rebalance.delay.ms": "0",
            "log.cleaner.dedupe.buffer.size": "4194304",
        }


def make_certificates(home: Path, ca: Path) -> None:
    """A CA of our own at *ca*, and in `server.pem` a key and a certificate it has signed."""
    key, request, signed = home / "ca.key", home / "server.csr", home / "server.crt"
    own = ("-newkey", "rsa:2048", "-nodes", "-days", "2")
    _openssl("req", "-x509", *own, "-subj", "/CN=ca", "-keyout", str(key), "-out", str(ca))
    (home / "names").write_text("subjectAltName=IP:127.0.0.1")
    server_key = home / "server.key"
    _openssl(
        *("req", *own[:3], "-subj", "/CN=kafka"),
        *("-keyout", str(server_key), "-out", str(request)),
    )
    _openssl(
        *("x509", "-req", "-in", str(request), "-CA", str(ca), "-CAkey", str(key)),
        *("-CAcreateserial", "-days", "2", "-extfile", str(home / "names"), "-out", str(signed)),
    )
    (home / "server.pem").write_text(server_key.read_text() + signed.read_text() + ca.read_text())


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


@contextmanager
def secured_broker() -> Iterator[SecuredBroker]:
    """A started broker; it and its directory are gone when the block ends."""
    home = new_scratch("secured")
    try:
        broker = SecuredBroker(home)
        process = broker.start()
        try:
            yield broker
        finally:
            process.kill()
    finally:
        shutil.rmtree(home, ignore_errors=True)
