"""What the Java producer prints. Sources: Apache Kafka, clients/src/main/java/org/apache/kafka.

Each pattern stands beside the line it reads. `N attempts left` is what remains after the retry
being announced; when none remain, nothing is printed at all.
"""

from __future__ import annotations

import re

from pipelines.reading.errors import look_up
from pipelines.reading.failures import wrapped_by
from pipelines.reading.layout import without_logger
from pipelines.reading.pattern import Fields, Pattern, integer, pattern

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


def _expired(fields: Fields, found: re.Match[str], text: str) -> bool:
    named = "imeoutException" in text
    fields["error"] = "TimeoutException" if named else wrapped_by(text, found.start())
    return True


def _expired_cut(fields: Fields, found: re.Match[str], text: str) -> bool:
    told = any(w in text for w in ("TimeoutException", "batch creation", " due to timeout"))
    return _expired(fields, found, text) and (told or found["tp"] is not None)


def _expired_python(fields: Fields, found: re.Match[str], text: str) -> bool:
    if "KafkaTimeoutError" in text:
        fields["error"] = "KafkaTimeoutError"
    seconds = found["seconds"]
    if seconds is not None:
        fields["elapsed_ms"] = round(float(seconds) * 1000)
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
    ),
    # And a person's summary of it:  Got error produce response: NOT_LEADER_OR_FOLLOWER
    # aiokafka, producer/sender.py: Got error produce response: NodeNotReadyError: ...
    pattern(
        "Got error produce response: ",
        r"Got error produce response: (?P<error>[A-Z][A-Z_]{4,60}\b|[A-Z]\w{1,60}Error\b)",
        "retry",
        "produce_retry_summary",
    ),
)


def _cut(fields: Fields, found: re.Match[str], text: str) -> bool:
    if look_up(found["error"]) is None:  # another program that tries again
        return False
    if text[: found.start()].endswith("splitting and "):
        fields["kind"], fields["detail"] = "split_retry", "produce_split_retry_cut"
    return True


EXPIRED = (
    # producer/internals/Sender.java and RecordAccumulator/ProducerBatch.java: text of the
    # TimeoutException that callbacks get; the client itself prints nothing.
    #   2.1 to 4.2: Expiring 12 record(s) for orders-3:120004 ms has passed since batch creation
    #   4.3: the same, and ". The request has not been sent, or no server response has been ..."
    #   0.10.2 to 2.0: Expiring 1 record(s) for orders-3: 30042 ms has passed since last append
    #   0.10.1: Expiring 3 record(s) for orders-3 due to 30042 ms has passed since last append
    pattern(
        "Expiring ",
        r"Expiring (?P<records>\d{1,18}|\S{1,20}) record\(s\) for "
        r"(?P<tp>[^:]{1,320}?|[\w-]{22}:[^:]{1,300}?)(?::| due to) ?"
        r"(?P<elapsed_ms>\d{1,18}|[^\s:]{1,20}) ?ms has passed since",
        "expired",
        "batch_expired",
        _expired,
    ),
    # The same, cut by whoever quoted it: Expiring 3 record(s) for orders-0
    pattern(
        "Expiring ",
        r"Expiring (?P<records>\d{1,18}|[A-Zn]) record\(s\)(?: for (?P<tp>[\w.-]{1,249}-\d{1,9})\b|"
        r"(?= ?(?:\.\.\.|…|\Z|['\"`)]| due to timeout)))",
        "expired",
        "batch_expired_cut",
        _expired_cut,
    ),
    # 0.10.0: Batch containing 3 record(s) expired due to timeout while requesting metadata from
    #         brokers for orders-3
    pattern(
        "Batch containing ",
        r"Batch containing (?P<records>\d{1,18}) record\(s\) expired due to timeout while "
        r"requesting metadata from brokers for (?P<tp>\S{1,320})",
        "expired",
        "batch_expired_0_10_0",
        _expired,
        sure=True,
    ),
    # kafka-python 1.x left its text unformatted: ('Batch containing %s record(s) expired due to
    # timeout while requesting metadata from brokers for %s', 49, TopicPartition(topic='o', ...))
    pattern(
        "Batch containing %s",
        r"Batch containing %s record\(s\) expired .{0,100}?', (?P<records>\d{1,18}), "
        r"(?P<tp>TopicPartition\([^()]{1,300}\))(?P<seconds>(?!))?",
        "expired",
        "batch_expired_python",
        _expired_python,
    ),
    # 0.9: org.apache.kafka.common.errors.TimeoutException: Batch Expired
    pattern(
        "TimeoutException: Batch Expired",
        r"TimeoutException: Batch Expired",
        "expired",
        "batch_expired_0_9",
        _expired,
    ),
    #   and in the words of the console producer, producer/internals/ErrorLoggingCallback.java:
    #   Error when sending message to topic orders with key: null, value: 6 bytes with error: Batch
    #   Expired
    pattern(
        "Error when sending message to topic ",
        r"Error when sending message to topic (?P<topic>\S{1,249}) with key: .{0,400}? with error: "
        r"Batch Expired",
        "expired",
        "batch_expired_0_9",
        _expired,
    ),
    # kafka-python, producer/record_accumulator.py:
    #   KafkaTimeoutError: Batch for TopicPartition(topic='sales', partition=0) containing 19
    #   record(s) expired: 30.01 seconds have passed since batch creation plus linger time
    pattern(
        "Batch for ",
        r"Batch for (?P<tp>TopicPartition\([^()]{1,300}\)) containing "
        r"(?P<records>\d{1,18}|\S{1,20}) record\(s\)(?: expired)?"
        r"(?::? ?(?P<seconds>\d{1,9}(?:\.\d{1,9})?) seconds have passed)?",
        "expired",
        "batch_expired_python",
        _expired_python,
    ),
    #   cut by whoever quoted it: KafkaTimeoutError: Batch ... containing 8 record(s)
    pattern(
        "KafkaTimeoutError: Batch ",
        r"(?P<error>KafkaTimeoutError): Batch (?:\.\.\.|…) (?:containing (?P<records>\d{1,18}) "
        r"record\(s\)|expired)(?P<seconds>(?!))?",
        "expired",
        "batch_expired_python",
        _expired_python,
    ),
)

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
        sure=True,
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
        sure=True,
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
        sure=True,
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
        sure=True,
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

PATTERNS: tuple[Pattern, ...] = (*RETRY, *EXPIRED, *METADATA, *SEQUENCE, *CLOSING)
