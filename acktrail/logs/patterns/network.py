"""What the Java clients print of connections, metadata and themselves, whoever they work for.

Sources: Apache Kafka, clients/src/main/java/org/apache/kafka. Who speaks decides whether it is a
producer's: see `reader.py`.
"""

from __future__ import annotations

import re

from acktrail.logs.pattern import Fields, Pattern, Stock, pattern

_CLIENT = "org.apache.kafka.clients.NetworkClient"
_NODE = r"(?P<node>-?[0-9]+)"
_NO_CONNECTION = re.compile(r"\bjava(?:x|\.\w{1,20}){0,2}\.\w{1,20}\.(\w{1,60}Exception)\b")


def _unreachable(fields: Fields, found: re.Match[str], text: str) -> bool:
    thrown = _NO_CONNECTION.search(text, found.end())
    fields["error"] = None if thrown is None else thrown.group(1)
    return True


def _disconnect(_: Fields, __: re.Match[str], text: str) -> bool:
    # "Node 1 disconnected." is also said of a fetch session and by other programs' logs.
    return "clientId=" in text or "NetworkClient" in text


NETWORK = (
    # NetworkClient.java; 0.11 to 2.0 without address; "Broker may" to 3.6, "Node may" since 3.7.
    #   Connection to node -1 (localhost/127.0.0.1:9092) could not be established. Node may not be
    #   available.
    pattern(
        "Connection to node ",
        r"Connection to node (?P<node>-?\d{1,10}|\S{1,20})(?: ?[(\[][^)\]]{0,300}[)\]])? "
        r"(?:could not be established|terminated during authentication|failed authentication|"
        r"could(?: not)?(?: be)?(?: ?(?:\.\.\.|…))?\Z)",
        "connection_failure",
        "node_unavailable",
        words=("Connection to node ", "could not be established"),
        continues=(r"(?:could not be established|Broker may not|Node may not)[\s.]",),
        alone="could not be established",
        stock=Stock(
            rf"Connection to node {_NODE}(?: \([^()\n]*\))? could not be established\. "
            r"(?:Broker|Node) may not be available\.",
            _CLIENT,
        ),
    ),
    # NetworkClient.java, 0.10 to 4.4, with the exception on the next line:
    #   Error connecting to node b1:9092 (id: 1 rack: null)
    pattern(
        "Error connecting to node ",
        r"Error connecting to node \S{1,300}(?: \(id: (?P<node>-?\d{1,10})[^)]{0,60}\))?",
        "connection_failure",
        "node_unreachable",
        _unreachable,
    ),
    # NetworkClient.java, 0.10 to 4.4:
    #   Bootstrap broker localhost:9092 (id: -1 rack: null) disconnected
    pattern(
        "Bootstrap broker ",
        r"Bootstrap broker \S{1,300}(?: \(id: (?P<node>-?\d{1,10})[^)]{0,60}\))? disconnected",
        "connection_failure",
        "bootstrap_disconnected",
        words=(" disconnected",),
        alone="disconnected",
    ),
    # NetworkClient.java, INFO since 3.1, throttle time since 3.8:
    #   Cancelled in-flight PRODUCE request with correlation id 4128 due to node 2 being
    #   disconnected (elapsed time since creation: 30004ms, elapsed time since send: 30004ms,
    #   throttle time: 0ms, request timeout: 30000ms)
    pattern(
        "Cancelled in-flight ",
        r"Cancelled in-flight \w{1,40} request with correlation id "
        r"(?P<correlation_id>\d{1,18}|\S{1,20}) due to node (?P<node>-?\d{1,10}|\S{1,20}) "
        r"being disconnected(?: \(elapsed time since creation: (?P<elapsed_ms>\d{1,18})ms)?",
        "connection_failure",
        "request_cancelled",
        alone="disconnected",
        stock=Stock(
            r"Cancelled in-flight [A-Z_]+ request with correlation id (?P<correlation_id>[0-9]+) "
            rf"due to node {_NODE} being disconnected \(elapsed time since creation: "
            r"(?P<elapsed_ms>[0-9]+)ms[^()\n]*\)",
            _CLIENT,
        ),
    ),
    # NetworkClient.java, INFO since 3.1: Disconnecting from node 2 due to request timeout.
    pattern(
        "Disconnecting from node ",
        r"Disconnecting from node (?P<node>-?\d{1,10}|\S{1,20}) due to (?:request|socket connection"
        r" setup) timeout",
        "connection_failure",
        "request_timeout",
    ),
    # NetworkClient.java, INFO since 3.1: Node 2 disconnected.
    pattern(
        "Node ",
        r"Node (?P<node>-?\d{1,10}) disconnected\.",
        "connection_failure",
        "node_disconnected",
        _disconnect,
        words=(" disconnected",),
        alone="disconnected",
        stock=Stock(rf"Node {_NODE} disconnected\.", _CLIENT),
    ),
)

BACKGROUND = (
    # NetworkClient.java; 0.9 to 3.8 the first text, since 3.9 the second:
    #   Error while fetching metadata with correlation id 3 : {orders=LEADER_NOT_AVAILABLE}
    #   The metadata response from the cluster reported a recoverable issue with correlation id ...
    pattern(
        "Error while fetching metadata",
        r"Error while fetching metadata with correlation id (?P<correlation_id>\d{1,18}) : "
        r"\{(?P<topic>[^=,}]{1,249})=(?P<error>[A-Z_]{3,60})",
        "metadata_error",
        "metadata_error",
        words=("fetching metadata",),
    ),
    pattern(
        "The metadata response from the cluster reported a recoverable issue",
        r"The metadata response from the cluster reported a recoverable issue with correlation id "
        r"(?P<correlation_id>\d{1,18}) : \{(?P<topic>[^=,}]{1,249})=(?P<error>[A-Z_]{3,60})",
        "metadata_error",
        "metadata_error",
        words=("recoverable issue",),
    ),
    # producer/ProducerConfig.java, 3.0.1 to 4.4:
    #   Idempotence will be disabled because acks is set to 1, not set to 'all'.
    pattern(
        "Idempotence will be disabled because ",
        r"(?P<message>Idempotence will be disabled because [\w.]{1,60} is set to -?\d{1,10})",
        "idempotence_disabled",
        "idempotence_disabled",
    ),
    # common/utils/AppInfoParser.java: "Kafka version: 3.9.0"; up to 2.0 "Kafka version : 2.0.0"
    pattern(
        "Kafka version",
        r"Kafka version ?: (?P<version>\d{1,3}(?:\.\d{1,4}){1,3}[\w.-]{0,40})",
        "client_version",
        "client_version",
    ),
)

PATTERNS: tuple[Pattern, ...] = (*NETWORK, *BACKGROUND)
