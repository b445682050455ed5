"""Lines as applications, other clients and old releases print them: one table, by who speaks."""
# ruff: noqa: E501 - the lines of the table are log lines.

from __future__ import annotations

import pytest

from acktrail.logs.event import BACKGROUND, Event
from acktrail.logs.reader import read_record
from tests.unit.logs.test_quoted_lines import test_a_quoted_line_is_read as is_read

LOST = {"kind": "connection_failure"}
FAILED = {"kind": "send_failed"}

CASES = [
    # librdkafka
    (
        "before 0.8.6",
        "1433288004.747 RDKAFKA-3-FAIL: till#producer-0: b1:9092/4: Failed to connect to broker at [b1]:9092: Connection refused",
        LOST | {"level": "ERROR", "ts": "2015-06-02T23:33:24.747Z", "client_id": "till#producer-0"}
        | {"error": "FAIL", "node": 4},
    ),
    (
        "the C++ example",
        "LOG-3-FAIL: 10.1.2.3:9091/bootstrap: Failed to connect to broker at b1:9091: Connection refused",
        LOST | {"level": "ERROR", "error": "FAIL", "client_id": None},
    ),
    (
        "a prefix of the house's own",
        "1632416490.525 TIL-RDKAFKA-4-REQTMOUT: till_eu #producer-1: [thrd:b1:9092/2]: b1:9092/2: Timed out 0 in-flight, 0 retry-queued, 1 out-queue, 1 partially-sent requests",
        LOST | {"level": "WARNING", "error": "REQTMOUT", "client_id": "till_eu #producer-1"},
    ),
    (
        "Serilog",
        "[12:24:27 WRN] till#producer-1: FAIL - [thrd:ssl://b1:9094/1]: ssl://b1:9094/1: 1 request(s) timed out: disconnect (after 2982ms in state UP)",
        LOST | {"level": "WARN", "client_id": "till#producer-1", "error": "FAIL", "elapsed_ms": 2982},
    ),
    (
        "a facility in brackets",
        "08:28:20 [Warn  ] [KAFKA] [5] [REQTMOUT] [thrd:b1:9093/1]: b1:9093/1: Timed out MetadataRequest in flight (after 60659ms, timeout #0)",
        LOST | {"level": "WARN", "error": "REQTMOUT", "elapsed_ms": 60659, "ts": None},
    ),
    (
        "fluent-bit, which leaves the facility out",
        "[2026/02/28 08:20:44] [ warn] [output:kafka:kafka.1] fluent-bit#producer-1: [thrd:b1:9092/1]: b1:9092/1: Receive failed: Disconnected",
        LOST | {"level": "WARN", "ts": "2026-02-28T08:20:44", "client_id": "fluent-bit#producer-1", "error": None},
    ),
    (
        "fluent-bit, closed with messages in its queue",
        "[2026/02/28 08:20:44] [ warn] [output:kafka:kafka.1] fluent-bit#producer-1: [thrd:app]: Producer terminating with 436 messages (100238 bytes) still in queue or transit: use flush() to wait",
        {"kind": "dropped_at_close", "records": 436, "client_id": "fluent-bit#producer-1", "level": "WARN"},
    ),
    (
        "node, an object over several lines",
        "timestamp: 1717074105728\n  fac: 'REQTMOUT',\n  message: '[thrd:b1:9092/1]: b1:9092/1: Timed out 2 in-flight, 0 retry-queued, 0 out-queue, 0 partially-sent requests',",
        LOST | {"error": "REQTMOUT", "node": 1},
    ),
    (
        "a fatal error behind a level",
        "[2026-10-19 18:47:34.885] EMERG till FATAL | [thrd:b1:9092/1]: Fatal error: Broker: Broker received an out of order sequence number: ProduceRequest for rates [2] with 9 message(s) failed due to sequence desynchronization with broker 1",
        {"kind": "fatal_sequence", "topic": "rates", "partition": 2, "records": 9}
        | {"error": "Broker received an out of order sequence number"},
    ),
    (
        "refused messages before 1.0",
        "%7|1523954416.323|MSGSET|till#producer-1| [thrd:b1:9092/2]: b1:9092/2: rates [4]: MessageSet with 3 message(s) encountered error: Local: Timed out (actions Retry)",
        {"kind": "retry", "topic": "rates", "partition": 4, "records": 3, "error": "Timed out"},
    ),
    (
        "refused messages, retold with commas",
        "2026-12-11 03:01:21,245 [70] INFO Till - OnLog : till#producer-1,7,MSGSET,[thrd:b1:9093/101]: b1:9093/101: rates [16]: MessageSet with 1 message(s) encountered error: Broker: Unknown topic or partition (actions Refresh)",
        {"kind": "retry", "topic": "rates", "partition": 16, "level": "INFO", "client_id": "till#producer-1"},
    ),
    (
        "Rust",
        "2026-09-01T12:32:13.976Z ERROR sink: Service call failed. error=KafkaError (Message production error: Fatal (Local: Fatal error)) request_id=5",
        FAILED | {"error": "Fatal error", "level": "ERROR"},
    ),
    (
        "confluent-kafka-javascript, with frames",
        "Error: Local: Message timed out\n    at Producer.<anonymous> (/app/lib/producer.js:91:31) {\n  name: 'KafkaJSError',\n  code: -192\n}",
        {"kind": "expired", "error": "Message timed out"},
    ),
    (
        "Confluent.Kafka for .NET before 1.0",
        "7|2026-02-28 09:05:52.402|till#producer-1|RETRY| [thrd:b1:9092/1001]: b1:9092/1001: Retrying ProduceRequest (v1, 349050 bytes, retry 1/3)",
        {"kind": "retry", "level": "DEBUG", "ts": "2026-02-28T09:05:52.402", "client_id": "till#producer-1"},
    ),
    (
        "syslog-ng",
        "syslog-ng: err librdkafka: FAIL(3): [thrd:ssl://b1:9097/bootstrap]: ssl://b1:9097/bootstrap: SASL authentication error: Authentication failed",
        LOST | {"error": "FAIL"},
    ),
    (
        "a code, and no more of it",
        "[ERROR] Message delivery failed - error='KafkaError{code=_MSG_TIMED_OUT...}'",
        {"kind": "expired", "error": "_MSG_TIMED_OUT", "level": "ERROR"},
    ),
    # clients in Go
    (
        "sarama before 2015",
        "[Sarama] 2026/11/14 13:18:34.874508 Producer requeueing batch of 16 messages due to error: kafka server: Tried to send a message to a replica that is not the leader for some partition. Your metadata is out of date.",
        {"kind": "retry", "records": 16, "error": "NOT_LEADER_FOR_PARTITION"},
    ),
    (
        "sarama in other words, a level without a blank",
        "2026-02-24T08:29:30.9152WARN kafka/log.go:51 producer/broker/1 state change to [retrying] on rates/3 because send a message to a replica that is not the leader for some partition, Your metadata is out of date.",
        {"kind": "retry", "level": "WARN", "error": "NOT_LEADER_FOR_PARTITION", "topic": "rates"},
    ),
    (
        "sarama in CockroachDB",
        "I260506 21:26:48.250563 870 vendor/sarama/async_producer.go:579 ⋮ [kafka-producer] producer/leader/‹rates›/3 state change to [retrying-2]",
        {"kind": "retry", "topic": "rates", "partition": 3, "level": "INFO", "ts": "2026-05-06T21:26:48.250563"},
    ),
    (
        "sarama finds a broker closed",
        "[Sarama] 2026/11/27 14:48:51 Failed to connect to broker b1:9096: dial tcp 10.0.0.1:9096: connection refused",
        LOST | {"ts": "2026-11-27T14:48:51"},
    ),
    (
        "OpenTelemetry",
        'ts=2026-06-23T03:27:29.110Z level=info msg="Exporting failed. Will retry the request after interval." error="Failed to deliver 4 messages due to kafka server: The request attempted to perform an operation on an invalid topic" interval=8s',
        FAILED | {"records": 4, "error": "INVALID_TOPIC_EXCEPTION", "level": "INFO"},
    ),
    (
        "Beats",
        "2026/02/09 15:08:13.075932 client.go:234: DBG [kafka] Kafka publish failed with: circuit breaker is open",
        FAILED | {"level": "DEBUG", "ts": "2026-02-09T15:08:13.075932"},
    ),
    (
        "kafka-go",
        "error writing messages to rates (partition 2): [19] Not Enough Replicas: the messages are rejected",
        FAILED | {"topic": "rates", "partition": 2, "error": "NOT_ENOUGH_REPLICAS"},
    ),
    (
        "kafka-go, in an application's words",
        "publishing to topic rates: [6] Not Leader For Partition: the client attempted to send messages to a replica",
        FAILED | {"topic": "rates", "error": "NOT_LEADER_OR_FOLLOWER"},
    ),
    (
        "franz-go",
        "<132>1 14:37:40.485280 unable to open connection to broker addr=10.0.0.1:9093 broker=seed 0 err=dial tcp 10.0.0.1:9093: i/o timeout",
        LOST,
    ),
    # kafkajs, Python, Ruby
    (
        "kafkajs has given up",
        "KafkaJSNumberOfRetriesExceeded: Broker not connected at Object.send",
        FAILED | {"error": "KafkaJSNumberOfRetriesExceeded"},
    ),
    (
        "kafkajs tries again",
        '{"level":"ERROR","timestamp":"2026-08-31T09:04:01.639Z","logger":"kafkajs","message":"[Producer] Failed to send messages: This server is not the leader for that topic-partition","retryCount":0,"retryTime":262}',
        {"kind": "retry", "error": "NOT_LEADER_FOR_PARTITION", "level": "ERROR"},
    ),
    (
        "kafkajs, a request that timed out",
        '{"level":"ERROR","timestamp":"2026-09-07T12:13:55.627Z","logger":"kafkajs","message":"[Producer] Request Produce(key: 0, version: 7) timed out","retryCount":0,"retryTime":272}',
        {"kind": "retry", "error": None},
    ),
    (
        "kafkajs, refused for good",
        '{"level":"ERROR","timestamp":"2026-08-31T09:04:01.639Z","logger":"kafkajs","message":"[Connection] Response Produce(key: 0, version: 7)","clientId":"till","error":"The request included a message larger than the max message size the server will accept","correlationId":3}',
        FAILED | {"error": "MESSAGE_TOO_LARGE", "client_id": "till", "correlation_id": 3},
    ),
    (
        "kafka-python finds no node",
        "WARNING [kafka.client:231] Node 557 connection failed -- refreshing metadata",
        LOST | {"node": 557, "level": "WARNING"},
    ),
    (
        "Logstash",
        "[2026-06-13T22:01:44,766][INFO ][logstash.outputs.kafka   ] Sending batch to Kafka failed. Will retry after a delay. {:batch_size=>1, :failures=>1, :sleep=>0.1}",
        {"kind": "retry", "level": "INFO", "ts": "2026-06-13T22:01:44.766"},
    ),
    (
        "aiokafka counts no attempts",
        "2026-06-15 18:18:10,442 - [WARNING] - [aiokafka.producer.sender] - Got error produce response on topic-partition TopicPartition(topic='rates', partition=5), retrying. Error: <class 'kafka.errors.NotLeaderForPartitionError'>",
        {"kind": "retry", "topic": "rates", "partition": 5, "attempts_left": None, "level": "WARNING"}
        | {"error": "NotLeaderForPartitionError"},
    ),
    (
        "aiokafka, a request that failed",
        "WARNING aiokafka.producer.sender Got error produce response: NodeNotReadyError: Attempt to send a request to node which is not ready",
        {"kind": "retry", "error": "NodeNotReadyError"},
    ),
    (
        "aiokafka finds no node",
        "2026-06-10 23:20:16 +0300 ERROR [aiokafka] Unable connect to node with id 3: [Errno 61] Connection refused",
        LOST | {"node": 3, "ts": "2026-06-10T23:20:16+0300"},
    ),
    (
        "kafka-python, unformatted",
        "KafkaTimeoutError: KafkaTimeoutError: ('Failed to update metadata after %s secs.', 60.0)",
        FAILED | {"error": "KafkaTimeoutError", "elapsed_ms": 60000},
    ),
    (
        "kafka-python before 1.0",
        "[E 260618 16:39:01 base.py:174] FailedPayloadsError sending ProduceRequest (#1 of 1) to rates:4 with msgs (Message(magic=0",
        FAILED | {"level": "ERROR", "ts": "2026-06-18T16:39:01", "topic": "rates", "partition": 4},
    ),
    (
        "ruby-kafka under fluentd",
        '2026-10-12 12:11:44 +0800 [warn]: temporarily failed to flush the buffer. error_class="Kafka::DeliveryFailed" error="Failed to send messages to rates/0" plugin_id="x"',
        FAILED | {"topic": "rates", "partition": 0, "error": "DeliveryFailed", "level": "WARN"},
    ),
    (
        "ruby-kafka, several partitions",
        "2026-10-25 04:11:40 +0000 [warn]: #0 Send exception occurred: Failed to send messages to rates/1, rates/2",
        FAILED | {"topic": "rates", "partition": None},
    ),
    (
        "ruby-kafka, its buffer full",
        '2026-10-16 11:15:22 +0800 [warn]: #0 failed to flush the buffer. error_class=Kafka::BufferOverflow error="Cannot produce to rates, max buffer size (1000 messages) reached"',
        FAILED | {"topic": "rates", "error": "BufferOverflow"},
    ),
    # Java
    (
        "a producer that may not come in",
        "[2026-11-28 08:39:51,290] ERROR [Producer clientId=till] Connection to node -1 (b1/10.0.0.1:9093) failed authentication due to: SSL handshake failed (org.apache.kafka.clients.NetworkClient)",
        LOST | {"client_id": "till", "node": -1},
    ),
    (
        "a node without a name",
        "[2026-05-22T10:06:28,149][WARN ][org.apache.kafka.clients.NetworkClient][main] [Producer clientId=till] Error connecting to node b7:9094 (id: 1001 rack: null)\njava.net.UnknownHostException: b7\n\tat java.net.InetAddress.getAllByName0(InetAddress.java:1505) ~[?:?]",
        LOST | {"client_id": "till", "node": 1001, "error": "UnknownHostException", "level": "WARN"},
    ),
    (
        "wrapped, without a head",
        "[Producer clientId=till] Connection to node -1 (localhost/127.0.0.1:9092)\ncould not be established. Node may not be available.",
        LOST | {"client_id": "till", "node": -1},
    ),
    (
        "cut in its middle",
        "[2026-01-09 17:20:26,559] WARN [Producer clientId=till] Connection to node 2 (b1/10.0.0.1:9092) could",
        LOST | {"client_id": "till", "node": 2},
    ),
    (
        "an exception, its words on the next line",
        "org.apache.kafka.common.errors.NotEnoughReplicasException:\nMessages are rejected since there are fewer in-sync replicas than required.",
        FAILED | {"error": "NotEnoughReplicasException"},
    ),
    (
        "an exception's name, its words on the next line",
        "RecordTooLargeException\nThe message is 4021051 bytes when serialized which is larger than 1048576, which is the value of the max.request.size configuration.",
        FAILED | {"error": "RecordTooLargeException"},
    ),
    (
        "an exception in another",
        "org.apache.kafka.connect.errors.ConnectException: java.util.concurrent.ExecutionException: org.apache.kafka.common.errors.RecordTooLargeException: The message is 9 bytes when serialized which is larger than 8",
        FAILED | {"error": "RecordTooLargeException"},
    ),
    (
        "Connect",
        "06:34:01.044 [task-thread-src-0] o.a.k.c.r.WorkerTask ERROR - WorkerSourceTask{id=src-0} Task is being killed org.apache.kafka.connect.errors.ConnectException: Unrecoverable exception from producer send callback\n        at org.apache.kafka.connect.runtime.WorkerSourceTask.sendRecords(WorkerSourceTask.java:320)",
        FAILED | {"error": "ConnectException", "level": "ERROR"},
    ),
    (
        "Flink",
        "Caused by: org.apache.flink.util.FlinkRuntimeException: Failed to send data to Kafka rates-0@-1 with FlinkKafkaInternalProducer{transactionalId='t-0-1', inTransaction=true, closed=false}",
        FAILED | {"topic": "rates", "partition": 0, "error": "FlinkRuntimeException"},
    ),
    (
        "Maxwell",
        "2026-09-06 09:41:33,173 ERROR MaxwellKafkaProducer - RecordTooLargeException @ Position[BinlogPosition[bin.000207:2381]] -- shop: rates:[(id,4189)]",
        FAILED | {"error": "RecordTooLargeException", "level": "ERROR"},
    ),
    (
        "an application's plain words",
        "19:11:04.002 [dispatcher-2] ERROR c.shop.Sender - Failed to send message to Kafka!",
        FAILED | {"error": None, "level": "ERROR"},
    ),
    (
        "too few replicas, wrapped",
        "org.apache.kafka.common.errors.NotEnoughReplicasException: The size of the current ISR Set(4)\nis insufficient to satisfy the min.insync.replicas requirement of 2 for partition rates-1",
        FAILED | {"topic": "rates", "partition": 1},
    ),
    (
        "a topic in its head, the partition in the exception",
        "[2026-03-11 10:31:08,441] ERROR Error when sending message to topic rates with key: 4 bytes, value: 79 bytes with error: (org.apache.kafka.clients.producer.internals.ErrorLoggingCallback)\norg.apache.kafka.common.errors.NotEnoughReplicasException: The size of the current ISR Set(1) is insufficient to satisfy the min.isr requirement of 2 for partition rates-7",
        FAILED | {"topic": "rates", "partition": 7, "error": "NotEnoughReplicasException"},
    ),
    (
        "a gap in the sequence, wrapped",
        "org.apache.kafka.common.errors.OutOfOrderSequenceException:\n  Out of order sequence number for producer 456 at offset 4800 in partition\n  rates-3: 5 (incoming seq. number), 99 (current end sequence number)",
        {"kind": "fatal_sequence", "topic": "rates", "partition": 3},
    ),
    (
        "bold, as people quote it",
        "00:08:12,506 ERROR Till - **Batch containing 1924 record(s) expired due to timeout while requesting metadata from brokers for rates-4**",
        {"kind": "expired", "topic": "rates", "partition": 4, "records": 1924},
    ),
    (
        "a string of a program that failed",
        '                "TimeoutException: Expiring 1 record(s) for rates-1:15000 ms has passed since batch creation");',
        {"kind": "expired", "topic": "rates", "partition": 1},
    ),
    (
        "a serializer",
        'Exception in thread "main" org.springframework.messaging.MessageHandlingException: nested exception is org.apache.kafka.common.errors.SerializationException: Can\'t convert value of class A to class B specified in value.serializer',
        FAILED | {"error": "SerializationException"},
    ),
    (
        "0.9's console producer",
        "ERROR Error when sending message to topic rates with key: null, value: 6 bytes with error: Batch Expired (org.apache.kafka.clients.producer.internals.ErrorLoggingCallback)",
        {"kind": "expired", "topic": "rates", "level": "ERROR"},
    ),
    (
        "a summary of an expiry",
        "Expiring 7 record(s) due to timeout",
        {"kind": "expired", "records": 7, "topic": None},
    ),
    (
        "an exception's name alone",
        "[ERROR] Failed to send record to topic rates: TimeoutException",
        FAILED | {"topic": "rates", "error": "TimeoutException", "level": "ERROR"},
    ),
    (
        "a dead letter",
        "ERROR o.s.k.l.DeadLetterPublishingRecoverer : Dead-letter publication to rates.DLT failed for: rates-1@42\norg.apache.kafka.common.errors.RecordTooLargeException: The message is 1284119 bytes when serialized which is larger than 1048576.",
        FAILED | {"topic": "rates.DLT", "error": "RecordTooLargeException"},
    ),
    (
        "a transaction that cannot take its offsets",
        "Transiting to abortable error state due to org.apache.kafka.clients.consumer.CommitFailedException: Transaction offset Commit failed due to consumer group metadata mismatch",
        FAILED | {"error": "CommitFailedException"},
    ),
    (
        "VerifiableProducer",
        '{"timestamp":1557411938112,"name":"producer_send_error","key":null,"value":"7","topic":"rates","exception":"class org.apache.kafka.common.errors.NotEnoughReplicasException","message":"Messages are rejected since there are fewer in-sync replicas than required."}',
        FAILED | {"topic": "rates", "error": "NotEnoughReplicasException", "ts": "2019-05-09T14:25:38.112Z"},
    ),
    # brokers
    (
        "a broker of 0.8",
        "[2026-09-02 16:54:00,933] WARN [KafkaApi-1] Produce request with correlation id 598 from client till-1 on partition [rates,48] failed due to Leader not local for partition [rates,48] on broker 1 (kafka.server.KafkaApis)",
        {"kind": "broker_append_error", "client_id": "till-1", "topic": "rates", "partition": 48}
        | {"correlation_id": 598, "broker": 1},
    ),
    (
        "a cut of 0.8",
        "[2026-05-07 11:01:02,381] INFO Truncating log rates-3 to offset 1243. (kafka.log.Log)",
        {"kind": "truncation", "topic": "rates", "partition": 3, "offset": 1243},
    ),
    (
        "a cut, its directory left out",
        "[UnifiedLog partition=rates-1-0] Truncating to offset 578385",
        {"kind": "truncation", "topic": "rates-1", "partition": 0},
    ),
    (
        "a cut to the leader's epoch",
        "Truncating partition rates-0 to leader epoch and offset EpochEndOffset(errorCode=0, partition=0, leaderEpoch=3, endOffset=4)",
        {"kind": "truncation", "topic": "rates", "partition": 0, "offset": 4},
    ),
    (
        "a cut refused, wrapped",
        "Exiting because log truncation is not allowed for partition rates-0, \ncurrent leader's latest offset 0 is less than replica's latest offset 151",
        {"kind": "truncation", "topic": "rates", "partition": 0, "offset": 0},
    ),
]  # fmt: skip

TIMES = [
    ("Heroku", "2026-10-25T22:34:19.635139+00:00 app[web.1]: [2026-10-25 22:34:19,634] WARN ", "2026-10-25T22:34:19.634"),
    ("Kibana", '"Apr 23, 2026 @ 13:25:54.026",Kg ', "2026-04-23T13:25:54.026"),
    ("Zeek", "1518521505.526608\tReporter::ERROR\t", "2018-02-13T11:31:45.526Z"),
    ("Akka", "[WARN] [03/06/2026 12:23:28.367] [t] ", "2026-03-06T12:23:28.367"),
    ("day or month?", "03/06/2026 12:23:28 WARN ", None),
]  # fmt: skip

NOTHING = [
    ("a consumer, retold", "[12:24:27 INF] till#consumer-1: REQTMOUT - [thrd:b1:9094/1]: b1:9094/1: Timed out 1 in-flight"),
    ("a consumer before 0.8.6", "1511418210.136 RDKAFKA-3-FAIL: till#consumer-1: [thrd:b1:9092/1]: b1:9092/1: Connect to ipv4#127.0.0.1:9092 failed: Connection refused"),
    ("a consumer's worker", "ERROR my-consumer [thrd:b1:9092/1]: b1:9092/1: Receive failed: Disconnected"),
    ("an application's level", "ERROR [thrd:main]: till#producer-1: statistics are off"),
    ("a producer's good news", "till#producer-1: [thrd:b1:9092/1]: b1:9092/1: Connected (#3)"),
    ("somebody's broker", "Failed to connect to broker tcp://mqtt:1883"),
    ("a Go consumer", "consumer: unable to open connection to broker addr=b1:9092 err=dial tcp: i/o timeout"),
    ("kafkajs, a group", "KafkaJSNumberOfRetriesExceeded: The group coordinator is not available"),
    ("a kafka-go reader", "reading from topic rates: [6] Not Leader For Partition: the client attempted"),
    ("an I/O thread's own error", "ERROR Sender - Uncaught error in kafka producer I/O thread:\njava.lang.IllegalStateException: Correlation id for response (8) does not match request (7)"),
    ("another consumer's exception", "ERROR Commit failed: org.apache.kafka.clients.consumer.CommitFailedException: Commit cannot be completed since the group has already rebalanced"),
    ("a broker's fetch", "[2026-06-17 09:15:08,717] ERROR [ReplicaManager broker=1] Error processing fetch with max size 1048576 from replica [2] on partition rates-0 (kafka.server.ReplicaManager)\norg.apache.kafka.common.errors.CorruptRecordException: Found record size 0 smaller than minimum record overhead (14) in file x.log"),
    ("a consumer that finds no node", "WARN [Consumer clientId=c, groupId=g] Error connecting to node b7:9094 (id: 1001 rack: null)\njava.net.UnknownHostException: b7"),
    ("a message sent", "INFO Sent message to Kafka topic rates, partition 3"),
    ("a catalogue", "WARN CATALOG-3-FAIL: nothing of Kafka"),
]  # fmt: skip


@pytest.mark.parametrize(("case", "text", "expected"), CASES, ids=[c[0] for c in CASES])
def test_a_retold_line_is_read(case, text, expected):
    is_read(case, text, expected)


@pytest.mark.parametrize(("case", "head", "ts"), TIMES, ids=[c[0] for c in TIMES])
def test_a_time_as_it_is_printed_there(case, head, ts):
    line = "Got error produce response with correlation id 5 on topic-partition a-0, retrying (2 attempts left). Error: NETWORK_EXCEPTION"
    event = read_record(head + line)
    assert isinstance(event, Event)
    assert event.ts == ts


@pytest.mark.parametrize(("case", "text"), NOTHING, ids=[c[0] for c in NOTHING])
def test_what_is_no_producers_is_nothing(case, text):
    event = read_record(text)
    assert event is None or (isinstance(event, Event) and event.kind in BACKGROUND), event
