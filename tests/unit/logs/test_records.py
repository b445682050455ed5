"""Which event a record is, and every field that its text gives: a table of named cases."""
# ruff: noqa: E501 - the lines of the table are log lines.

from __future__ import annotations

import pytest

from acktrail.logs.event import BACKGROUND, Event, UnreadRecord
from acktrail.logs.prefilter import may_be_evidence
from acktrail.logs.reader import read_record
from acktrail.logs.records import join_records

SENDER = "(org.apache.kafka.clients.producer.internals.Sender)"
NETWORK = "(org.apache.kafka.clients.NetworkClient)"
RETRY = (
    "Got error produce response with correlation id 41 on topic-partition orders-3, "
    "retrying (4 attempts left). Error: NOT_ENOUGH_REPLICAS"
)
RETRIED = {
    "kind": "retry",
    "topic": "orders",
    "partition": 3,
    "correlation_id": 41,
    "attempts_left": 4,
    "error": "NOT_ENOUGH_REPLICAS",
}

CASES = [
    # case, text, expected (fields not named are not compared, except in LAYOUTS)
    (
        "a client id with brackets, commas and blanks",
        f"[2026-01-02 03:04:05,006] WARN [Producer clientId=svc[eu],a b, transactionalId=t-[7]] {RETRY}",
        RETRIED | {"client_id": "svc[eu],a b", "transactional_id": "t-[7]"},
    ),
    (
        "a message after the error, and the logger after that",
        f"[2026-01-02 03:04:05,006] WARN [Producer clientId=p] {RETRY}. Error Message: Disconnected "
        f"from node 2 due to timeout {SENDER}",
        RETRIED | {"message": "Disconnected from node 2 due to timeout"},
    ),
    (
        "dashes and dots in a topic",
        "Got error produce response with correlation id 1 on topic-partition a-1.b_2-0-12, "
        "retrying (0 attempts left). Error: NETWORK_EXCEPTION",
        {"kind": "retry", "topic": "a-1.b_2-0", "partition": 12, "attempts_left": 0},
    ),
    (
        "split",
        "[Producer clientId=b] Got error produce response in correlation id 7 on topic-partition e-5, "
        "splitting and retrying (2147483647 attempts left). Error: MESSAGE_TOO_LARGE",
        {"kind": "split_retry", "correlation_id": 7, "attempts_left": 2147483647},
    ),
    (
        "masked numbers are null, never invented",
        "WARN Got error produce response in correlation id [N] on topic-partition <topic>, "
        "splitting and retrying (0 attempts left). Error: MESSAGE_TOO_LARGE",
        {"kind": "split_retry", "correlation_id": None, "topic": None, "partition": None},
    ),
    (
        "cut by whoever quoted it",
        "… retrying (17 attempts left). Error: NOT_LEADER_OR_FOLLOWER",
        {"kind": "retry", "attempts_left": 17, "error": "NOT_LEADER_OR_FOLLOWER", "topic": None},
    ),
    (
        "wrapped between words",
        "WARN [Producer clientId=p] Got error produce response with correlation id 5 on\n"
        "topic-partition a.b-1, retrying (9 attempts left).\nError: NOT_LEADER_OR_FOLLOWER",
        {"kind": "retry", "topic": "a.b", "partition": 1, "error": "NOT_LEADER_OR_FOLLOWER"},
    ),
    (
        "wrapped within a word",
        "[2026-01-02 03:04:05,006] WARN [Producer clientId=p] Got error produce response with corr\n"
        "elation id 5 on topic-partition pay-ments-1, retrying (9 attempts left). Error: NETWORK_EXC\n"
        "EPTION (org.apache.kafka.clients.producer.internals.Sender)",
        {"kind": "retry", "topic": "pay-ments", "partition": 1, "error": "NETWORK_EXCEPTION"},
    ),
    (
        "kafka-python",
        "WARNING:kafka.producer.sender:<KafkaProducer client_id=kp-1 transactional_id=None>: Got error"
        " produce response on topic-partition TopicPartition(topic='t-1', partition=2), retrying "
        "(3 attempts left). Error: <class 'kafka.errors.NotLeaderForPartitionError'>",
        {"kind": "retry", "topic": "t-1", "partition": 2, "client_id": "kp-1"}
        | {"error": "NotLeaderForPartitionError", "level": "WARNING"},
    ),
    (
        "expired, 2.1 to 4.2: no blank after the colon",
        "org.apache.kafka.common.errors.TimeoutException: Expiring 12 record(s) for a-b-3:120004 ms "
        "has passed since batch creation",
        {"kind": "expired", "records": 12, "topic": "a-b", "partition": 3, "elapsed_ms": 120004}
        | {"error": "TimeoutException"},
    ),
    (
        "expired, 4.3",
        "org.apache.kafka.common.errors.TimeoutException: Expiring 1 record(s) for pay-1:20004 ms has "
        "passed since batch creation. The request has not been sent, or no server response has been "
        "received yet.",
        {"kind": "expired", "records": 1, "topic": "pay", "partition": 1, "elapsed_ms": 20004},
    ),
    (
        "expired, 0.10.1",
        "TimeoutException: Expiring 3 record(s) for o-3 due to 30042 ms has passed since last append",
        {"kind": "expired", "records": 3, "topic": "o", "partition": 3, "elapsed_ms": 30042},
    ),
    (
        "expired, 0.10.0",
        "TimeoutException: Batch containing 3 record(s) expired due to timeout while requesting "
        "metadata from brokers for o-3",
        {"kind": "expired", "records": 3, "topic": "o", "partition": 3, "elapsed_ms": None},
    ),
    (
        "expired, in what a listener printed over three lines",
        "2026-01-02 03:04:05.006 ERROR 88 --- [ad | producer-2] o.s.k.support.LoggingProducerListener "
        " : Exception thrown when sending a message with key='k' and payload='v' to topic x:\n\n"
        "org.apache.kafka.common.errors.TimeoutException: Expiring 30 record(s) for x-0:30014 ms has "
        "passed since batch creation",
        {"kind": "expired", "level": "ERROR", "ts": "2026-01-02T03:04:05.006", "records": 30}
        | {"client_id": None, "thread": "ad | producer-2"},
    ),
    (
        "expired, kafka-python",
        "KafkaTimeoutError: Batch for TopicPartition(topic='s', partition=0) containing 9 record(s) "
        "expired: 30.5 seconds have passed since last append",
        {"kind": "expired", "records": 9, "error": "KafkaTimeoutError", "elapsed_ms": 30500},
    ),
    (
        "expired, transactional: the one line the client prints itself",
        "[2026-01-02 03:04:05,006] INFO [Producer clientId=p, transactionalId=t] Transiting to "
        "abortable error state due to org.apache.kafka.common.errors.TimeoutException: Expiring 5 "
        "record(s) for o-0:120003 ms has passed since batch creation",
        {"kind": "expired", "transactional_id": "t", "records": 5, "level": "INFO"},
    ),
    (
        "failed send: the exception is on the next line, without frames",
        "[2026-01-02 03:04:05,006] ERROR Error when sending message to topic t with key: null, value: "
        "5 bytes with error: (org.apache.kafka.clients.producer.internals.ErrorLoggingCallback)\n"
        "org.apache.kafka.common.errors.NotEnoughReplicasException: Messages are rejected since ...",
        {
            "kind": "send_failed",
            "topic": "t",
            "error": "NotEnoughReplicasException",
            "level": "ERROR",
        },
    ),
    (
        "failed send: a bare exception",
        "org.apache.kafka.common.errors.NetworkException: Disconnected from node 1",
        {"kind": "send_failed", "error": "NetworkException", "detail": "exception"},
    ),
    (
        "never sent: no metadata",
        "org.apache.kafka.common.errors.TimeoutException: Topic t.x not present in metadata after "
        "60000 ms.",
        {"kind": "send_failed", "detail": "metadata_timeout", "topic": "t.x", "elapsed_ms": 60000},
    ),
    (
        "never sent: no such partition",
        "org.apache.kafka.common.errors.TimeoutException: Partition 9 of topic t with partition count "
        "3 is not present in metadata after 60000 ms.",
        {"kind": "send_failed", "detail": "metadata_timeout", "topic": "t", "partition": 9},
    ),
    (
        "never sent: buffer full",
        "org.apache.kafka.clients.producer.BufferExhaustedException: Failed to allocate 16384 bytes "
        "within the configured max blocking time 60000 ms. Total memory: 33554432 bytes.",
        {"kind": "send_failed", "detail": "buffer_exhausted", "elapsed_ms": 60000}
        | {"error": "BufferExhaustedException"},
    ),
    (
        "never sent: too large",
        "Exception in thread main java.util.concurrent.ExecutionException: org.apache.kafka.common."
        "errors.RecordTooLargeException: The message is 2000000 bytes when serialized which is larger "
        "than 1048576",
        {"kind": "send_failed", "detail": "record_too_large", "error": "RecordTooLargeException"},
    ),
    (
        "streams, fenced",
        "16:38:58 ERROR RecordCollectorImpl - stream-task [0_0] Error encountered sending record to "
        "topic s-changelog for task 0_0 due to:\norg.apache.kafka.common.errors."
        "InvalidProducerEpochException: Producer attempted to produce with an old epoch.\nWritten "
        "offsets would not be recorded and no more records would be sent",
        {"kind": "fatal_sequence", "topic": "s-changelog", "ts": None}
        | {"error": "InvalidProducerEpochException"},
    ),
    (
        "a gap in the sequence",
        "[2026-01-02 03:04:05,006] ERROR [Producer clientId=p] The broker returned org.apache.kafka."
        "common.errors.OutOfOrderSequenceException: The broker received an out of order sequence "
        "number. for topic-partition o-2 with producerId 41, epoch 0, and sequence number 118",
        {"kind": "fatal_sequence", "topic": "o", "partition": 2, "client_id": "p"}
        | {"error": "OutOfOrderSequenceException"},
    ),
    (
        "records in doubt",
        "[Producer clientId=p] No inflight batches remaining for o-2, last ack'd sequence for "
        "partition is 117, next sequence is 130. Going to bump epoch and reset sequence numbers.",
        {"kind": "sequence_reset", "topic": "o", "partition": 2, "records": 12},
    ),
    (
        "dropped at close",
        "[Producer clientId=p] Proceeding to force close the producer since pending requests could not"
        " be completed within timeout 5000 ms.",
        {"kind": "dropped_at_close", "client_id": "p", "elapsed_ms": 5000},
    ),
    (
        "stored although reported failed",
        "ProduceResponse returned SUCCEEDED for o-3 after batch with base offset 88231 had already "
        "been FAILED.",
        {"kind": "late_success", "topic": "o", "partition": 3, "offset": 88231},
    ),
    (
        "invalid metadata, up to 3.7",
        "[Producer clientId=p] Received invalid metadata error in produce request on partition o-1 due"
        " to org.apache.kafka.common.errors.NotLeaderOrFollowerException: For requests intended only "
        "for the leader.. Going to request metadata update now",
        {"kind": "invalid_metadata", "error": "NotLeaderOrFollowerException", "partition": 1},
    ),
    (
        "invalid metadata, since 3.8",
        "[Producer clientId=p] Received invalid metadata error in produce request on partition o-1 due"
        " to org.apache.kafka.common.errors.NetworkException: Disconnected from node 2 Going to "
        f"request metadata update now {SENDER}",
        {"kind": "invalid_metadata", "error": "NetworkException", "topic": "o", "partition": 1},
    ),
    (
        "unknown topic",
        "[2017-05-25 10:24:23,850] WARN Received unknown topic or partition error in produce request "
        "on partition f_t-0. The topic/partition may not exist or the user may not have Describe "
        f"access to it {SENDER}",
        {"kind": "invalid_metadata", "error": "UNKNOWN_TOPIC_OR_PARTITION", "topic": "f_t"},
    ),
    (
        "node unavailable",
        "[Producer clientId=p] Connection to node -1 (localhost/127.0.0.1:9092) could not be "
        f"established. Node may not be available. {NETWORK}",
        {"kind": "connection_failure", "node": -1, "error": None, "client_id": "p"},
    ),
    (
        "request cancelled",
        "[Producer clientId=p] Cancelled in-flight PRODUCE request with correlation id 4128 due to "
        "node 2 being disconnected (elapsed time since creation: 30004ms, elapsed time since send: "
        "30001ms, throttle time: 0ms, request timeout: 30000ms)",
        {"kind": "connection_failure", "node": 2, "correlation_id": 4128, "elapsed_ms": 30004},
    ),
    (
        "librdkafka, connection refused",
        "%3|1714557600.200|FAIL|svc#producer-1| [thrd:b:9092/2]: b:9092/2: Connect to ipv4#10.0.0.5:9092"
        " failed: Connection refused (after 3ms in state CONNECT, 30 identical error(s) suppressed)",
        {"kind": "connection_failure", "level": "ERROR", "ts": "2024-05-01T10:00:00.200Z"}
        | {"client_id": "svc#producer-1", "error": "FAIL", "elapsed_ms": 3, "node": 2},
    ),
    (
        "librdkafka, through Python's logging",
        "2026-01-02 03:04:05,006 INFO kafka REQTMOUT [svc#producer-1] [thrd:b1:9092/1]: b1:9092/1: "
        "Timed out ProduceRequest in flight (after 30021ms, timeout #0)",
        {"kind": "connection_failure", "level": "INFO", "error": "REQTMOUT", "elapsed_ms": 30021}
        | {"client_id": "svc#producer-1", "ts": "2026-01-02T03:04:05.006"},
    ),
    (
        "librdkafka, dropped at close",
        "%4|1714557700.000|TERMINATE|s#producer-1| [thrd:app]: Producer terminating with 41 messages "
        "(5412 bytes) still in queue or transit: use flush() to wait for outstanding message delivery",
        {"kind": "dropped_at_close", "records": 41},
    ),
    (
        "librdkafka, retried message set",
        "%7|1714557600.300|MSGSET|s#producer-1| [thrd:b1:9092/1]: b1:9092/1: o-x [3]: MessageSet with "
        "12 message(s) (MsgId 118, BaseSeq 117) encountered error: Broker: Not enough in-sync replicas"
        " (actions Retry,MsgNotPersisted)",
        {"kind": "retry", "topic": "o-x", "partition": 3, "records": 12, "level": "DEBUG"},
    ),
    (
        "kcat",
        "% Delivery failed for message: Broker: Message size too large",
        {"kind": "send_failed", "error": "Message size too large"},
    ),
    (
        "a delivery report in Go",
        "Delivery failed: orders[4]@unset(Broker: Message size too large)",
        {"kind": "send_failed", "topic": "orders", "partition": 4},
    ),
    (
        "a delivery report in Python",
        'Message delivery failed: KafkaError{code=_MSG_TIMED_OUT,val=-192,str="Local: Message timed '
        'out"}',
        {"kind": "expired", "error": "_MSG_TIMED_OUT"},
    ),
    (
        "sarama, through filebeat",
        "2026-01-02T03:04:05.006+0800\tINFO\tkafka/log.go:53\tproducer/leader/a-b/5 state change to "
        "[retrying-3]",
        {"kind": "retry", "topic": "a-b", "partition": 5, "ts": "2026-01-02T03:04:05.006+0800"},
    ),
    (
        "sarama, with the server's words",
        "2026/01/02 03:04:05 kafka: Failed to produce message to topic t: kafka server: Request "
        "exceeded the user-specified time limit in the request.",
        {"kind": "send_failed", "topic": "t", "error": "REQUEST_TIMED_OUT"}
        | {"ts": "2026-01-02T03:04:05"},
    ),
    (
        "kafkajs",
        '{"level":"ERROR","timestamp":"2026-01-02T03:04:05.006Z","logger":"kafkajs","message":'
        '"[Connection] Connection error: connect ECONNREFUSED 127.0.0.1:9092","broker":"l:9092",'
        '"clientId":"my-app"}',
        {"kind": "connection_failure", "client_id": "my-app", "error": "ECONNREFUSED"},
    ),
    (
        "append error, 4.1 and later: a topic id that holds a dash",
        "[2026-01-02 03:04:05,006] ERROR [ReplicaManager broker=1] Error processing append operation "
        "on partition AMNt6PcpRZOktSh6v-u00A:p-test-0 (kafka.server.ReplicaManager)\norg.apache.kafka"
        ".common.errors.NotEnoughReplicasException: The size of the current ISR : 1 is insufficient",
        {"kind": "broker_append_error", "topic": "p-test", "partition": 0, "broker": 1}
        | {"topic_id": "AMNt6PcpRZOktSh6v-u00A", "error": "NotEnoughReplicasException"},
    ),
    (
        "append error, up to 0.10",
        "[2016-01-02 03:04:05,006] ERROR [Replica Manager on Broker 7]: Error processing append "
        "operation on partition [o-x,3] (kafka.server.ReplicaManager)\n"
        "java.io.IOException: No space left on device",
        {"kind": "broker_append_error", "topic": "o-x", "partition": 3, "broker": 7}
        | {"error": "IOException"},
    ),
    (
        "acks=0: one event on two lines",
        "[2026-01-02 03:04:05,006] INFO [KafkaApi-1] Closing connection due to error during produce "
        "request with correlation id 77 from client id fire and forget with ack=0\n"
        "Topic and partition to exceptions: o-1 -> org.apache.kafka.common.errors."
        "NotLeaderOrFollowerException (kafka.server.KafkaApis)",
        {"kind": "acks0_close", "client_id": "fire and forget", "topic": "o", "correlation_id": 77}
        | {"error": "NotLeaderOrFollowerException", "broker": 1},
    ),
    (
        "ISR shrink",
        "[2026-01-02 03:04:05,006] INFO [Partition o-3 broker=1] Shrinking ISR from 1,2,3 to 1. Leader:"
        " (highWatermark: 88210, endOffset: 88231). Out of sync replicas: (brokerId: 2, endOffset: "
        "88210, lastCaughtUpTimeMs: 1714557570001). (kafka.cluster.Partition)",
        {"kind": "isr_shrink", "isr_before": (1, 2, 3), "isr_after": (1,), "broker": 1}
        | {"high_watermark": 88210, "offset": 88231, "topic": "o", "partition": 3},
    ),
    (
        "ISR shrink, up to 0.10",
        "[2017-07-15 16:17:57,662] INFO Partition [r-t,2] on broker 1: Shrinking ISR for partition "
        "[r-t,2] from 1,2,0 to 1,2 (kafka.cluster.Partition)",
        {"kind": "isr_shrink", "topic": "r-t", "partition": 2, "isr_after": (1, 2), "broker": 1},
    ),
    (
        "ISR update",
        "[2026-01-02 03:04:05,006] INFO [Partition o-3 broker=1] ISR updated to 1,2  and version "
        "updated to 13 (kafka.cluster.Partition)",
        {"kind": "isr_updated", "isr_after": (1, 2), "topic": "o", "broker": 1},
    ),
    (
        "truncated below the high watermark",
        "[2026-01-02 03:04:05,006] WARN [UnifiedLog partition=o-3, dir=/k] Truncating o-3 to offset 88 "
        "below high watermark 99 (org.apache.kafka.storage.internals.log.UnifiedLog)",
        {
            "kind": "truncation",
            "detail": "below_high_watermark",
            "offset": 88,
            "high_watermark": 99,
        },
    ),
    (
        "truncated as usual",
        "[2026-01-02 03:04:05,006] INFO [UnifiedLog partition=o-3, dir=/k] Truncating to offset 88 "
        "(org.apache.kafka.storage.internals.log.UnifiedLog)",
        {"kind": "truncation", "detail": "to_offset", "offset": 88, "topic": "o", "partition": 3},
    ),
    (
        "unclean election",
        "[2026-01-02 03:04:05,006] INFO [QuorumController id=3] UNCLEAN partition change for o-3 with "
        "topic ID 3DxQ8q2dTvC0u7WJgJ0y2w: isr: [1] -> [2], leader: -1 -> 2, leaderRecoveryState: "
        "RECOVERED -> RECOVERING, leaderEpoch: 7 -> 8, partitionEpoch: 12 -> 13 (org.apache.kafka."
        "controller.ReplicationControlManager)",
        {"kind": "unclean_election", "leader": 2, "leader_epoch": 8, "broker": 3}
        | {"isr_before": (1,), "isr_after": (2,), "topic_id": "3DxQ8q2dTvC0u7WJgJ0y2w"},
    ),
    (
        "a consumer's reset",
        "[2026-01-02 03:04:05,006] INFO [Consumer clientId=c-1, groupId=g, x] Resetting offset for "
        "partition o-0 to position FetchPosition{offset=12, offsetEpoch=Optional.empty}.",
        {"kind": "offset_reset", "client_id": "c-1", "group": "g, x", "offset": 12, "topic": "o"},
    ),
    (
        "a consumer's failed commit",
        "[2026-01-02 03:04:05,006] WARN [Consumer clientId=c, groupId=g] Offset commit failed on "
        "partition o-2 at offset 6: This server does not host this topic-partition.",
        {"kind": "commit_failed", "topic": "o", "partition": 2, "offset": 6, "group": "g"},
    ),
    (
        "a client's version",
        "2026-01-02T03:04:05.006Z INFO 1 --- [main] o.a.kafka.common.utils.AppInfoParser : Kafka "
        "version: 3.9.0",
        {"kind": "client_version", "version": "3.9.0"},
    ),
]

NOTHING = [
    ("a format string", 'log.warn("Got error produce response with correlation id {} on ...", id);'),
    ("another program's retry", "Upload failed, retrying... (3 attempts left). Error: ECONNRESET"),
    ("a consumer's connection", "[Consumer clientId=c, groupId=g] Node -1 disconnected."),
    ("an admin client's connection", "[AdminClient clientId=a] Node 1 disconnected. " + NETWORK),
    (
        "a broker's own connection",
        "[Controller id=0, targetBrokerId=1] Connection to node 1 (k/10.0.0.1:9092) could not be "
        "established. Broker may not be available. " + NETWORK,
    ),
    ("an admin client's time-out", "org.apache.kafka.common.errors.TimeoutException: Timed out waiting "
     "for a node assignment. Call: listTopics"),
    ("an import", "import org.apache.kafka.common.errors.OutOfOrderSequenceException;"),
    ("a librdkafka consumer", "%3|1714557600.2|FAIL|rdkafka#consumer-1| [thrd:b/1]: b/1: Connect failed"),
    ("a stack frame", "INFO run - [at org.apache.kafka.clients.producer.KafkaProducer.doSend(K.java:9)]"),
    ("progress", "125904 records sent, 25180.8 records/sec (24.01 MB/sec), 1312.3 ms avg latency"),
    ("a record count of something else", "Found 3 record(s) for alice in 2024"),
]  # fmt: skip


@pytest.mark.parametrize(("case", "text", "expected"), CASES, ids=[c[0] for c in CASES])
def test_a_record_is_read(case, text, expected):
    event = read_record(text)
    assert isinstance(event, Event), event
    assert {name: getattr(event, name) for name in expected} == expected


@pytest.mark.parametrize(("case", "text", "expected"), CASES, ids=[c[0] for c in CASES])
def test_it_is_one_record_and_kept_by_the_agents(case, text, expected):
    records = list(join_records(text.encode().splitlines(keepends=True)))
    assert [r.text.decode() for r in records] == [text]
    assert may_be_evidence(records[0].text)


@pytest.mark.parametrize(("case", "text"), NOTHING, ids=[c[0] for c in NOTHING])
def test_nothing_else_is_taken_for_one(case, text):
    event = read_record(text)
    assert not isinstance(event, Event) or event.kind in BACKGROUND


def test_a_sentence_of_kafkas_that_cannot_be_read_is_counted_as_unread():
    words = "Got error produce response"
    assert read_record(f"WARN {words} of a release to come") == UnreadRecord(words)


LAYOUTS = [
    # layout, how a message is written in it, level, ts
    ("log4j", "[2024-05-01 12:00:10,420] WARN {} " + SENDER, "WARN", "2024-05-01T12:00:10.420"),
    ("connect", "[2024-05-01 12:00:10,420] WARN [c|task-0] {} (org.a.Sender:612)", "WARN",
     "2024-05-01T12:00:10.420"),
    ("logback", "12:00:10.420 [kafka-producer-network-thread | p] WARN  o.a.k.Sender - {}", "WARN", None),
    ("spring boot 2", "2024-05-01 12:00:10.420  WARN 47 --- [ | p-1] o.a.k.Sender   : {}", "WARN",
     "2024-05-01T12:00:10.420"),
    ("spring boot 3", "2024-05-01T12:00:10.420+09:00  WARN 47 --- [app] [ | p-1] o.a.k.Sender : {}",
     "WARN", "2024-05-01T12:00:10.420+09:00"),
    ("logstash", "[2024-05-01T12:00:10,420][WARN ][org.apache.kafka.Sender][main] {}", "WARN",
     "2024-05-01T12:00:10.420"),
    ("spark", "24/05/01 12:00:10 WARN Sender: {}", "WARN", "2024-05-01T12:00:10"),
    ("slf4j-simple", "[main] WARN org.apache.kafka.clients.producer.internals.Sender - {}", "WARN", None),
    ("level first", "WARN  2024-05-01 12:00:10,420 [main] o.a.k.Sender - {}", "WARN",
     "2024-05-01T12:00:10.420"),
    ("named month", "01 May 2024 12:00:10,420 WARN Sender - {}", "WARN", "2024-05-01T12:00:10.420"),
    ("day first", "31-05-2024 12:00:10.420 WARN Sender - {}", "WARN", "2024-05-31T12:00:10.420"),
    ("docker compose", "app-1  | [2024-05-01 12:00:10,420] WARN {} " + SENDER, "WARN",
     "2024-05-01T12:00:10.420"),
    ("CRI", "2024-05-01T03:00:10.420512345Z stderr F [2024-05-01 12:00:10,420] WARN {} " + SENDER,
     "WARN", "2024-05-01T12:00:10.420"),
    ("CRI, no time within", "2024-05-01T03:00:10.420Z stderr F WARN {}", "WARN",
     "2024-05-01T03:00:10.420Z"),
    ("syslog", "May  1 12:00:10 host app[12]: 2024-05-01 12:00:10.420 WARN Sender - {}", "WARN",
     "2024-05-01T12:00:10.420"),
    ("console prompt", ">>[2024-05-01 12:00:10,420] WARN {} " + SENDER, "WARN",
     "2024-05-01T12:00:10.420"),
    ("colours", "\x1b[2m2024-05-01 12:00:10.420\x1b[0;39m \x1b[33m WARN\x1b[0;39m Sender : {}", "WARN",
     "2024-05-01T12:00:10.420"),
    ("java.util.logging", "May 1, 2024 3:00:10 PM org.a.Sender completeBatch\nWARNING: {}", "WARNING",
     "2024-05-01T15:00:10"),
    ("logfmt", 'time="2024-05-01T12:00:10Z" level=warning msg="{}"', "WARNING", "2024-05-01T12:00:10Z"),
    ("bare", "{}", None, None),
    ("a comment", "# {}", None, None),
]  # fmt: skip

JSON_LAYOUTS = [
    ("ECS", '{"@timestamp":"2024-05-01T03:00:10.420Z","log.level":"WARN","message":%s,'
     '"log.logger":"o.a.k.Sender"}', "WARN", "2024-05-01T03:00:10.420Z"),
    ("logstash encoder", '{"@timestamp":"2024-05-01T12:00:10.420+09:00","@version":"1","message":%s,'
     '"level":"WARN","thread_name":"t"}', "WARN", "2024-05-01T12:00:10.420+09:00"),
    ("log4j2 JsonLayout", '{"instant":{"epochSecond":1714532410,"nanoOfSecond":420000000},'
     '"level":"WARN","loggerName":"o.a.k.Sender","message":%s}', "WARN", "2024-05-01T03:00:10.420Z"),
    ("logback JsonEncoder", '{"sequenceNumber":0,"timestamp":1714532410420,"level":"WARN",'
     '"loggerName":"o.a.k.Sender","message":%s,"throwable":null}', "WARN", "2024-05-01T03:00:10.420Z"),
    ("docker json-file", '{"log":%s,"stream":"stderr","time":"2024-05-01T03:00:10.420Z"}', None,
     "2024-05-01T03:00:10.420Z"),
]  # fmt: skip


@pytest.mark.parametrize(("layout", "form", "level", "ts"), LAYOUTS, ids=[c[0] for c in LAYOUTS])
def test_the_layout_gives_level_and_time(layout, form, level, ts):
    event = read_record(form.replace("{}", f"[Producer clientId=p-1] {RETRY}"))
    assert isinstance(event, Event)
    expected = RETRIED | {"client_id": "p-1", "level": level, "ts": ts}
    assert {name: getattr(event, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("layout", "form", "level", "ts"), JSON_LAYOUTS, ids=[c[0] for c in JSON_LAYOUTS]
)
def test_a_json_layout_gives_level_and_time(layout, form, level, ts):
    event = read_record(form % f'"[Producer clientId=p-1] {RETRY}"')
    assert isinstance(event, Event)
    expected = RETRIED | {"client_id": "p-1", "level": level, "ts": ts}
    assert {name: getattr(event, name) for name in expected} == expected
