"""How to reach the cluster: librdkafka's settings, its clients, and its errors as ours.

Every client of librdkafka that an agent uses is made here. librdkafka would print a line for every
failed connection, several a second; nothing of it reaches the log. A `Listener` keeps the newest
reason, and the error of the call that failed for it says it once.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from pathlib import Path
from textwrap import shorten
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from acktrail.errors import ConfigError, SourceUnavailable
from acktrail.settings.model import KafkaSettings

_debug_log = logging.getLogger(f"{__name__}.debug")
"""Where librdkafka's own lines go when somebody asks for them with `debug` in [kafka.client]."""

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
_NO_ANSWER = (
    KafkaError._TRANSPORT,
    KafkaError._RESOLVE,
    KafkaError._TIMED_OUT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._WAIT_COORD,
)


class Listener:
    """What a client reports about its connections since the cluster last answered.

    A call that fails only reports that nobody answered; the reason comes here.
    """

    def __init__(self) -> None:
        self.servers = ""
        """The bootstrap servers of the client."""
        self.last: KafkaError | None = None
        """The newest reason; one that needs other settings is kept before one that may pass."""
        self.all_down = False
        """No broker is connected: a consumer would wait for ever and not say so."""

    def hear(self, error: KafkaError) -> None:
        """Called by the client, with each of its own errors."""
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self.all_down = True
        elif not self._needs_settings or error.code() in _WRONG_ACCESS:
            self.last = error

    def answered(self) -> None:
        """The cluster answered: what was heard before is over."""
        self.last = None
        self.all_down = False

    @property
    def _needs_settings(self) -> bool:
        return self.last is not None and self.last.code() in _WRONG_ACCESS


def open_admin(config: Mapping[str, Any], heard: Listener) -> AdminClient:
    """A quiet AdminClient whose errors go to *heard*; refused settings are a ConfigError."""
    try:
        return AdminClient(_quiet(config, heard), logger=_debug_log)
    except KafkaException as error:
        raise _wrong_settings(error) from None


def open_consumer(config: Mapping[str, Any], heard: Listener) -> Consumer:
    """A quiet Consumer whose errors go to *heard*; refused settings are a ConfigError."""
    try:
        return Consumer(_quiet(config, heard), logger=_debug_log)
    except KafkaException as error:
        raise _wrong_settings(error) from None


def _quiet(config: Mapping[str, Any], heard: Listener) -> dict[str, Any]:
    heard.servers = str(config["bootstrap.servers"])
    asked_for = "debug" in config
    if asked_for:
        _debug_log.setLevel(logging.DEBUG)
    return {**config, "error_cb": heard.hear, "log_level": 7 if asked_for else 0}


def _wrong_settings(error: KafkaException) -> ConfigError:
    said = str(error.args[0].str()).removeprefix("Failed to create admin client: ")
    return ConfigError(f"librdkafka refuses the settings in [kafka]: {said}.")


def explained(
    what: str, error: Exception, needs: str = "", heard: Listener | None = None
) -> Exception:
    """Our error for one of librdkafka: wrong access, or not reachable.

    *needs* is the ACL it wants, *heard* what the client reported about its connections.
    """
    if refused(error):
        return ConfigError(f"{what}: {reason(error, needs)}.")
    code = error.args[0].code() if isinstance(error, KafkaException) else None
    if code is not None and code not in (*_NO_ANSWER, *_WRONG_ACCESS):
        return SourceUnavailable(f"{what}: {reason(error)}.")
    said = error.args[0] if code in _WRONG_ACCESS else heard.last if heard else None
    if said is None:
        servers = f" at {shorten(heard.servers, 60, placeholder='...')}" if heard else ""
        return SourceUnavailable(
            f"Kafka{servers} did not answer ({reason(error)}). "
            "Check kafka.bootstrap_servers, and that the brokers run."
        )
    return _connection_error(str(said.str()), said.code())


_CONNECTION = re.compile(
    r"(?:\w+: )?(?:\w+://)?(?P<address>\S+?)/(?P<node>\w+): (?P<reason>.*?)"
    r"(?: \(after \d+ms in state .*\))?",
    re.DOTALL,
)
"""As librdkafka reports a connection: `ssl://host:9093/1: reason (after 2ms in state CONNECT)`."""
_CLUTTER = re.compile(
    r"Connect to ipv[46]#\S+ failed: |Failed to resolve '\S+': |"
    r"SSL handshake failed: (?!Disconnected)|error:[0-9A-F]+:SSL routines::|"
    r": broker certificate could not be verified.*"
)


def _connection_error(text: str, code: int) -> Exception:
    """Our error for what librdkafka reports about one connection."""
    found = _CONNECTION.fullmatch(text)
    address, node, why = found.group("address", "node", "reason") if found else ("", "", text)
    why = _sentence(_CLUTTER.sub("", why))
    at = f" at {address}" if address else ""
    if code == KafkaError._SSL:
        return ConfigError(
            f"TLS failed with Kafka{at}: {why} Set `ssl.ca.location` in [kafka.client] to the CA "
            "of the broker's certificate; it must name the host we asked."
        )
    if code in _WRONG_CREDENTIALS:
        return ConfigError(
            f"Kafka{at} refuses our credentials: {why} "
            "Check sasl.mechanism, sasl.username and sasl.password in [kafka]."
        )
    if code == KafkaError._BAD_MSG:
        why = "the answer is not in Kafka's protocol."
    if node.isdigit():
        advice = "It is down, or the address that it advertises is not reachable from here."
        return SourceUnavailable(f"No connection to Kafka broker {node}{at}: {why} {advice}")
    advice = "Check kafka.bootstrap_servers, and that the broker runs."
    return SourceUnavailable(f"No connection to Kafka{at}: {why} {advice}")


_PREFIXES = re.compile(
    r"(Failed to get metadata: |Failed while \w+ing for \w+: |Local: |Broker: )+"
)


def _sentence(text: str) -> str:
    return text if text.endswith(("?", ".")) else f"{text}."


def reason(error: Exception, needs: str = "") -> str:
    """What *error* says, and the ACL that would cure it."""
    if not isinstance(error, KafkaException):
        return str(error) or type(error).__name__
    said = _PREFIXES.sub("", str(error.args[0].str())).rstrip(".")
    if needs and refused(error):
        said += f": the user needs {needs} (docs/agents.md, least privileges)"
    return said


def refused(error: Exception) -> bool:
    """Whether an ACL is missing."""
    return isinstance(error, KafkaException) and error.args[0].code() in _REFUSED


def unknown_topic(error: Exception) -> bool:
    """Whether the cluster answered that there is no such topic."""
    code = error.args[0].code() if isinstance(error, KafkaException) else None
    return code in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC)
