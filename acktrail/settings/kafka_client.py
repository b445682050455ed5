"""Ask librdkafka whether it knows the settings passed on to it; no connection is made."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator

from acktrail.nearest import did_you_mean
from acktrail.settings.model import KafkaSettings

_COMMON = (
    # Those that people write by hand, to be offered for a mistyped one.
    *("client.id", "client.rack", "debug", "metadata.max.age.ms", "socket.timeout.ms"),
    *("socket.connection.setup.timeout.ms", "socket.keepalive.enable", "broker.address.family"),
    *("reconnect.backoff.ms", "reconnect.backoff.max.ms", "connections.max.idle.ms"),
    *("security.protocol", "sasl.mechanism", "sasl.mechanisms", "sasl.username", "sasl.password"),
    *("sasl.kerberos.service.name", "sasl.kerberos.principal", "sasl.kerberos.keytab"),
    *("sasl.oauthbearer.method", "sasl.oauthbearer.config", "sasl.oauthbearer.client.id"),
    *("sasl.oauthbearer.client.secret", "sasl.oauthbearer.scope", "sasl.oauthbearer.extensions"),
    "sasl.oauthbearer.token.endpoint.url",
    *("ssl.ca.location", "ssl.ca.pem", "ssl.certificate.location", "ssl.certificate.pem"),
    *("ssl.key.location", "ssl.key.password", "ssl.key.pem", "ssl.keystore.location"),
    *("ssl.keystore.password", "ssl.cipher.suites", "ssl.endpoint.identification.algorithm"),
    *("ssl.crl.location", "enable.ssl.certificate.verification"),
)
_TOGETHER = "Failed to create"
"""How an error begins that is about settings which need each other."""


def client_problems(kafka: KafkaSettings) -> Iterator[str]:
    """A line for every setting that librdkafka does not know, or whose value it refuses."""
    given: list[tuple[str, str, str]] = [("client", k, v) for k, v in kafka.client.items()]
    given += [("secrets", k, v.get_secret_value()) for k, v in kafka.secrets.items()]
    given += [("secret_files", name, "") for name in kafka.secret_files]
    for section, name, value in given:
        said = _refusal(name, value)
        if said is None or (section == "secret_files" and "No such" not in said):
            continue
        path = f'kafka.{section}."{name}"'
        if "No such configuration property" in said:
            yield f"{path}: librdkafka has no such setting.{did_you_mean(name, _COMMON)}"
        else:
            yield f"{path}: {_without_value(said, value) if section == 'client' else 'refused'}"


def _refusal(name: str, value: str) -> str | None:
    from confluent_kafka import KafkaException, Producer

    if name == "bootstrap.servers":
        return "set `kafka.bootstrap_servers` instead"
    quiet = logging.Logger(__name__)
    quiet.disabled = True
    try:
        Producer({name: value}, logger=quiet)
    except KafkaException as error:
        said = str(error.args[0].str()).strip()
        return None if said.startswith(_TOGETHER) else said
    except (TypeError, ValueError):
        return "No such configuration property"  # a callback of the Python client
    return None


def _without_value(said: str, value: str) -> str:
    """librdkafka's words without the value: somebody may have put a password there."""
    shorter = re.sub(r"\s*(configuration property|for configuration property)\s*", " ", said)
    return f"librdkafka refuses it: {shorter.replace(value, '...') if value else shorter}"
