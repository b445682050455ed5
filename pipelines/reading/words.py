"""The words that a record of each side holds: a superset, for putting the rest aside at once."""

from __future__ import annotations

from pipelines.reading import broker, consumer, failures, network, other_clients, producer, rdkafka

BROKER_WORDS: tuple[str, ...] = tuple(dict.fromkeys(p.marker for p in broker.PATTERNS))
CONSUMER_WORDS: tuple[str, ...] = (
    *dict.fromkeys(p.marker for p in consumer.PATTERNS),
    "ConsumerConfig values:",
)
_OTHER = (
    "ProducerConfig values:",
    *rdkafka.MARKS[1:],
    "Local: ",
    "Broker: ",
    "KafkaError{",
    *other_clients.KAFKAJS_WORDS,
    *failures.WORDS,
    "|FAIL|",
    "|ERROR|",
    "|REQTMOUT|",
    "|TERMINATE|",
    "|FATAL|",
    "|MSGSET|",
    "|TIMEOUT|",
    "|REQERR|",
    "|RETRY|",
)
PRODUCER_WORDS: tuple[str, ...] = (
    *dict.fromkeys(
        p.marker
        for p in (
            *producer.PATTERNS,
            *network.PATTERNS,
            *other_clients.PATTERNS,
        )
    ),
    *_OTHER,
)
