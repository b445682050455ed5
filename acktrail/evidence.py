"""The words that agents keep a record for: some of them stand in everything that can be read."""

from __future__ import annotations

EVIDENCE: tuple[bytes, ...] = (
    b"produce response",  # retry, split and retry
    b"roduce request",  # invalid metadata, unknown topic, acks=0 close
    b"attempts left",  # a retry line cut or wrapped by its author
    b"record(s)",  # every wording of a batch that expired
    b"Batch Expired",  # Kafka 0.9
    b"metadata after",  # max.block.ms ran out
    b"fetching metadata",
    b"recoverable issue",  # the same since 3.9
    b"max blocking time",  # buffer.memory full
    b"when serialized which is larger",
    b"Producer terminating with",  # librdkafka, closed with messages in its queue
    b"kafka.common.errors.",  # an exception the application printed
    b"SequenceException",  # exceptions printed without their package
    b"FencedException",
    b"EpochException",
    b"ReplicasException",
    b"FollowerException",
    b"PartitionException",
    b"AuthorizationException",
    b"NetworkException",
    b"TimeoutException",
    b"TooLargeException",
    b"ExhaustedException",
    b"kafka.clients.producer.",  # BufferExhaustedException, loggers of the producer
    b"kafka.common.KafkaException",
    b"sending",  # Error when sending, Exception thrown when sending, Error encountered sending
    b"afka producer",  # Failed to construct kafka producer
    b"Failed to produce",  # sarama
    b"ailed to send",
    b"ailed to publish",
    b"rror publishing",
    b"rror producing",
    b"nable to send",
    b"nable to publish",
    b"producer send callback",  # Connect
    b"to write to Kafka",  # SmallRye
    b"batch to Kafka failed",  # Logstash
    b"ailed to deliver",
    b"elivery failed",  # kcat, applications' delivery callbacks
    b"The broker returned",
    b"out of order sequence",
    b"inflight batches",
    b"fatal error",
    b"Fatal error",
    b"error state due to",
    b"force close",
    b"closed forcefully",
    b"producer has been closed",
    b"could not be established",
    b"Error connecting to node",
    b"-- refreshing metadata",  # kafka-python
    b"Connection to node ",  # failed authentication, or cut by whoever quoted it
    b"isconnect",  # disconnected, Disconnecting
    b"ProduceResponse",
    b"Reordered incoming",
    b"values:",  # ProducerConfig values:, ConsumerConfig values:
    b"Kafka version",
    b"Idempotence will be disabled",
    b"#producer-",  # librdkafka instances
    b"[thrd:",
    b"RDKAFKA-",  # librdkafka before 0.8.6
    b"REQTMOUT",
    b"ms in state ",
    b"/bootstrap: ",
    b"KafkaError",
    b"NoBrokersAvailable",  # kafka-python
    b"<BrokerConnection client_id=",
    b"[Error ",
    b"Unable to bootstrap from",  # aiokafka
    b"ProduceRequest (#",
    b"Unable connect to node",  # aiokafka
    b"to broker",  # sarama, franz-go: Failed to connect to broker
    b"error writing messages",  # kafka-go
    b"(*Client).Produce",
    b"Not Leader For Partition",
    b"Leader Not Available",
    b"Unknown Topic Or Partition",
    b"Request Timed Out",
    b"Message Size Too Large",
    b"Not Enough Replicas",
    b"ble to produce",  # franz-go: unable to produce record
    b"produce request failed",
    b"Kafka publish failed",  # Beats
    b"Kafka (topic=",
    b"Cannot produce to",  # ruby-kafka
    b"Failed to send all messages",
    b"seed broker",
    b"KafkaTimeoutError",
    b"Local: ",  # librdkafka's own errors
    b"Broker: ",  # librdkafka's texts for broker errors
    b"brokers are down",
    b"state change to [",  # sarama: state change to [retrying-2]
    b"Retrying batch",
    b"requeueing batch",
    b"before retrying send",  # the Scala client before 0.11
    b"FailedToSendMessage",
    b"kafka server:",  # sarama's texts for broker errors
    b"kafka: ",
    b"kafkajs",
    b"KafkaJS",
    b"append operation",  # broker: append error
    b" ISR ",  # Shrinking ISR, Expanding ISR, current ISR
    b"Truncating",
    b"log truncation",
    b"etch offset",  # Reset fetch offset, Fetch offset out of range
    b"high watermark",
    b"NCLEAN",  # UNCLEAN partition change
    b"unclean leader",
    b"marked as RECOVERING",
    b"No broker in ISR",
    b"with ack=0",
    b"max.poll.interval.ms",  # consumers: poll timeout
    b"LeaveGroup",
    b"esetting offset",  # Resetting offset for partition
    b"out of range for partition",
    b"ffset commit",  # Offset commit failed
    b"CommitFailed",
    b"rebalanc",
    b"revoke",
    b"artitions assigned",
    b"assigned partitions",
)
"""A record that holds none of these is no evidence. A superset: the reading decides."""
