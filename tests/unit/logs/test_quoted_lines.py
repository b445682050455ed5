"""Lines as people quote them: cut, broken, wrapped by their platform, beside what others print."""
# ruff: noqa: E501 - the lines of the table are log lines.

from __future__ import annotations

import pytest

from acktrail.logs.event import BACKGROUND, Event
from acktrail.logs.prefilter import may_be_evidence, words_of
from acktrail.logs.reader import read_record
from acktrail.logs.records import join_records

CASES = [
    (
        "librdkafka's refused request, which it sends again",
        "%7|1588299527.093|REQERR|pay-1#producer-1| [thrd:k-3:9092/2]: k-3:9092/2: ProduceRequest failed: "
        "Broker: Not leader for partition: actions Refresh,MsgNotPersisted",
        {"kind": "retry", "error": "Not leader for partition", "client_id": "pay-1#producer-1"}
        | {"node": 2, "level": "DEBUG"},
    ),
    (
        "librdkafka's refused messages, sent again to the new leader",
        "%7|1588299527.093|MSGSET|pay-1#producer-1| [thrd:k-3:9092/2]: k-3:9092/2: rates [4]: MessageSet with 3 "
        "message(s) (MsgId 8, BaseSeq 7) encountered error: Broker: Not leader for partition (actions "
        "Refresh,MsgNotPersisted)",
        {"kind": "retry", "topic": "rates", "partition": 4, "records": 3},
    ),
    (
        "librdkafka's own retry",
        "%7|1503777985.100|RETRY|pay-1#producer-1| [thrd:b1:9092/1]: b1:9092/1: Retrying ProduceRequest (v7, 190 "
        "bytes, retry 1/5, prev CorrId 12) in 100ms",
        {"kind": "retry", "client_id": "pay-1#producer-1", "node": 1, "attempts_left": None},
    ),
    (
        "the Scala client's retry",
        "[2015-03-12 10:22:33,111] INFO Back off for 100 ms before retrying send. Remaining retries = 2 "
        "(kafka.producer.async.DefaultEventHandler)",
        {"kind": "retry", "attempts_left": 2, "level": "INFO"},
    ),
    (
        "the Scala client's end of retries",
        "kafka producer threw exception, restarting {:exception=>#<KafkaError: Got FailedToSendMessageException: "
        "Failed to send messages after 3 tries.>, :level=>:warn}",
        {"kind": "send_failed", "error": "FailedToSendMessageException"},
    ),
    (
        "sarama before 2016",
        "producer/flusher/21 state change to [retrying] on bus.raw/89 because kafka server: Tried to send a "
        "message to a replica that is not the leader for some partition. Your metadata is out of date.",
        {"kind": "retry", "topic": "bus.raw", "partition": 89, "node": 21},
    ),
    (
        "librdkafka's refused request, given up",
        "%7|1588299527.093|REQERR|pay-1#producer-1| k-3:9092/2: ProduceRequest failed: Broker: Message size "
        "too large: actions Permanent,MsgNotPersisted",
        {"kind": "send_failed", "error": "Message size too large"},
    ),
    (
        "an old librdkafka's refused request, sent again",
        "%7|1588299527.093|REQERR|pay-1#producer-1| k-3:9092/2: ProduceRequest failed: Broker: Not leader for "
        "partition: explicit actions 0x4",
        {"kind": "retry", "error": "Not leader for partition"},
    ),
    (
        "librdkafka's refused request, through a logger of Python",
        "REQERR [pay-1#producer-1] [thrd:k-3:9092/2]: k-3:9092/2: ProduceRequest failed: Broker: Not leader for "
        "partition: actions Refresh,MsgNotPersisted",
        {"kind": "retry", "client_id": "pay-1#producer-1"},
    ),
    (
        "an application's failed request",
        "Publish request failed: Local: Message timed out",
        {"kind": "expired", "error": "Message timed out"},
    ),
    (
        "a delivery that failed behind a failed request",
        "Delivery failed after Metadata request failed: KafkaError{code=_MSG_TIMED_OUT,val=-192,str=\"x\"}",
        {"kind": "expired", "error": "_MSG_TIMED_OUT"},
    ),
    (
        "a connection that an old librdkafka gave up",
        "2016/11/19 21:07:41 *INFO* rdkafka#producer-43:BROKERFAIL:b7:9092/7: failed: err: Local: Message "
        "timed out: (errno: Unknown error)",
        {"kind": "connection_failure", "error": "BROKERFAIL", "client_id": "rdkafka#producer-43"},
    ),
    (
        "an expiry cut behind its partition",
        "org.apache.kafka.common.errors.TimeoutException: Expiring 7 record(s) for meter-readings-2",
        {"kind": "expired", "records": 7, "topic": "meter-readings", "partition": 2}
        | {"elapsed_ms": None, "error": "TimeoutException"},
    ),
    (
        "an expiry with its middle left out",
        "TimeoutException: Expiring N record(s) ... has passed since batch creation",
        {"kind": "expired", "records": None, "topic": None, "error": "TimeoutException"},
    ),
    (
        "kafka-python's expiry with its middle left out",
        "KafkaTimeoutError: Batch ... containing 12 record(s)",
        {"kind": "expired", "records": 12, "topic": None, "error": "KafkaTimeoutError"},
    ),
    (
        "an exception broken behind its colon",
        "org.apache.kafka.clients.producer.BufferExhaustedException:\n"
        "Failed to allocate 16384 bytes within the configured max blocking time 900 ms.",
        {"kind": "send_failed", "error": "BufferExhaustedException", "elapsed_ms": 900},
    ),
    (
        "an exception broken within its sentence",
        "org.apache.kafka.common.errors.NotEnoughReplicasException: The size of the current ISR Set(4) is\n"
        "insufficient to satisfy the min.isr requirement of 3 for partition ship-log-11",
        {"kind": "send_failed", "topic": "ship-log", "partition": 11},
    ),
    (
        "two times: the program's own counts",
        "2026-01-02T03:04:05.123456789Z 2026-01-02 04:04:05,006 INFO   ||  [Producer clientId=dbz] Disconnecting from node 3 due to request timeout.   [org.apache.kafka.clients.NetworkClient]",
        {"kind": "connection_failure", "ts": "2026-01-02T04:04:05.006", "client_id": "dbz", "node": 3},
    ),
    (
        "two times: a desktop's before every line of a block",
        "2026-01-02 06:04:05 [2026-01-02 03:04:05,006] INFO ProducerConfig values: \n"
        "2026-01-02 06:04:05     acks = -1\n2026-01-02 06:04:05     client.id = sink-7",
        {"kind": "config_block", "client_id": "sink-7", "ts": "2026-01-02T03:04:05.006"}
        | {"settings": {"acks": "-1", "client.id": "sink-7"}},
    ),
    (
        "ISR shrink without its prefix",
        "Shrinking ISR from Set(11, 12, 13) to Set(11)",
        {"kind": "isr_shrink", "topic": None, "isr_before": (11, 12, 13), "isr_after": (11,)},
    ),
    (
        "ISR shrink with everything masked",
        "[`when`] INFO [Partition `a`-`b` broker=`x`] Shrinking ISR from `x,y` to `x`. Leader: (highWatermark: 5, endOffset: 9).",
        {"kind": "isr_shrink", "topic": None, "level": "INFO", "ts": None},
    ),
    (
        "a truncation that the broker refused",
        "[2016-03-04 05:06:07,008] FATAL [ReplicaFetcherThread-0-4], Halting because log truncation is not allowed for topic ledger, Current leader 4's latest offset 10 is less than replica 5's latest offset 31 (kafka.server.ReplicaFetcherThread)",
        {"kind": "truncation", "detail": "refused", "topic": "ledger", "partition": None}
        | {"leader": 4, "broker": 5, "offset": 10, "level": "FATAL"},
    ),
    (
        "librdkafka's queue",
        "BufferError: Local: Queue full",
        {"kind": "send_failed", "error": "Queue full"},
    ),
    (
        "a report's words with more behind them",
        "publish failed: topic=orders reason=Local: Message timed out code=Local_MsgTimedOut",
        {"kind": "expired", "error": "Message timed out"},
    ),
    (
        ".NET's level",
        "fail: Shop.Outbox[0] Delivery failed: Broker: Not enough in-sync replicas",
        {"kind": "send_failed", "level": "ERROR", "error": "Not enough in-sync replicas"},
    ),
    (
        "kafkajs behind another logger's head",
        '[[03:04:05.006]] [ERROR] {"level":"ERROR","timestamp":"2026-01-02T03:04:05.005Z","logger":"kafkajs","message":"[Connection] Response Produce(key: 0, version: 7)","broker":"b:9092","clientId":"till-9","error":"This server is not the leader for that topic-partition","correlationId":88,"size":55}',
        {"kind": "retry", "client_id": "till-9", "correlation_id": 88, "level": "ERROR"}
        | {"ts": "2026-01-02T03:04:05.005Z", "error": "NOT_LEADER_FOR_PARTITION"},
    ),
    (
        "kafkajs, what a send failed of",
        '{"level":"ERROR","timestamp":"2026-01-02T03:04:05.005Z","logger":"kafkajs","message":"[Producer] Failed to send messages: The producer is disconnected","retryCount":0}',
        {"kind": "send_failed", "error": "The producer is disconnected"},
    ),
    (
        "kafkajs gave up connecting",
        "KafkaJSNumberOfRetriesExceeded: Connection error: connect ECONNREFUSED 10.9.8.7:9092",
        {"kind": "connection_failure", "error": "ECONNREFUSED"},
    ),
    (
        "sarama found no broker, cut",
        "Error: failed to create kafka producer: kafka: client has run out of available brokers",
        {"kind": "connection_failure"},
    ),
    (
        "Flink's words for a failed send",
        "Caused by: java.lang.Exception: Failed to send data to Kafka: The server disconnected before a response was received.",
        {"kind": "send_failed"},
    ),
    (
        "librdkafka without its severity",
        "|1606994129.988|FAIL|till#producer-2| [thrd:b:9092/0]: b:9092/0: Failed to resolve 'b:9092' (after 7ms in state CONNECT)",
        {"kind": "connection_failure", "level": None, "ts": "2020-12-03T11:15:29.988Z"}
        | {"elapsed_ms": 7, "client_id": "till#producer-2"},
    ),
    (
        "librdkafka in backquotes",
        "`%3|1606994129.988|FAIL|till#producer-2| [thrd:app]: b:9092/0: Connect failed`",
        {"kind": "connection_failure", "level": "ERROR"},
    ),
    (
        "kafka-python, a gap in the sequence",
        "ERROR:kafka.producer.sender:<KafkaProducer client_id=kp-4 transactional_id=None>: The broker received an out of order sequence number for topic-partition TopicPartition(topic='t-z', partition=6) at offset -1. This indicates data loss on the broker, and should be investigated.",
        {"kind": "fatal_sequence", "topic": "t-z", "partition": 6, "client_id": "kp-4"},
    ),
    (
        "kafka-python, records in doubt",
        "INFO:kafka.producer.transaction_manager:No inflight batches remaining for TopicPartition(topic='t', partition=1), last ack'd sequence for partition is 4, next sequence is 9. Going to reset producer state.",
        {"kind": "sequence_reset", "topic": "t", "partition": 1, "records": 4},
    ),
    (
        "kcat finds no broker",
        "% ERROR: Local: Host resolution failure: b-7:9092/1: Failed to resolve 'b-7:9092': nodename nor servname provided, or not known (after 6ms in state CONNECT)",
        {"kind": "connection_failure", "error": "Host resolution failure", "elapsed_ms": 6}
        | {"level": "ERROR"},
    ),
]  # fmt: skip

NOTHING = [
    ("an upload's retry", "Upload failed, retrying (3 attempts left). Error: ECONNRESET"),
    ("a sink's bulk request", "[2026-01-02 03:04:05,006] WARN Bulk request failed, retrying (4 attempts left). Error: TIMEOUT (io.x.ElasticsearchClient)"),
    ("a sink task", "[2026-01-02 03:04:05,006] WARN [sink|task-0] WorkerSinkTask{id=es-0} RetriableException from SinkTask: retrying (org.apache.kafka.connect.runtime.WorkerSinkTask:612)"),
    ("kafkajs, a good answer", '{"level":"DEBUG","timestamp":"2026-01-02T03:04:05.005Z","logger":"kafkajs","message":"[Connection] Response Produce(key: 0, version: 5)","clientId":"p","correlationId":25,"data":{"topics":[]}}'),
    ("kafkajs, a consumer by its name", '{"level":"ERROR","timestamp":"2026-01-02T03:04:05.005Z","logger":"kafkajs","message":"[Connection] Connection error: write after end","clientId":"stock-consumer-2"}'),
    ("a consumer by its service's name", "consumer_1   | kafka.errors.NoBrokersAvailable: NoBrokersAvailable"),
    ("a subscription", 'KafkaError{code=UNKNOWN_TOPIC_OR_PART,val=3,str="Subscribed topic not available: a: Broker: Unknown topic or partition"}'),
    ("the end of a partition", 'error: KafkaError{code=_PARTITION_EOF,val=-191,str="Fetch from broker 0 reached end"}'),
    ("an admin call", "org.apache.kafka.common.errors.TimeoutException: Timed out waiting to send the call. Call: describeTopics"),
    ("a position", "org.apache.kafka.common.errors.TimeoutException: Timeout of 60000ms expired before the position for partition o-0 could be determined"),
    ("a group", "org.apache.kafka.common.errors.GroupAuthorizationException: Not authorized to access group: g"),
    ("a topic that is there", "org.apache.kafka.common.errors.TopicExistsException: Topic 'o' already exists."),
    ("a deserializer", "org.apache.kafka.common.errors.SerializationException: Error deserializing key/value for partition o-0 at offset 5."),
    ("a fetcher", "[2026-01-02 03:04:05,006] INFO [ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] Retrying leaderEpoch request for partition x-0 as the leader reported an error: UNKNOWN_TOPIC_OR_PARTITION (kafka.server.ReplicaFetcherThread)"),
    ("a fetch session", "INFO o.a.k.clients.FetchSessionHandler - [Consumer clientId=c, groupId=g] Error sending fetch request (sessionId=1, epoch=2) to node 1: org.apache.kafka.common.errors.DisconnectException."),
    ("a consumer's topic", "[Consumer clientId=c, groupId=g] Received unknown topic or partition error in fetch for partition t-0"),
    ("librdkafka's retry of a request without messages", "%7|1503777985.100|RETRY|p#producer-1| [thrd:b1:9092/1]: b1:9092/1: Retrying MetadataRequest (v4, 39 bytes, retry 1/2, prev CorrId 3) in 100ms"),
    ("an old librdkafka's request, undecided", "%7|1588299527.093|REQERR|p#producer-1| k-3:9092/2: ProduceRequest failed: Local: Timed out in queue: explicit actions 0x0"),
    ("an old librdkafka's consumer", "2016/11/19 21:07:41 *INFO* rdkafka#consumer-43:BROKERFAIL:b7:9092/7: failed: err: Local: Broker transport failure: (errno: x)"),
    ("the Scala client's last word before its exception", "INFO Back off for 100 ms before retrying send. Remaining retries = 0 (kafka.producer.async.DefaultEventHandler)"),
    ("librdkafka's metadata", "%4|1434713706.863|METADATA|rdkafka#producer-1| 10.0.0.4:9092/2: Metadata request failed: Local: Message timed out"),
    ("librdkafka's leader query", "%7|1588299527.093|BROKERUA|rdkafka#producer-1| [thrd:k-3:9092/2]: rates [0]: broker unavailable: produce: Broker: Not leader for partition"),
    ("an HTTP client", "I/O exception (java.net.SocketException) caught when processing request to {}->http://h:80: Connection reset, retrying request"),
]  # fmt: skip


@pytest.mark.parametrize(("case", "text", "expected"), CASES, ids=[c[0] for c in CASES])
def test_a_quoted_line_is_read(case, text, expected):
    records = list(join_records(text.encode().splitlines(keepends=True)))
    assert [r.text.decode() for r in records] == [text]
    assert may_be_evidence(records[0].text)
    event = read_record(text)
    assert isinstance(event, Event), event
    assert {name: getattr(event, name) for name in expected} == expected
    assert any(word in text for word in words_of(event.side)), "put aside before it was read"


@pytest.mark.parametrize(("case", "text"), NOTHING, ids=[c[0] for c in NOTHING])
def test_what_others_print_is_nothing(case, text):
    event = read_record(text)
    assert event is None or (isinstance(event, Event) and event.kind in BACKGROUND)
