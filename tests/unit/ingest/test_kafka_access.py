"""What librdkafka reports, as a sentence with address, reason and advice."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException

from acktrail.errors import ConfigError, SourceUnavailable
from ingest.kafka.access import Listener, explained
from ingest.kafka.topic_names import no_such_topic

INGEST = Path(__file__).parents[3] / "ingest"
DOWN = KafkaError(KafkaError._TRANSPORT, "Failed to get metadata: Local: Broker transport failure")

# As librdkafka 2.16 words them.
HEARD = [
    (
        KafkaError._TRANSPORT,
        "127.0.0.1:19999/bootstrap: Connect to ipv4#127.0.0.1:19999 failed: Connection refused "
        "(after 0ms in state CONNECT, 1 identical error(s) suppressed)",
        SourceUnavailable,
        "No connection to Kafka at 127.0.0.1:19999: Connection refused. Check kafka.bootstrap_",
    ),
    (
        KafkaError._RESOLVE,
        "nosuch.example:9092/bootstrap: Failed to resolve 'nosuch.example:9092': Name or service "
        "not known (after 1ms in state CONNECT)",
        SourceUnavailable,
        "No connection to Kafka at nosuch.example:9092: Name or service not known. Check kafka.",
    ),
    (
        KafkaError._TRANSPORT,
        "kafka-2.prod:9092/2: Connect to ipv4#10.0.0.2:9092 failed: Connection timed out "
        "(after 30029ms in state CONNECT)",
        SourceUnavailable,
        "No connection to Kafka broker 2 at kafka-2.prod:9092: Connection timed out. It is down,",
    ),
    (
        KafkaError._TRANSPORT,
        "ssl://127.0.0.1:36687/bootstrap: SSL handshake failed: Disconnected: SSL connection "
        "closed by peer: connecting to a PLAINTEXT broker listener? (after 1ms in state X)",
        SourceUnavailable,
        "No connection to Kafka at 127.0.0.1:36687: SSL handshake failed: Disconnected: SSL "
        "connection closed by peer: connecting to a PLAINTEXT broker listener? Check kafka.",
    ),
    (
        KafkaError._SSL,
        "sasl_ssl://127.0.0.1:9/bootstrap: SSL handshake failed: error:0A000086:SSL routines::"
        "certificate verify failed: broker certificate could not be verified, verify that "
        "ssl.ca.location is correctly configured or root CA certificates are installed",
        ConfigError,
        "TLS failed with Kafka at 127.0.0.1:9: certificate verify failed. Set `ssl.ca.location`",
    ),
    (
        KafkaError._AUTHENTICATION,
        "sasl_plaintext://127.0.0.1:9/bootstrap: SASL authentication error: Authentication failed "
        "(after 6ms in state AUTH_REQ)",
        ConfigError,
        "Kafka at 127.0.0.1:9 refuses our credentials: SASL authentication error: Authentication "
        "failed. Check sasl.mechanism",
    ),
    (
        KafkaError._BAD_MSG,
        "10.0.0.1:9092/bootstrap: Receive failed: Invalid response size 1213486160 (0..100000000): "
        "increase receive.message.max.bytes (after 1ms in state APIVERSION_QUERY)",
        SourceUnavailable,
        "No connection to Kafka at 10.0.0.1:9092: the answer is not in Kafka's protocol. Check",
    ),
    (KafkaError._FAIL, "words of another kind", SourceUnavailable, "No connection to Kafka: words"),
]


@pytest.mark.parametrize(("code", "text", "kind", "said"), HEARD, ids=[h[1][:40] for h in HEARD])
def test_a_connection_that_fails(code, text, kind, said):
    heard = Listener()
    heard.hear(KafkaError(code, text))
    error = explained("orders", KafkaException(DOWN), heard=heard)
    assert type(error) is kind
    assert str(error).startswith(said)


def test_what_needs_other_settings_is_kept_until_the_cluster_answers():
    heard = Listener()
    refused = KafkaError(KafkaError._AUTHENTICATION, "h:1/1: no")
    for error in (KafkaError(KafkaError._TRANSPORT, "h:1/1: x"), refused, DOWN):
        heard.hear(error)
    assert heard.last is refused
    heard.hear(KafkaError(KafkaError._ALL_BROKERS_DOWN))
    assert heard.all_down
    heard.answered()
    assert (heard.last, heard.all_down) == (None, False)


def test_an_answer_is_not_called_silence():
    error = explained("orders-0", KafkaException(KafkaError(KafkaError.OFFSET_OUT_OF_RANGE)))
    assert str(error) == "orders-0: Offset out of range."


def test_every_client_of_an_agent_is_made_in_one_place():
    """Elsewhere it would print to stderr by itself."""
    makers = {
        path.name
        for path in INGEST.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("AdminClient", "Consumer", "Producer")
    }
    assert makers == {"access.py"}


@pytest.mark.parametrize(
    ("topic", "existing", "ends"),
    [
        ("ordres", ["orders", "payments"], "Describe it. Did you mean orders?"),
        ("logs", ["orders"], "may not Describe it."),
        ("logs", [], "may not Describe it."),
    ],
)
def test_a_topic_that_is_not_there(topic, existing, ends):
    said = no_such_topic(topic, existing)
    assert said.startswith(f"Topic {topic} does not exist on this cluster")
    assert said.endswith(ends)
