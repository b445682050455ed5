"""What applications print of a failed send in their own words."""
# ruff: noqa: E501 - the lines of the tables are log lines.

from __future__ import annotations

import pytest

from acktrail.logs.event import BACKGROUND, Event
from acktrail.logs.patterns import PATTERNS
from acktrail.logs.reader import read_record
from acktrail.logs.records import join_records
from tests.unit.logs.test_quoted_lines import test_a_quoted_line_is_read as is_read

REFUSED = "org.apache.kafka.common.errors.NotEnoughReplicasException: Messages are rejected since there are fewer in-sync replicas than required."

CASES = [
    # librdkafka, retold or cut
    (
        "a head without its time",
        "|FAIL|till#producer-2| [thrd:b1:9092/bootstrap]: b1:9092/bootstrap: Connect to ipv4#10.0.0.1:9092 failed: Connection refused (after 7ms in state CONNECT)",
        {"kind": "connection_failure", "client_id": "till#producer-2", "error": "FAIL", "elapsed_ms": 7, "level": None},
    ),
    (
        "a head glued to a word, its time masked",
        "seen:%3|<time>|FAIL|till#producer-1| [thrd:b1:9092/1]: b1:9092/1: Receive failed: Disconnected",
        {"kind": "connection_failure", "client_id": "till#producer-1", "level": "ERROR", "ts": None},
    ),
    (
        ".NET, level in brackets",
        "till#producer-3 - FAIL (3) - [thrd:b1:9092/bootstrap]: b1:9092/bootstrap: Connect to ipv4#10.0.0.1:9092 failed: Unknown error (after 2104ms in state CONNECT)",
        {"kind": "connection_failure", "client_id": "till#producer-3", "error": "FAIL", "elapsed_ms": 2104},
    ),
    (
        ".NET, fields behind the message",
        "info: log: message=[thrd:b1:9092/2]: b1:9092/2: Connect to ipv6#[::1]:9092 failed: Connection refused (after 0ms in state CONNECT), name=till#producer-3, facility=FAIL, level=Error",
        {"kind": "connection_failure", "client_id": "till#producer-3", "error": "FAIL", "node": 2},
    ),
    (
        "the words alone",
        "[conn] [error] b1:9092/bootstrap: Connect to ipv4#10.0.0.1:9092 failed: Unknown error (after 2047ms in state CONNECT)",
        {"kind": "connection_failure", "level": "ERROR", "error": None, "elapsed_ms": 2047},
    ),
    (
        "a fatal error in the error callback's words",
        "%3|1769842800.285|ERROR|till#producer-1| [thrd:app]: till#producer-1: Fatal error: Broker: Broker received an out of order sequence number: ProduceRequest for rates [38] with 4 message(s) failed due to sequence desynchronization with broker 1",
        {"kind": "fatal_sequence", "topic": "rates", "partition": 38, "records": 4, "error": "Broker received an out of order sequence number"},
    ),
    (
        "closed with messages, the bytes left out",
        "Producer terminating with 12 messages: use flush() to wait for outstanding message delivery",
        {"kind": "dropped_at_close", "records": 12},
    ),
    (
        "an error callback",
        "ERROR librdkafka: Global error: BrokerTransportFailure (Local: Broker transport failure): b1:9092/1: Failed to create socket: Too many open files (after 3ms in state CONNECT)",
        {"kind": "connection_failure", "error": "Broker transport failure", "elapsed_ms": 3, "level": "ERROR"},
    ),
    (
        "a message given up for want of a broker",
        "Failed to deliver message: Local: Broker transport failure",
        {"kind": "send_failed", "error": "Broker transport failure"},
    ),
    (
        "rsyslog names the topic",
        "omkafka: Failed to produce to topic 'rates' partition -1: Local: Unknown topic [v8.2206.0]",
        {"kind": "send_failed", "topic": "rates", "partition": None, "error": "Unknown topic"},
    ),
    (
        "topic and partition behind the error",
        "[ERROR] Message delivery failed error='KafkaError{code=_MSG_TIMED_OUT,val=-192,str=\"Local: Message timed out\"}' topic=rates, partition=3",
        {"kind": "expired", "topic": "rates", "partition": 3, "error": "_MSG_TIMED_OUT", "level": "ERROR"},
    ),
    (
        "an unknown topic is no topic called or",
        "Failed to send message: Broker: Unknown topic or partition",
        {"kind": "send_failed", "topic": None, "error": "Unknown topic or partition"},
    ),
    (
        ".NET, what caused it behind an arrow",
        "Confluent.Kafka.ProduceException`2[System.String,Rate]: Local: Value serialization error ---> Avro.AvroException: no such field",
        {"kind": "send_failed", "error": "Value serialization error"},
    ),
    # The Java producer's, in applications
    (
        "an exception behind a level",
        "ERROR org.apache.kafka.common.errors.TopicAuthorizationException: Not authorized to access topics: [rates]",
        {"kind": "send_failed", "topic": "rates", "error": "TopicAuthorizationException", "level": "ERROR"},
    ),
    (
        "Spring, the cause not printed",
        "2026-03-06T12:52:47.683+05:30 ERROR 411 --- [o-auto-1-exec-1] c.a.RatesController : org.springframework.kafka.core.KafkaProducerException: Failed to send",
        {"kind": "send_failed", "error": "KafkaProducerException", "ts": "2026-03-06T12:52:47.683+05:30"},
    ),
    (
        "Spring's template",
        "DEBUG o.s.k.c.KafkaTemplate : Failed to send: ProducerRecord(topic=rates, partition=null, headers=RecordHeaders(headers = [], isReadOnly = true), key=a)",
        {"kind": "send_failed", "topic": "rates", "partition": None, "level": "DEBUG"},
    ),
    (
        "SmallRye",
        "10:01:32 ERROR [io.sm.re.me.kafka] (vert.x-eventloop-thread-6) SRMSG18206: Unable to write to Kafka from channel out (topic: rates)",
        {"kind": "send_failed", "topic": "rates", "level": "ERROR"},
    ),
    (
        "Flink's own exception around an expiry",
        "org.apache.flink.streaming.connectors.kafka.FlinkKafkaException: Failed to send data to Kafka: Expiring 31 record(s) for rates-7: 31000 ms has passed since last append",
        {"kind": "expired", "error": "FlinkKafkaException", "records": 31, "topic": "rates", "partition": 7},
    ),
    (
        "an exception without its package",
        "NotLeaderForPartitionException: This server is not the leader for that topic-partition.",
        {"kind": "send_failed", "error": "NotLeaderForPartitionException"},
    ),
    (
        "a full-width colon",
        "异常：NotEnoughReplicasException：Messages are rejected since there are fewer in-sync replicas than required.",
        {"kind": "send_failed", "error": "NotEnoughReplicasException"},
    ),
    (
        "a topic in quotes",
        "org.apache.kafka.common.errors.TimeoutException: Topic 'rates' not present in metadata after 60000 ms",
        {"kind": "send_failed", "topic": "rates", "elapsed_ms": 60000},
    ),
    (
        "a broker's words name the partition",
        "org.apache.kafka.common.errors.UnknownProducerIdException: Found no record of producerId=7 on the broker at offset 36in partition rates-2. It is possible that",
        {"kind": "fatal_sequence", "topic": "rates", "partition": 2},
    ),
    (
        "an expiry, its topic masked",
        "TimeoutException: Expiring 3 record(s) for {topic}-{partition}:120001 ms has passed since batch creation",
        {"kind": "expired", "topic": None, "records": 3, "elapsed_ms": 120001},
    ),
    (
        "an expiry, wrapped between two words",
        "TimeoutException: Expiring 3 record(s) for rates-0:120000 ms has\npassed since batch creation",
        {"kind": "expired", "records": 3, "elapsed_ms": 120000},
    ),
    (
        "an expiry, cut behind the partition",
        "ERROR Expiring 12 record(s) for rates-0",
        {"kind": "expired", "records": 12, "topic": "rates", "partition": 0, "level": "ERROR"},
    ),
    ("batches dropped", "[Producer clientId=till] Aborting producer batches due to fatal error", {"kind": "send_failed", "client_id": "till", "detail": "fatal_abort"}),
    # Brokers
    (
        "a cut, its reason left out",
        "[ReplicaFetcher replicaId=1, leaderId=2] Truncating partition rates-4 with TruncationState(offset=100, completed=true)",
        {"kind": "truncation", "topic": "rates", "partition": 4, "offset": 100, "broker": 1},
    ),
    (
        "a shrink, the partition behind it",
        "[WARN] Shrinking ISR from 3,2 to 2 for partition rates-3",
        {"kind": "isr_shrink", "topic": "rates", "partition": 3},
    ),
    (
        "acks=0, no blank behind the colon",
        "[2026-01-31 07:00:17,005] INFO [KafkaApi-2] Closing connection due to error during produce request with correlation id 11 from client id till with ack=0\nTopic and partition to exceptions:rates-30 -> org.apache.kafka.common.errors.RecordTooLargeException (kafka.server.KafkaApis)",
        {"kind": "acks0_close", "topic": "rates", "partition": 30, "error": "RecordTooLargeException", "client_id": "till"},
    ),
    (
        "a refused request of 0.8.2",
        "[2015-01-31 07:00:05,094] ERROR [KafkaApi-0] Error processing ProducerRequest with correlation id 61 from client till on partition [rates,0] (kafka.server.KafkaApis)\nkafka.common.MessageSizeTooLargeException: Message size is 2000000 bytes",
        {"kind": "broker_append_error", "topic": "rates", "partition": 0, "correlation_id": 61, "client_id": "till", "error": "MessageSizeTooLargeException"},
    ),
    (
        "a broker that stops",
        "[2015-01-31 07:00:05,094] FATAL [Replica Manager on Broker 1]: Halting due to unrecoverable I/O error while handling produce request:  (kafka.server.ReplicaManager)\nkafka.common.KafkaStorageException: I/O exception in append to log 'rates-32'",
        {"kind": "broker_append_error", "broker": 1, "error": "KafkaStorageException", "level": "FATAL"},
    ),
    (
        "a reset of 0.8",
        "WARN [ReplicaFetcherThread-0-2], Replica 1 for partition [rates,0] reset its fetch offset from 1021 to current leader 2's latest offset 987",
        {"kind": "truncation", "topic": "rates", "partition": 0, "offset": 987, "leader": 2, "broker": 1},
    ),
    (
        "a sentence's end is no part of a topic",
        "ERROR Error sending record to topic rates. No more offsets will be recorded for this task\norg.apache.kafka.common.errors.NetworkException: The server disconnected before a response was received.",
        {"kind": "send_failed", "topic": "rates", "error": "NetworkException"},
    ),
    (
        "who speaks, and the words on the next line",
        "[2026-01-31 07:00:00,000] WARN [Producer clientId=till]\nGot error produce response with correlation id 6 on topic-partition rates-0,\nretrying (2147483646 attempts left). Error: NOT_LEADER_OR_FOLLOWER",
        {"kind": "retry", "client_id": "till", "topic": "rates", "correlation_id": 6, "level": "WARN"},
    ),
    # Other clients
    (
        "franz-go, in an application's words",
        "unable to produce record: UNKNOWN_TOPIC_OR_PARTITION: This server does not host this topic-partition.",
        {"kind": "send_failed", "error": "UNKNOWN_TOPIC_OR_PARTITION"},
    ),
    (
        "franz-go, topic and error beside the message",
        '{"level":"info","ts":1769842800.019,"msg":"batch in a produce request failed","broker":"2","topic":"rates","partition":4,"err":"INVALID_RECORD: This record has failed the validation"}',
        {"kind": "send_failed", "topic": "rates", "partition": 4, "error": "INVALID_RECORD", "level": "INFO"},
    ),
    (
        "a topic beside the message",
        '{"level":"error","msg":"failed to publish message to topic","topic":"rates","error":"context deadline exceeded"}',
        {"kind": "send_failed", "topic": "rates", "level": "ERROR"},
    ),
    (
        "node-rdkafka's object",
        '{"severity":3,"fac":"FAIL","message":"[thrd:b1:9092/1]: b1:9092/1: Connect to ipv4#10.0.0.1:9092 failed: Connection refused (after 4ms in state CONNECT)"}',
        {"kind": "connection_failure", "error": "FAIL", "elapsed_ms": 4},
    ),
    (
        ".NET, frames behind the words",
        "Confluent.Kafka.ProduceException`2[System.String,System.String]: Local: Unknown topic\n   at Confluent.Kafka.Producer`2.ProduceAsync(String topic)",
        {"kind": "send_failed", "error": "Unknown topic"},
    ),
    (
        "kafka-python, a future",
        "kafka.errors.KafkaTimeoutError: KafkaTimeoutError: Timeout after waiting for 10 secs.",
        {"kind": "send_failed", "error": "KafkaTimeoutError", "elapsed_ms": 10_000},
    ),
    (
        "kafka-python, a numbered error",
        "WARNING could not send: [Error 7] RequestTimedOutError: Request timed out after 30000 ms",
        {"kind": "send_failed", "error": "RequestTimedOutError", "level": "WARNING"},
    ),
    (
        "kafka-python, a producer's connection",
        "2026-01-31 07:00:57,931 ERROR connect() <BrokerConnection client_id=till-producer, node_id=0 host=b1:9092 <connecting> [IPv4 ('10.0.0.1', 9092)]>: Connect attempt returned error 111. Disconnecting.",
        {"kind": "connection_failure", "client_id": "till-producer", "level": "ERROR"},
    ),
    (
        "sarama, in an application's words",
        "2026-01-31T07:00:21Z E! cannot send to output [kafka]: kafka server: In the middle of a leadership election, there is currently no leader for this partition",
        {"kind": "send_failed", "error": "LEADER_NOT_AVAILABLE", "level": "ERROR"},
    ),
    (
        "sarama, its front cut",
        "state change to [retrying] on rates/11 because kafka server: Request exceeded the user-specified time limit in the request",
        {"kind": "retry", "topic": "rates", "partition": 11, "error": "REQUEST_TIMED_OUT"},
    ),
    (
        "kafka-go, a number",
        "2026/01/31 07:00:46 failed to produce: [3] Unknown Topic Or Partition: the request is for a topic or partition that does not exist on this broker",
        {"kind": "send_failed", "error": "UNKNOWN_TOPIC_OR_PARTITION"},
    ),
    (
        "kafka-go, the call",
        'kafka.(*Client).Produce: fetch request error: topic partition has no leader (topic="rates" partition=2)',
        {"kind": "send_failed", "topic": "rates", "partition": 2},
    ),
    (
        "the error beside the message",
        '{"level":"error","ts":"2026-05-01T10:11:12.345Z","msg":"cannot publish","error":"kafka: Failed to produce message to topic rates: kafka server: Message was too large, server rejected it"}',
        {"kind": "send_failed", "topic": "rates", "error": "MESSAGE_TOO_LARGE", "level": "ERROR", "ts": "2026-05-01T10:11:12.345Z"},
    ),
    (
        "logrus",
        "ERRO[0031] write: kafka: Failed to deliver 21 messages.",
        {"kind": "send_failed", "records": 21, "level": "ERROR"},
    ),
    (
        "zap",
        "2026-01-31T07:00:13.451Z\twarn\tx.go:1\tproducer/broker/1 state change to [retrying] on rates/11 because EOF",
        {"kind": "retry", "level": "WARN", "topic": "rates"},
    ),
    (
        "Beats drop a message",
        "2026-01-31T07:00:45.322+0800\tERROR\tkafka/client.go:233\tKafka (topic=rates): dropping too large message of size 31.",
        {"kind": "send_failed", "topic": "rates", "level": "ERROR"},
    ),
    (
        "ruby-kafka tries again",
        "2026-01-31 07:00:21 +0000 [warn]: #0 Failed to send all messages; attempting retry 1 of 3 after 1s",
        {"kind": "retry", "level": "WARN"},
    ),
    (
        "kafkajs, a request timed out",
        "publish failed KafkaJSRequestTimeoutError: Request Produce(key: 0, version: 7) timed out",
        {"kind": "send_failed", "error": "KafkaJSRequestTimeoutError"},
    ),
    (
        "kafkajs, spread out",
        '{\n  "level": "ERROR",\n  "timestamp": "2026-01-01T00:00:00.000Z",\n  "message": "[Producer] Failed to send messages: The request timed out",\n  "clientId": "till",\n  "retryTime": 113\n}',
        {"kind": "retry", "level": "ERROR", "client_id": "till", "error": "REQUEST_TIMED_OUT", "ts": "2026-01-01T00:00:00.000Z"},
    ),
    (
        "kafkajs, a logger's own level",
        '[Nest] 1  - 01/27/2026, 3:08:00 PM   ERROR [ClientKafka] ERROR [Connection] Connection error: connect ECONNREFUSED ::1:9092 {"timestamp":"2026-01-27T14:08:00.064Z","logger":"kafkajs","clientId":"till"}',
        {"kind": "connection_failure", "level": "ERROR", "client_id": "till", "error": "ECONNREFUSED"},
    ),
]  # fmt: skip

OTHERS = [
    ("librdkafka asks for a producer id", "GETPID [till#producer-1] [thrd:main]: Failed to acquire idempotence PID from broker b1:9092/1: Broker: Coordinator load in progress: retrying"),
    ("librdkafka, a leader unavailable", "OnLog: till#producer-1,7,LEADERUA,[thrd:b1:9093/101]: rates [16]: leader unavailable: produce: Broker: Unknown topic or partition"),
    ("librdkafka, a fetch", "REQTMOUT  [thrd:b1:9092/1]: Timed out FetchRequest in flight (after 31000ms)"),
    ("librdkafka, a coordinator", "ERROR librdkafka: FAIL [thrd:GroupCoordinator]: GroupCoordinator: b1:9092: Disconnected (after 3ms in state UP)"),
    ("an admin client waits", "Caused by: org.apache.kafka.common.errors.TimeoutException: Timed out waiting to send the call."),
    ("an admin client without its id", "[AdminClient] Node 3 disconnected. (org.apache.kafka.clients.NetworkClient:937)"),
    ("a commit", "org.apache.kafka.common.errors.TimeoutException: Timeout of 60000ms expired before successfully committing offsets {rates-0=OffsetAndMetadata{offset=5}}"),
    ("a fetch's metadata", "org.apache.kafka.common.errors.DisconnectException: Cancelled fetchMetadata request with correlation id 11 due to node 1 being disconnected"),
    ("a schema registry", "INFO [Schema registry clientId=sr-1, groupId=schema-registry] Cancelled in-flight HEARTBEAT request with correlation id 44 due to node 2147483645 being disconnected (elapsed time since creation: 9000ms)"),
    ("a broker's housekeeping", "ERROR Uncaught exception in scheduled task 'kafka-log-retention' (kafka.utils.KafkaScheduler)\norg.apache.kafka.common.errors.KafkaStorageException: Error while deleting segments for rates-0 in dir /k"),
    ("a magic byte", "org.apache.kafka.common.errors.SerializationException: Unknown magic byte!"),
    ("another broker's topic", "Failed to publish message to topic sensors/temp: not connected"),
    ("a Python consumer", "consumer stopped: [Error 7] RequestTimedOutError: fetch failed"),
    ("a Python consumer's traceback", "Traceback (most recent call last):\n  File \"a.py\", line 12, in <module>\n    consumer = KafkaConsumer(\n  File \"kafka/consumer/group.py\", line 356, in __init__\nkafka.errors.NoBrokersAvailable: NoBrokersAvailable"),
    ("a Python group", "ERROR Error sending JoinGroupRequest_v0 to node 3 [[Error 7] RequestTimedOutError: Request timed out after 30500 ms]"),
    ("anybody's state", "java.lang.IllegalStateException: Message will not be sent because the session has been closed"),
    ("Pulsar", "org.apache.pulsar.client.api.PulsarClientException$TimeoutException: The producer p-1 can not send message to the topic persistent://a/b within given timeout"),
    ("another's exception of that name", "NetworkException: Failed to connect to https://example.org/send"),
    ("RocketMQ", "Failed to send message to topic TopicTest: org.apache.rocketmq.client.exception.MQClientException: No route info"),
    ("a monitor", '{"level":"warn","ts":"2026-01-31T07:00:03.569Z","msg":"unable to open connection to broker","source":"kafka_client","addr":"b1:9092","err":"dial tcp: i/o timeout"}'),
    ("an exporter", "F0131 07:00:00.123456 1 kafka_exporter.go:12] Error Init Kafka Client: kafka: client has run out of available brokers to talk to (Is your cluster reachable?)"),
    ("ClickHouse's engine", "<Error> StorageKafka (db.events): [rdk:FAIL] [thrd:b1:9092/bootstrap]: b1:9092/bootstrap: Connect to ipv4#10.0.0.1:9092 failed: Connection refused (after 0ms in state CONNECT)"),
    ("a topic command", "[2026-01-01 00:00:00,000] ERROR org.apache.kafka.common.errors.UnknownTopicOrPartitionException: This server does not host this topic-partition.\n (kafka.admin.TopicCommand$)"),
    ("a follower, its thread cut", "Error for partition [rates,3] to broker 0:org.apache.kafka.common.errors.NotLeaderForPartitionException: This server is not the leader for that topic-partition"),
    ("a transaction manager", "[AddPartitionsToTxnManager broker=1]Connection to node 2 (b2/10.0.0.2:9092) could not be established. Node may not be available."),
    ("a controller's channel", "WARN [broker-1-to-controller-forwarding-channel-manager]: Connection to node 1 (c1/10.0.0.1:9093) could not be established. Node may not be available."),
    ("a table of tests", "1|FAIL|test_login|AssertionError"),
    ("a mail server", "Failed to deliver 12 messages due to greylisting"),
    ("credentials", "INFO [Principal=:till]: Expiring credential re-login thread started."),
    ("another's attempts", "WARN connection refused, retrying (attempt 2/5)"),
]  # fmt: skip


def seen(text: str) -> list[object]:
    """What is read of *text* as a log."""
    records = join_records(text.encode().splitlines(keepends=True))
    read = (read_record(record.text.decode()) for record in records)
    return [
        e for e in read if e is not None and not (isinstance(e, Event) and e.kind in BACKGROUND)
    ]


@pytest.mark.parametrize(("case", "text", "expected"), CASES, ids=[c[0] for c in CASES])
def test_it_is_read(case, text, expected):
    is_read(case, text, expected)


@pytest.mark.parametrize(("case", "text"), OTHERS, ids=[c[0] for c in OTHERS])
def test_what_no_producer_says_is_nothing(case, text):
    assert seen(text) == []


@pytest.mark.parametrize("marker", [words for p in PATTERNS for words in p.sure])
def test_words_that_only_kafka_says_are_never_passed_over(marker):
    assert read_record(f"[2026-01-31 07:00:00,000] WARN {marker}¤ ¤ ¤") is not None


@pytest.mark.parametrize("client_id", ["{0}", "log.info(x)", "it('a')", "a = 'b'", "#{x}", "x!('y"])
def test_a_client_may_be_called_like_a_program(client_id):
    line = f"WARN [Producer clientId={client_id}] Got error produce response with correlation id 6 on topic-partition rates-0, retrying (2 attempts left). Error: NOT_LEADER_OR_FOLLOWER"
    closed = f"INFO [KafkaApi-2] Closing connection due to error during produce request with correlation id 11 from client id {client_id} with ack=0"
    lost = f"WARN [Producer clientId={client_id}] Connection to node 2 could not be established. Node may not be available."
    for text in (line, closed, lost):
        event = read_record(text)
        assert isinstance(event, Event), text
        assert event.client_id == client_id
