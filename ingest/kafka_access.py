"""How to reach the cluster: librdkafka's settings, secrets read last, and its errors as ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from acktrail.errors import ConfigError, SourceUnavailable
from acktrail.settings.model import KafkaSettings

_OURS: dict[str, Any] = {
    "client.id": "acktrail",
    # librdkafka would wait a minute for a broker that hangs, and ask no other one meanwhile.
    "socket.timeout.ms": 15_000,
}


def client_config(kafka: KafkaSettings, **ours: Any) -> dict[str, Any]:
    """What librdkafka is given: the settings as they are, with *ours* (dots for underscores).

    What the source itself needs cannot be overridden.
    """
    if not kafka.bootstrap_servers:
        raise ConfigError(
            "`kafka.bootstrap_servers` is not set, and a source reads from the cluster. Set it in "
            "the settings file, or ACKTRAIL_KAFKA__BOOTSTRAP_SERVERS."
        )
    config: dict[str, Any] = {**_OURS, **kafka.client}
    config["bootstrap.servers"] = kafka.bootstrap_servers
    config |= {name: secret.get_secret_value() for name, secret in kafka.secrets.items()}
    for name, file in kafka.secret_files.items():
        try:
            config[name] = Path(file).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise ConfigError(f"The secret file {file} of {name}: {error.strerror}.") from None
    return config | {name.replace("_", "."): value for name, value in ours.items()}


_REFUSED = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
)
_WRONG_CREDENTIALS = (KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED)
_WRONG_ACCESS = (KafkaError._SSL, *_WRONG_CREDENTIALS)


class Listener:
    """Keeps what a client says of its connections: a call only says that nobody answered."""

    def __init__(self) -> None:
        self.last: KafkaError | None = None

    def hear(self, error: KafkaError) -> None:
        """Called by the client, with each of its own errors."""
        if error.code() in _WRONG_ACCESS:
            self.last = error


def explained(
    what: str, error: Exception, needs: str = "", heard: KafkaError | None = None
) -> Exception:
    """Our error for one of librdkafka: wrong access, or not reachable.

    *needs* is the ACL it wants, *heard* what the client said of its connections.
    """
    if refused(error):
        return ConfigError(f"{what}: {reason(error, needs)}.")
    code = error.args[0].code() if isinstance(error, KafkaException) else None
    wrong = error.args[0] if code in _WRONG_ACCESS else heard
    if wrong is not None and wrong.code() == KafkaError._SSL:
        return ConfigError(
            f"{what}: TLS failed: {wrong.str()}. The broker's certificate must be signed by a CA "
            'in `ssl.ca.location` (under [kafka] client; or "probe") and name the host we asked.'
        )
    if wrong is not None:
        return ConfigError(
            f"{what}: the cluster refuses our credentials: {wrong.str()}. See [kafka]: "
            "sasl.mechanism, sasl.username, and the secret in secrets or secret_files."
        )
    return SourceUnavailable(f"{what}: the cluster did not answer: {reason(error)}")


def reason(error: Exception, needs: str = "") -> str:
    """What *error* says, and the ACL that would cure it."""
    if not isinstance(error, KafkaException):
        return str(error) or type(error).__name__
    said = str(error.args[0].str()).rstrip(".")
    if needs and refused(error):
        said += f": the user needs {needs} (docs/agents.md, least privileges)"
    return said


def refused(error: Exception) -> bool:
    """Whether an ACL is missing."""
    return isinstance(error, KafkaException) and error.args[0].code() in _REFUSED
