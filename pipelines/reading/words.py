"""The words that a record of each side holds: a superset, for putting the rest aside at once."""

from __future__ import annotations

from pipelines.reading import broker, consumer, other_clients, producer

BROKER_WORDS: tuple[str, ...] = tuple(dict.fromkeys(p.marker for p in broker.PATTERNS))
CONSUMER_WORDS: tuple[str, ...] = (
    *dict.fromkeys(p.marker for p in consumer.PATTERNS),
    "ConsumerConfig values:",
)
_OTHER = (
    "ProducerConfig values:",
    "#producer-",
    "Local: ",
    "Broker: ",
    "KafkaError{",
    "kafkajs",
    "KafkaJS",
    "xception",
    "metadata after",
    "sending",
    "when serialized which is larger",
    "Could not submit metrics to Kafka topic",
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
            *other_clients.SARAMA,
            *other_clients.RDKAFKA,
            *other_clients.SCALA,
            *other_clients.PYTHON,
        )
    ),
    *_OTHER,
)
