"""What the Java producer prints. Sources: Apache Kafka, clients/src/main/java/org/apache/kafka.

Each pattern stands beside the line it reads. `N attempts left` is what remains after the retry
being announced; when none remain, nothing is printed at all.
"""

from __future__ import annotations

import re

from acktrail.logs.kafka_errors import look_up
from acktrail.logs.layout import without_logger
from acktrail.logs.pattern import Fields, Stock, integer, pattern

SENDER = "org.apache.kafka.clients.producer.internals.Sender"
_PLACE = r"(?P<topic>[A-Za-z0-9._-]*[A-Za-wyzA-WYZ1-9][A-Za-z0-9._-]*)-(?P<partition>[0-9]+)"
_N = r"-?\d{1,18}|\S{1,40}?"
_ERROR = r"[A-Z][A-Z_]{2,60}|<class '[\w.]{1,100}'>|[\w.]{1,100}(?:Error|Exception)\b"


def _retry(fields: Fields, found: re.Match[str], _: str) -> bool:
    if found["split"] is not None:
        fields["kind"], fields["detail"] = "split_retry", "produce_split_retry"
    return _name_error(fields, found)


def _name_error(fields: Fields, found: re.Match[str]) -> bool:
    error = found["error"]
    if error is not None:
        fields["error"] = simple_name(error)
    message = found.groupdict().get("message")
    if message is not None:
        fields["message"] = without_logger(message).strip() or None
    return True


def simple_name(error: str) -> str:
    """The class without its package, or the code's name as it is."""
    if error.startswith("<class '"):
        error = error[8:-2]
    return error.rpartition(".")[2].rpartition("$")[2]


def _unknown_topic(fields: Fields, _: re.Match[str], __: str) -> bool:
    fields["error"] = "UNKNOWN_TOPIC_OR_PARTITION"
    return True


def _sequence_reset(fields: Fields, found: re.Match[str], _: str) -> bool:
    last, following = integer(found["last"]), integer(found["following"])
    if last is not None and following is not None and following - last - 1 >= 0:
        fields["records"] = following - last - 1
    return True


RETRY = (
    # producer/internals/Sender.java, completeBatch, branch canRetry; 0.8.2 to 4.4. A message
    # follows since 2.8: ". Error Message: ..."
    #   [Producer clientId=p1] Got error produce response with correlation id 41 on topic-partition
    #   orders-3, retrying (2147483646 attempts left). Error: NOT_ENOUGH_REPLICAS
    # and, when the batch was too large (0.11 to 4.4; "in", and a number that does not count it):
    #   Got error produce response in correlation id 77 on topic-partition events-5, splitting and
    #   retrying (2147483647 attempts left). Error: MESSAGE_TOO_LARGE
    # kafka-python, producer/sender.py: no correlation id, and
    #   on topic-partition TopicPartition(topic='orders', partition=3), retrying (4 attempts left).
    #   Error: <class 'kafka.errors.NotLeaderForPartitionError'>
    # aiokafka, producer/sender.py: the same without "(4 attempts left)"
    pattern(
        "Got error produce response",
        r"Got error produce response(?: (?:with|in) correlation id (?P<correlation_id>"
        + _N
        + r"))?"
        r" (?:.{0,80}? ?on topic-partition |(?:\.\.\.|…) )?"
        r"(?P<tp>TopicPartition\([^()]{1,300}\)|\[[^\]]{1,260}\]|\S{1,320}?), "
        r"(?P<split>splitting and )?retrying(?: \((?P<attempts_left>" + _N + r") attempts? left\)|"
        r"(?=\. Error: ))(?:\.? Error: (?P<error>"
        + _ERROR
        + r")(?:\.? Error Message: (?P<message>.{0,2000}))?)?",
        "retry",
        "produce_retry",
        _retry,
        words=("produce response", "attempts left"),
        sure=True,
        example="[Producer clientId=p1] Got error produce response with correlation id 41 on "
        "topic-partition orders-3, retrying (2147483646 attempts left). Error: NOT_ENOUGH_REPLICAS",
        continues=(
            r"(?:Error:|Error Message:|(?:on )?topic-partition|splitting and|with correlation)\s",
            r"retrying \(\d",
        ),
        opens=("Got error produce response",),
        alone="Got error produce response",
        stock=Stock(
            r"Got error produce response with correlation id (?P<correlation_id>[0-9]+) on "
            rf"topic-partition {_PLACE}, retrying \((?P<attempts_left>[0-9]+) attempts left\)\. "
            r"Error: (?P<error>[A-Z_]+)(?:\. Error Message: (?P<message>[^\n()]+))?",
            SENDER,
        ),
    ),
    # The same line, cut at its front by whoever quoted it:
    #   ... retrying (2147483630 attempts left). Error: NOT_ENOUGH_REPLICAS
    pattern(
        "retrying (",
        r"(?P<split>(?!))?retrying \((?P<attempts_left>-?\d{1,18}) attempts? left\)\."
        r" Error: (?P<error>[A-Z][A-Z_]{2,60})\b",
        "retry",
        "produce_retry_cut",
        lambda fields, found, text: _cut(fields, found, text) and _name_error(fields, found),
        words=("attempts left",),
    ),
    # And a person's summary of it:  Got error produce response: NOT_LEADER_OR_FOLLOWER
    # aiokafka, producer/sender.py: Got error produce response: NodeNotReadyError: ...
    pattern(
        "Got error produce response: ",
        r"Got error produce response: (?P<error>[A-Z][A-Z_]{4,60}\b|[A-Z]\w{1,60}Error\b)",
        "retry",
        "produce_retry_summary",
        words=("produce response",),
    ),
)


def _cut(fields: Fields, found: re.Match[str], text: str) -> bool:
    if look_up(found["error"]) is None:  # another program that tries again
        return False
    if text[: found.start()].endswith("splitting and "):
        fields["kind"], fields["detail"] = "split_retry", "produce_split_retry_cut"
    return True


METADATA = (
    # producer/internals/Sender.java; 0.10.1 to 2.0 "topic/partition", 2.1 to 4.4 "topic-partition".
    #   Received unknown topic or partition error in produce request on partition orders-0. The
    #   topic-partition may not exist or the user may not have Describe access to it
    pattern(
        "Received unknown topic or partition error in produce request",
        r"Received unknown topic or partition error in produce request on (?:topic-)?partition "
        r"(?P<tp>TopicPartition\([^()]{1,300}\)|\[[^\]]{1,260}\]|\S{1,320}?)"
        r"(?:\.? The |\.?\s|\.?\Z)",
        "invalid_metadata",
        "unknown_topic",
        _unknown_topic,
        words=("roduce request",),
        sure=True,
        example="Received unknown topic or partition error in produce request on partition "
        "orders-0. The topic-partition may not exist or the user may not have Describe access "
        "to it",
        alone="Received unknown topic",
    ),
    # producer/internals/Sender.java; 2.0 to 3.7 with a full stop before "Going", later without.
    #   Received invalid metadata error in produce request on partition orders-1 due to
    #   org.apache.kafka.common.errors.NetworkException: Disconnected from node 2. Going to request
    #   metadata update now
    pattern(
        "Received invalid metadata error in produce request",
        r"Received invalid metadata error in produce request(?: on (?:topic-)?partition "
        r"(?P<tp>TopicPartition\([^()]{1,300}\)|\[[^\]]{1,260}\]|\S{1,320}?) due to "
        r"(?P<error>[\w.$]{1,200}|<class '[\w.]{1,100}'>)"
        r"(?:: (?P<message>.{0,1000}?))?(?:\.? Going to request metadata|\Z))?",
        "invalid_metadata",
        "invalid_metadata",
        lambda fields, found, _: _name_error(fields, found),
        words=("roduce request",),
        sure=True,
        example="Received invalid metadata error in produce request on partition orders-1 due to "
        "org.apache.kafka.common.errors.NetworkException: Disconnected from node 2. Going to "
        "request metadata update now",
        continues=(r"Going to request\s",),
        alone="Received invalid metadata",
        stock=Stock(
            rf"Received invalid metadata error in produce request on partition {_PLACE} due to "
            r"org\.apache\.kafka\.common\.errors\.(?P<error>[A-Za-z]+): "
            r"(?P<message>[^\n()]*?[^\n().])\.? Going to request metadata update now",
            SENDER,
        ),
    ),
)

SEQUENCE = (
    # producer/internals/TransactionManager.java, 2.3 to 4.4, not transactional:
    #   The broker returned org.apache.kafka.common.errors.OutOfOrderSequenceException: The broker
    #   received an out of order sequence number. for topic-partition orders-2 with producerId 4001,
    #   epoch 0, and sequence number 118
    # producer/internals/Sender.java, 0.11 to 2.2:
    #   ... for topic-partition orders-2 at offset -1. This indicates data loss on the broker, ...
    pattern(
        "The broker returned ",
        r"The broker returned (?P<error>[\w.$]{1,200})(?:: (?P<message>.{0,600}?))? for "
        r"topic-partition (?P<tp>\S{1,320}?) (?:with producerId|at offset (?P<offset>-?\d{1,18}))",
        "fatal_sequence",
        "out_of_order_sequence",
        lambda fields, found, _: _name_error(fields, found),
        words=("The broker returned",),
        sure=("The broker returned org.",),
        example="The broker returned "
        "org.apache.kafka.common.errors.OutOfOrderSequenceException: The broker received an out "
        "of order sequence number. for topic-partition orders-2 with producerId 4001, epoch 0, "
        "and sequence number 118",
    ),
    # kafka-python, producer/sender.py:
    #   The broker received an out of order sequence number for topic-partition
    #   TopicPartition(topic='orders', partition=2) at offset -1. This indicates data loss on ...
    pattern(
        "The broker received an out of order sequence number for topic-partition ",
        r"The broker received an out of order sequence number for topic-partition "
        r"(?P<tp>TopicPartition\([^()]{1,300}\)|\S{1,320}) at offset (?P<offset>-?\d{1,18})",
        "fatal_sequence",
        "out_of_order_sequence",
        words=("out of order sequence",),
        sure=True,
        example="The broker received an out of order sequence number for topic-partition "
        "TopicPartition(topic='orders', partition=2) at offset -1. This indicates data loss",
    ),
    # producer/internals/TransactionManager.java; 1.0 to 2.4 "reset producer state", later "bump".
    #   No inflight batches remaining for orders-2, last ack'd sequence for partition is 117, next
    #   sequence is 130. Going to bump epoch and reset sequence numbers.
    pattern(
        "No inflight batches remaining for ",
        r"No inflight batches remaining for (?P<tp>TopicPartition\([^()]{1,300}\)|\S{1,320}?), "
        r"last ack'd sequence for partition is (?P<last>\S{1,20}), "
        r"next sequence is (?P<following>\S{1,20}?)\. Going to",
        "sequence_reset",
        "epoch_bump",
        _sequence_reset,
        words=("inflight batches",),
        sure=True,
        example="No inflight batches remaining for orders-2, last ack'd sequence for partition is "
        "117, next sequence is 130. Going to bump epoch and reset sequence numbers.",
    ),
)

CLOSING = (
    # producer/KafkaProducer.java, 0.9 to 4.4: the only trace of records dropped at close().
    #   Proceeding to force close the producer since pending requests could not be completed within
    #   timeout 5000 ms.
    pattern(
        "Proceeding to force close the producer",
        r"Proceeding to force close the producer since pending requests could not be completed"
        r"(?: within timeout (?P<elapsed_ms>\d{1,19}|\S{1,20}) ms)?",
        "dropped_at_close",
        "force_close",
        words=("force close",),
        sure=True,
        example="Proceeding to force close the producer since pending requests could not be "
        "completed within timeout 5000 ms.",
    ),
    # producer/internals/ProducerBatch.java, DEBUG, 2.1 to 4.4: stored although reported as failed.
    #   ProduceResponse returned SUCCEEDED for orders-3 after batch with base offset 88231 had
    #   already been FAILED.
    pattern(
        "ProduceResponse returned ",
        r"ProduceResponse returned SUCCEEDED for (?P<tp>\S{1,320}) after batch with base offset "
        r"(?P<offset>-?\d{1,18}) had already been \w{1,20}",
        "late_success",
        "late_success",
        words=("ProduceResponse returned",),
        sure=("ProduceResponse returned SUCCEEDED",),
        example="ProduceResponse returned SUCCEEDED for orders-3 after batch with base offset "
        "88231 had already been FAILED.",
    ),
    # producer/internals/RecordAccumulator.java, DEBUG, 1.0 to 4.4:
    #   Reordered incoming batch with sequence 130 for partition orders-2. It was placed in the ...
    pattern(
        "Reordered incoming batch",
        r"Reordered incoming batch with sequence -?\d{1,18} for partition (?P<tp>\S{1,320}?)\. It",
        "reordered",
        "reordered",
    ),
)
