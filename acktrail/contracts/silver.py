"""Silver: typed facts, one meaning whatever the source spelt; written by Spark's tasks."""

from __future__ import annotations

from acktrail.contracts.table import Column, Table
from acktrail.contracts.vocabulary import Tier

_CLUSTER = Column("cluster", "string", "Name of the Kafka cluster.", required=True)
_EVENT_KEY = Column(
    "event_key",
    "string",
    "Identifies the event: rows about one event (a loss printed once per record, an election by "
    "each controller) share it.",
    required=True,
)
_RECORD_KEY = Column(
    "record_key", "string", "source/file_id/position of the log record.", required=True
)
_HOUR = Column(
    "hour",
    "string",
    "UTC hour of the fact, e.g. 2026-01-31T07; 'undated' where it has no time.",
    required=True,
)

_INCREASE = Column(
    "increase", "double", "For totals: growth since the number before, resets counted from 0."
)
_GROWN_IN = Column(
    "elapsed_ms",
    "long",
    "For totals: the time of that growth; of a series that began with its first event, since the "
    "target's samples before it.",
)

_EVENT_COLUMNS = (
    _CLUSTER,
    _EVENT_KEY,
    _RECORD_KEY,
    Column("source", "string", "Name of the source in the settings.", required=True),
    Column("host", "string", "Host that wrote the log."),
    Column("kind", "string", "What happened.", required=True),
    Column("detail", "string", "Which wording it was: finer than the kind."),
    Column(
        "at", "timestamp", "Time printed in the line; where it has none, of the shipper, else null."
    ),
    Column("level", "string", "Level printed in the line."),
    Column("logger", "string", "Logger as printed."),
    Column("thread", "string", "Thread as printed."),
    Column("client_id", "string", "Client id, from the message prefix or the thread name."),
    Column("topic", "string", "Topic."),
    Column("partition", "long", "Partition."),
    Column("error", "string", "Error code name or exception class."),
    Column("message", "string", "The error's own message."),
    Column("node", "long", "Broker id in the message."),
)

PRODUCER_EVENTS = Table(
    name="producer_events",
    layer="silver",
    doc="Events about produce requests in client and broker logs.",
    grain=("cluster", "record_key"),
    partition=("hour",),
    columns=(
        *_EVENT_COLUMNS,
        Column("transactional_id", "string", "Transactional id, where printed."),
        Column("correlation_id", "long", "Correlation id of the request."),
        Column("attempts_left", "long", "As printed: what remains after the announced retry."),
        Column("records", "long", "Records in the batch, where printed."),
        Column("elapsed_ms", "long", "Elapsed time printed in the message."),
        Column(
            "client_version",
            "string",
            "Client version, if the line contains it; for other lines of a client see client_configs.",
        ),
        Column(
            "retriable",
            "boolean",
            "Whether clients retry the error: those of this version, else the newest.",
        ),
        Column("category", "string", "What kind of error it is."),
        _HOUR,
    ),
)

CONSUMER_EVENTS = Table(
    name="consumer_events",
    layer="silver",
    doc="Events of consumers in logs: poll timeout, leave group, rebalance, reset, failed commit.",
    grain=("cluster", "record_key"),
    partition=("hour",),
    columns=(
        *_EVENT_COLUMNS,
        Column("group", "string", "Consumer group."),
        Column("offset", "long", "Offset in the message."),
        Column("elapsed_ms", "long", "Elapsed time printed in the message."),
        _HOUR,
    ),
)

BROKER_EVENTS = Table(
    name="broker_events",
    layer="silver",
    doc="Events in broker and controller logs: append errors, ISR changes, truncations, elections.",
    grain=("cluster", "record_key"),
    partition=("hour",),
    columns=(
        *_EVENT_COLUMNS,
        Column("broker", "long", "Broker id that printed the line."),
        Column("topic_id", "string", "Topic id, where printed."),
        Column("offset", "long", "Offset in the message (truncation, reset)."),
        Column("high_watermark", "long", "High watermark printed."),
        Column("leader_epoch", "long", "Leader epoch after the change."),
        Column("leader", "long", "Leader after the change."),
        Column("isr_before", "longs", "In-sync replicas before."),
        Column("isr_after", "longs", "In-sync replicas after."),
        Column("correlation_id", "long", "Correlation id of the request."),
        _HOUR,
    ),
)

UNREAD_RECORDS = Table(
    name="unread_records",
    layer="silver",
    doc="What looked like evidence and could not be read.",
    grain=("cluster", "record_key"),
    partition=("day",),
    columns=(
        _CLUSTER,
        _RECORD_KEY,
        Column("source", "string", "Name of the source in the settings.", required=True),
        Column("host", "string", "Host that wrote the log."),
        Column("path", "string", "File."),
        Column("reason", "string", "What looked like evidence in it.", required=True),
        Column("text", "string", "The record, shortened.", required=True),
        Column("day", "string", "UTC day of reading.", required=True),
    ),
)

CLIENT_CONFIGS = Table(
    name="client_configs",
    layer="silver",
    doc="The effective settings a client printed at its start, and the guarantee they give.",
    grain=("cluster", "record_key"),
    partition=("day",),
    columns=(
        _CLUSTER,
        _RECORD_KEY,
        Column("source", "string", "Name of the source in the settings.", required=True),
        Column("host", "string", "Host that wrote the log."),
        Column("role", "string", "producer or consumer.", required=True),
        Column("client_id", "string", "Client id."),
        Column("started_at", "timestamp", "Time of the block."),
        Column("client_version", "string", "Version printed beside it, where known."),
        Column("acks", "string", "0, 1 or all."),
        Column("retries", "long", "Retries."),
        Column(
            "delivery_timeout_ms", "long", "delivery.timeout.ms; null where the version has none."
        ),
        Column("request_timeout_ms", "long", "request.timeout.ms."),
        Column("linger_ms", "long", "linger.ms."),
        Column("max_block_ms", "long", "max.block.ms."),
        Column("retry_backoff_ms", "long", "retry.backoff.ms."),
        Column("retry_backoff_max_ms", "long", "retry.backoff.max.ms; null before 3.7."),
        Column("max_in_flight", "long", "max.in.flight.requests.per.connection."),
        Column("idempotent", "boolean", "Whether idempotence is really on."),
        Column(
            "guarantee",
            "string",
            "none (acks=1), at_most_once, at_least_once or exactly_once_per_partition.",
        ),
        Column("ordered", "boolean", "Whether retries keep the order."),
        Column("overridden", "attributes", "Settings that differ from the version's defaults."),
        Column("settings", "attributes", "All settings as printed, secrets left out."),
        Column("day", "string", "UTC day of reading.", required=True),
    ),
)

CLIENT_METRICS = Table(
    name="client_metrics",
    layer="silver",
    doc="One canonical producer metric of one client at one time.",
    grain=("cluster", "source", "series", "at"),
    partition=("hour",),
    columns=(
        _CLUSTER,
        Column("source", "string", "Name of the source.", required=True),
        Column("series", "string", "Series of the sample.", required=True),
        Column("instance", "string", "Target the sample came from."),
        Column("host", "string", "Host of the target, after alias rules."),
        Column("client_id", "string", "Client id."),
        Column("topic", "string", "Topic; null for the client as a whole."),
        Column("node", "long", "Broker id; null for the client as a whole."),
        Column("metric", "string", "Canonical name, e.g. record-error-total.", required=True),
        Column("at", "timestamp", "Time of the sample.", required=True),
        Column("value", "double", "The value; null where it was not a number."),
        _INCREASE,
        _GROWN_IN,
        Column("rate_per_s", "double", "increase / elapsed; for rates, the value."),
        _HOUR,
    ),
)

BROKER_METRICS = Table(
    name="broker_metrics",
    layer="silver",
    doc="One canonical broker metric at one time; all-topics and per-topic series are apart.",
    grain=("cluster", "source", "series", "at"),
    partition=("hour",),
    columns=(
        _CLUSTER,
        Column("source", "string", "Name of the source.", required=True),
        Column("series", "string", "Series of the sample.", required=True),
        Column("instance", "string", "Target the sample came from."),
        Column("broker", "long", "Broker id, from an alias rule, a label or the target's name."),
        Column("topic", "string", "Topic; null for all topics together."),
        Column("request", "string", "Request kind, for errors by request."),
        Column("error", "string", "Error code name, for errors by request."),
        Column(
            "metric", "string", "Canonical name, e.g. failed-produce-requests-total.", required=True
        ),
        Column("at", "timestamp", "Time of the sample.", required=True),
        Column("value", "double", "The value; null where it was not a number."),
        _INCREASE,
        _GROWN_IN,
        Column("rate_per_s", "double", "increase / elapsed; for rates, the value."),
        _HOUR,
    ),
)

CLIENT_SIGHTINGS = Table(
    name="client_sightings",
    layer="silver",
    doc="The names of a producer in one kind of evidence, day by day.",
    grain=("cluster", "client_id", "host", "evidence", "session", "instance", "day"),
    partition=("day",),
    columns=(
        _CLUSTER,
        Column("client_id", "string", "Client id.", required=True),
        Column("host", "string", "Host after alias rules; empty where unknown.", required=True),
        Column("evidence", "string", "logs, metrics or audits.", required=True),
        Column("session", "string", "Audit session; empty where it has none.", required=True),
        Column("instance", "string", "Metrics target; null for other evidence."),
        Column("first_seen_at", "timestamp", "Earliest evidence of the day."),
        Column("last_seen_at", "timestamp", "Latest evidence of the day."),
        Column("first_received_at", "timestamp", "Earliest receipt of the day; of audits only."),
        Column("day", "string", "UTC day that the evidence is kept under.", required=True),
    ),
)

CLIENTS = Table(
    name="clients",
    layer="silver",
    doc="The join key: which log host, metrics instance, client id and audit session are one producer.",
    grain=("cluster", "client_id", "host", "session"),
    columns=(
        _CLUSTER,
        Column("client_id", "string", "Client id.", required=True),
        Column("host", "string", "Host after alias rules; empty where unknown.", required=True),
        Column("session", "string", "Audit session; empty where it has none.", required=True),
        Column("instance", "string", "Metrics target, where one matched."),
        Column("in_logs", "boolean", "Seen in logs.", required=True),
        Column("in_metrics", "boolean", "Seen in metrics.", required=True),
        Column("in_audits", "boolean", "Seen in audits.", required=True),
        Column("first_seen_at", "timestamp", "Earliest evidence."),
        Column("last_seen_at", "timestamp", "Latest evidence."),
    ),
)

AUDIT_PARTS = Table(
    name="audit_parts",
    layer="silver",
    doc="Audit reports with their bucket, so that a block's evidence is found without reading all.",
    grain=(
        "cluster",
        "reporter",
        "session",
        "topic",
        "partition",
        "tier",
        "group",
        "block",
        "part",
        "number",
    ),
    partition=("bucket",),
    columns=(
        _CLUSTER,
        Column("reporter", "string", "Who reports.", required=True),
        Column("session", "string", "Producer instance; empty for offsets only.", required=True),
        Column("topic", "string", "Topic.", required=True),
        Column("topic_id", "string", "Topic id, where known."),
        Column("partition", "long", "Partition, or -1.", required=True),
        Column("tier", "string", "Where the ids were seen.", required=True, values=Tier),
        Column("group", "string", "Consumer group.", required=True),
        Column("block", "long", "seq >> 15; -1 for rows without ids.", required=True),
        Column("part", "long", "Part of the block within the reporter.", required=True),
        Column("number", "long", "Report number.", required=True),
        Column("leader_epoch", "long", "Highest leader epoch seen, where known."),
        Column("first_offset", "long", "Lowest offset covered, where known."),
        Column("last_offset", "long", "Highest offset covered, where known."),
        Column("records", "long", "Records seen, duplicates included.", required=True),
        Column("ids", "binary", "Run list of the ids within the block."),
        Column("steps_back", "long", "Steps back of seq, where reported."),
        Column("assignment", "long", "For consumed: number of the assignment; null: not known."),
        Column(
            "error",
            "string",
            "Error name, for failed and indeterminate; else empty.",
            required=True,
        ),
        Column("settings", "attributes", "Of the session."),
        Column("minutes", "longs", "Pairs of epoch minute and first seq created in it."),
        Column("began_ms", "long", "Earliest event covered, epoch milliseconds."),
        Column("ended_ms", "long", "Latest event covered, epoch milliseconds."),
        Column(
            "reported_ms", "long", "When the report was made, epoch milliseconds.", required=True
        ),
        Column("latency_p50_ms", "long", "Create to delivered, median."),
        Column("latency_p99_ms", "long", "Create to delivered, 99th percentile."),
        Column("latency_max_ms", "long", "Create to delivered, highest."),
        Column(
            "closed", "boolean", "The reporter ended, or the scan reached its end.", required=True
        ),
        Column("exited", "boolean", "The session's process is known to have ended."),
        Column("unnamed", "binary", "For scanned: run list of the offsets without an id."),
        Column(
            "outcomes", "attributes", "For heartbeats: block >> 6 to ids with an outcome so far."
        ),
        Column(
            "dropped",
            "attributes",
            "For heartbeats: tier to number of ids whose evidence was dropped.",
        ),
        Column(
            "after_ms", "long", "Receipts up to this one were in the lake when the request began."
        ),
        Column("received_ms", "long", "When the agent received it, epoch milliseconds."),
        Column(
            "bucket",
            "string",
            "Session's start hour and block >> 6; 'offsets' for rows without a session.",
            required=True,
        ),
    ),
)

_PART = (
    Column("reporter", "string", "Who reports.", required=True),
    Column("part", "long", "Part of the block within the reporter.", required=True),
    Column("number", "long", "Report number; the highest of a part is kept.", required=True),
    Column(
        "ids", "binary", "Run list of the ids within the block; see docs/wire.md.", required=True
    ),
    Column("records", "long", "Records seen, duplicates included.", required=True),
    Column("leader_epoch", "long", "Highest leader epoch seen, where known."),
    Column("first_offset", "long", "Lowest offset covered, where known."),
    Column("last_offset", "long", "Highest offset covered, where known."),
    Column("began_ms", "long", "Earliest event covered, epoch milliseconds."),
    Column("ended_ms", "long", "Latest event covered, epoch milliseconds."),
    Column("steps_back", "long", "Steps back of seq, where reported."),
    Column("latency_p50_ms", "long", "Create to delivered, median."),
    Column("latency_p99_ms", "long", "Create to delivered, 99th percentile."),
    Column("latency_max_ms", "long", "Create to delivered, highest."),
    Column(
        "error", "string", "Error name, for failed and indeterminate; else empty.", required=True
    ),
    Column("topic_id", "string", "Topic id, where known."),
    Column("after_ms", "long", "For in_log: receipts up to this one were in the lake before."),
    Column("received_ms", "long", "When the agent received it, epoch milliseconds."),
)

AUDIT_BLOCKS = Table(
    name="audit_blocks",
    layer="silver",
    doc="The ids of one block seen at one tier, as a bitmap: newest within a part, OR over parts and reporters.",
    grain=("cluster", "session", "topic", "partition", "tier", "group", "block"),
    partition=("bucket",),
    columns=(
        _CLUSTER,
        Column("session", "string", "Producer instance.", required=True),
        Column("topic", "string", "Topic.", required=True),
        Column("partition", "long", "Partition, or -1.", required=True),
        Column("tier", "string", "Where the ids were seen.", required=True, values=Tier),
        Column("group", "string", "Consumer group; empty except for delivered.", required=True),
        Column("block", "long", "seq >> 15.", required=True),
        Column(
            "bitmap",
            "binary",
            "4,096 bytes; bit i of byte i // 8 (lowest first) is seq block * 32768 + i.",
            required=True,
        ),
        Column("ids", "long", "Bits set.", required=True),
        Column("records", "long", "Records seen, duplicates included.", required=True),
        Column(
            "steps_back",
            "long",
            "Times a seq was lower than the one before it, in offset order.",
            required=True,
        ),
        Column(
            "parts",
            "structs",
            "The newest report of each part of the block, by reporter and part.",
            required=True,
            fields=_PART,
            former="binary",
        ),
        Column("errors", "attributes", "Error name to number of ids."),
        Column("first_offset", "long", "Lowest offset, where known."),
        Column("last_offset", "long", "Highest offset, where known."),
        Column("first_at", "timestamp", "Earliest event."),
        Column("last_at", "timestamp", "Latest event."),
        Column("first_received_at", "timestamp", "Earliest receipt of its parts."),
        Column(
            "bucket",
            "string",
            "Session's start hour and block >> 6: old evidence goes quiet.",
            required=True,
        ),
    ),
)

SILVER = (
    PRODUCER_EVENTS,
    CONSUMER_EVENTS,
    BROKER_EVENTS,
    UNREAD_RECORDS,
    CLIENT_CONFIGS,
    CLIENT_METRICS,
    BROKER_METRICS,
    CLIENT_SIGHTINGS,
    CLIENTS,
    AUDIT_PARTS,
    AUDIT_BLOCKS,
)
