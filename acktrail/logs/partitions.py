"""Topic and partition, in every way they are written."""

from __future__ import annotations

import re

# Kafka, common/TopicPartition.java: topic + "-" + partition. A topic may hold dashes and dots:
# the partition is what follows the LAST dash.
_DASH = re.compile(r"([A-Za-z0-9._-]{1,249})-(\d{1,9})\Z")
# Kafka 4.1+, common/TopicIdPartition.java: topicId + ":" + topicPartition. Ids are 22 characters.
_TOPIC_ID = re.compile(r"([A-Za-z0-9_-]{22}):(.*)\Z", re.DOTALL)
# Kafka <= 0.10: [orders,3]
_BRACKETS = re.compile(r"\[([A-Za-z0-9._-]{1,249}),\s?(\d{1,9})\]\Z")
# kafka-python: TopicPartition(topic='orders', partition=3)
_PYTHON = re.compile(
    r"TopicPartition\(topic=['\"]([A-Za-z0-9._-]{1,249})['\"], partition=(\d{1,9})\)\Z"
)
# librdkafka: orders [3]
_RDKAFKA = re.compile(r"([A-Za-z0-9._-]{1,249}) \[(-?\d{1,9})\]\Z")
# sarama: orders/3
_SLASH = re.compile(r"([A-Za-z0-9._-]{1,249})/(\d{1,9})\Z")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}\Z")
_MASK = re.compile(r"[.\-_]+\Z|[xX*]{2,}\Z")

_AROUND = " \t\r\n`'\"“”‘’,;*"


def split_partition(text: str) -> tuple[str | None, int | None, str | None]:
    """Topic, partition and topic id; None for each that is masked or missing."""
    text = text.strip(_AROUND)
    topic_id = None
    if len(text) > 23 and text[22] == ":":
        with_id = _TOPIC_ID.match(text)
        if with_id is not None:
            topic_id, text = with_id.group(1), with_id.group(2)
    for pattern in (_DASH, _BRACKETS, _PYTHON, _RDKAFKA, _SLASH):
        found = pattern.match(text)
        if found is not None:
            topic = found.group(1)
            return (None if _MASK.match(topic) else topic), int(found.group(2)), topic_id
    return None, None, topic_id


def topic_name(text: str | None) -> str | None:
    """The topic, unless it is masked or no topic name at all."""
    if text is None:
        return None
    text = text.strip(_AROUND).removesuffix(".")  # a sentence's end
    if _TOPIC.match(text) is None or _MASK.match(text) is not None:
        return None
    return text
