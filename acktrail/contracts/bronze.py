"""Bronze: raw evidence as the agents found it, append only, written by delta-rs."""

from __future__ import annotations

from acktrail.contracts.table import Column, Table
from acktrail.contracts.vocabulary import Tier

_CLUSTER = Column(
    "cluster", "string", "Name of the Kafka cluster, from the settings.", required=True
)
_SOURCE = Column("source", "string", "Name of the source in the settings.", required=True)
_DAY = Column("day", "string", "UTC day of reading, e.g. 2026-01-31.", required=True)
_READ_AT = Column("read_at", "timestamp", "When the agent read it.", required=True)
_AFTER_AT = Column(
    "after_at",
    "timestamp",
    "Newest `read_at` of the cluster in `audit_reports` when this request began; 1970: none; null: not known.",
)

LOG_RECORDS = Table(
    name="log_records",
    layer="bronze",
    doc="One log event with its continuation lines, kept because it may be evidence.",
    grain=("cluster", "source", "file_id", "position"),
    partition=("day",),
    columns=(
        _CLUSTER,
        _SOURCE,
        Column("host", "string", "Host that wrote the log, from the settings or the shipper."),
        Column(
            "file_id",
            "string",
            "Identity of the file (hash of its first bytes) or topic-partition.",
            required=True,
        ),
        Column("path", "string", "Path of the file, or the topic, when it was read."),
        Column(
            "position",
            "long",
            "First byte of the record in the file, or its Kafka offset.",
            required=True,
        ),
        Column("line", "long", "Number of its first line in the file, from 1, where known."),
        Column(
            "text",
            "string",
            "The record, credentials redacted, undecodable bytes replaced.",
            required=True,
        ),
        Column("marker", "string", "The literal that made it worth keeping."),
        Column("truncated", "boolean", "The record was longer than is kept.", required=True),
        Column("zone", "string", "Time zone of timestamps without an offset, from the settings."),
        Column("shipped_at", "timestamp", "Second timestamp, given by the shipper or container."),
        _READ_AT,
        _DAY,
    ),
)

METRIC_SAMPLES = Table(
    name="metric_samples",
    layer="bronze",
    doc="One sample of one series, with the name and labels as they were spelt.",
    grain=("cluster", "source", "series", "at"),
    partition=("day",),
    columns=(
        _CLUSTER,
        _SOURCE,
        Column("instance", "string", "Target the sample came from (host:port), where known."),
        Column("metric", "string", "Metric name as spelt by the exporter.", required=True),
        Column("labels", "attributes", "Labels as given, without the metric name."),
        Column("series", "string", "Hash of instance, name and labels.", required=True),
        Column("at", "timestamp", "Time of the sample.", required=True),
        Column("value", "double", "The value; NaN is kept as NaN.", required=True),
        Column(
            "scrape_error", "string", "Set where the target could not be read: a gap, not a zero."
        ),
        _READ_AT,
        _DAY,
    ),
)

AUDIT_REPORTS = Table(
    name="audit_reports",
    layer="bronze",
    doc="One report about a set of ids (or a range of offsets) seen at one tier; see docs/wire.md.",
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
    partition=("day",),
    columns=(
        _CLUSTER,
        _SOURCE,
        Column(
            "reporter",
            "string",
            "Who reports: 16 random bytes per process start, as hex.",
            required=True,
        ),
        Column(
            "session",
            "string",
            "Producer instance; empty where the row is about offsets only.",
            required=True,
        ),
        Column("topic", "string", "Topic.", required=True),
        Column("topic_id", "string", "Topic id, where known: a re-created topic is another one."),
        Column("partition", "long", "Partition, or -1 where the id has none.", required=True),
        Column("tier", "string", "Where the ids were seen.", required=True, values=Tier),
        Column(
            "group",
            "string",
            "Consumer group; empty except for delivered and consumed.",
            required=True,
        ),
        Column("block", "long", "seq >> 15; -1 for rows without ids.", required=True),
        Column("part", "long", "Part of the block within the reporter.", required=True),
        Column("number", "long", "Report number: the newest wins within a part.", required=True),
        Column("leader_epoch", "long", "Highest leader epoch seen for these records, where known."),
        Column("first_offset", "long", "Lowest offset covered, where known."),
        Column("last_offset", "long", "Highest offset covered, where known."),
        Column("records", "long", "Records seen, duplicates included.", required=True),
        Column(
            "ids",
            "binary",
            "Run list of the ids within the block, with offsets where known; see docs/wire.md.",
        ),
        Column(
            "steps_back", "long", "Times a seq was lower than the one before it, in offset order."
        ),
        Column("redelivered", "long", "Records at or below an offset already seen by this member."),
        Column(
            "assignment",
            "long",
            "For consumed: number of the partition's assignment within the reporter; a jump within one is its own.",
        ),
        Column(
            "errors", "attributes", "Error name to number of ids, for failed and indeterminate."
        ),
        Column(
            "settings",
            "attributes",
            "Settings of the session (acks, retries, client_id, host ...); only in heartbeats.",
        ),
        Column("minutes", "longs", "Pairs of epoch minute and first seq created in it."),
        Column("began_at", "timestamp", "Earliest event covered; for a scan, when it began."),
        Column("ended_at", "timestamp", "Latest event covered; for a scan, when it ended."),
        Column("latency_p50_ms", "long", "Create to delivered, median."),
        Column("latency_p99_ms", "long", "Create to delivered, 99th percentile."),
        Column("latency_max_ms", "long", "Create to delivered, highest."),
        Column(
            "closed",
            "boolean",
            "The reporter ended normally with this report; of a scan: it reached its end.",
            required=True,
        ),
        Column(
            "exited",
            "boolean",
            "For heartbeats: the session's process is known to have ended, normally or not.",
        ),
        Column(
            "unnamed",
            "binary",
            "For scanned: run list of the offsets, counted from first_offset, of records without an id.",
        ),
        Column(
            "outcomes",
            "attributes",
            "For heartbeats: block >> 6 to the number of its ids whose outcome was reported so far.",
        ),
        Column(
            "dropped",
            "attributes",
            "For heartbeats: tier to the number of ids whose evidence the reporter threw away.",
        ),
        Column("reported_at", "timestamp", "When the report was made.", required=True),
        _AFTER_AT,
        Column(
            "read_at",
            "timestamp",
            "When the agent received it; later than every `read_at` of the cluster committed before it.",
            required=True,
        ),
        _DAY,
    ),
)

CLUSTER_STATES = Table(
    name="cluster_states",
    layer="bronze",
    doc="What the cluster reported about one partition at one time.",
    grain=("cluster", "topic", "topic_id", "partition", "at"),
    partition=("day",),
    columns=(
        _CLUSTER,
        _SOURCE,
        Column("topic", "string", "Topic.", required=True),
        Column(
            "topic_id", "string", "Topic id; empty where the cluster gives none.", required=True
        ),
        Column("partition", "long", "Partition.", required=True),
        Column("at", "timestamp", "Time of the answer.", required=True),
        Column("earliest_offset", "long", "First offset still in the log."),
        Column(
            "latest_offset", "long", "End of the log as a consumer may read it (high watermark)."
        ),
        Column(
            "leader_epoch",
            "long",
            "Leader epoch of the last record before the end, as list_offsets answered.",
        ),
        Column("leader", "long", "Broker id of the leader; -1 for none."),
        Column("replicas", "longs", "Broker ids of the replicas."),
        Column("isr", "longs", "Broker ids in sync."),
        _AFTER_AT,
        _READ_AT,
        _DAY,
    ),
)

CLUSTER_CONFIGS = Table(
    name="cluster_configs",
    layer="bronze",
    doc="A topic's or broker's settings that bear on delivery, one row when one changed.",
    grain=("cluster", "entity_kind", "entity", "at"),
    partition=("day",),
    columns=(
        _CLUSTER,
        _SOURCE,
        Column("entity_kind", "string", "topic or broker.", required=True),
        Column("entity", "string", "Topic name or broker id.", required=True),
        Column("at", "timestamp", "When the agent saw the change.", required=True),
        Column("settings", "attributes", "Setting to value, secrets left out."),
        _AFTER_AT,
        _READ_AT,
        _DAY,
    ),
)

GROUP_OFFSETS = Table(
    name="group_offsets",
    layer="bronze",
    doc="What a consumer group has committed for one partition, with the commit's metadata.",
    grain=("cluster", "group", "topic", "topic_id", "partition", "at"),
    partition=("day",),
    columns=(
        _CLUSTER,
        _SOURCE,
        Column("group", "string", "Consumer group.", required=True),
        Column("topic", "string", "Topic.", required=True),
        Column(
            "topic_id", "string", "Topic id; empty where the cluster gives none.", required=True
        ),
        Column("partition", "long", "Partition.", required=True),
        Column("at", "timestamp", "Time of the answer.", required=True),
        Column(
            "committed_offset",
            "long",
            "Next offset the group will read; null where none was committed.",
        ),
        Column(
            "metadata",
            "string",
            "The commit's metadata; an audited consumer writes its processed offset here.",
        ),
        Column("members", "long", "Members of the group at that time."),
        Column("group_state", "string", "Stable, Empty, Dead ..."),
        _AFTER_AT,
        _READ_AT,
        _DAY,
    ),
)

BRONZE = (
    LOG_RECORDS,
    METRIC_SAMPLES,
    AUDIT_REPORTS,
    CLUSTER_STATES,
    CLUSTER_CONFIGS,
    GROUP_OFFSETS,
)
