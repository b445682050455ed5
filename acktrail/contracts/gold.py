"""Gold: answers. They hold instants, never a state relative to now; written by Spark."""

from __future__ import annotations

from acktrail.contracts.table import Column, Table
from acktrail.contracts.vocabulary import Cause, Confidence, State

_CLUSTER = Column("cluster", "string", "Name of the Kafka cluster.", required=True)
_SESSION = Column("session", "string", "Producer instance.", required=True)
_TOPIC = Column("topic", "string", "Topic the producer addressed.", required=True)
_GROUP = Column(
    "group",
    "string",
    "Consumer group; empty for the log itself: stored is delivered to it.",
    required=True,
)
_BUCKET = Column("bucket", "string", "As in audit_blocks.", required=True)

RETRY_BUDGETS = Table(
    name="retry_budgets",
    layer="gold",
    doc="One chain of retries of one batch, and when its budget runs out.",
    grain=("cluster", "host", "client_id", "topic", "partition", "opened_at", "chain"),
    partition=("opened_hour",),
    columns=(
        _CLUSTER,
        Column("host", "string", "Host of the client; empty where unknown.", required=True),
        Column("client_id", "string", "Client id; empty where unknown.", required=True),
        Column(
            "topic",
            "string",
            "Topic; empty where the chain opened from a connection failure.",
            required=True,
        ),
        Column("partition", "long", "Partition; -1 where not known.", required=True),
        Column(
            "chain",
            "long",
            "Number of the chain among those of its partition that opened at that time.",
            required=True,
        ),
        Column("opened_at", "timestamp", "First sign of the chain.", required=True),
        Column(
            "opened_by",
            "string",
            "retry, split_retry, connection_failure or queue_time.",
            required=True,
        ),
        Column("last_at", "timestamp", "Latest sign of the chain.", required=True),
        Column(
            "quiet_at",
            "timestamp",
            "When the next sign was due; without one since, the batch succeeded or still waits.",
            required=True,
        ),
        Column("events", "long", "Log events in the chain.", required=True),
        Column("retries", "long", "Configured retries, where known."),
        Column("attempts_left", "long", "Lowest number printed; null where retries is not finite."),
        Column("delivery_timeout_ms", "long", "Where known."),
        Column(
            "exhausts_at_earliest",
            "timestamp",
            "Earliest instant the budget can end; null where unknown.",
        ),
        Column(
            "exhausts_at_latest",
            "timestamp",
            "Latest instant the budget can end; null where unknown.",
        ),
        Column(
            "exhausted_by",
            "string",
            "What ends first: attempts, time or unknown.",
            required=True,
        ),
        Column(
            "confidence",
            "string",
            "How sure the end is: bounded (settings and first line seen), partly or unknown.",
            required=True,
        ),
        Column("error", "string", "The error that is retried."),
        Column("retriable", "boolean", "Whether the client retries this error."),
        Column("category", "string", "What kind of error it is."),
        Column("node", "long", "The broker behind it, where known."),
        Column(
            "records_at_stake",
            "long",
            "Records that are lost if the batch is given up, where metrics or audits show them.",
        ),
        Column("ended_at", "timestamp", "When it ended, on evidence; else null."),
        Column(
            "ended_by",
            "string",
            "recovered, exhausted or restarted, on evidence; ended_unknown where its client let go "
            "of all it held; else null.",
        ),
        Column("because", "string", "Short explanation, with what to do.", required=True),
        Column("evidence", "strings", "Keys of the rows that prove it.", required=True),
        Column(
            "unknown",
            "string",
            "What is not known, and which evidence is needed; null if nothing is missing.",
        ),
        Column("opened_hour", "string", "UTC hour the chain was opened.", required=True),
    ),
)

_FINDING = (
    Column("first_seq", "long", "First id of the range.", required=True),
    Column("last_seq", "long", "Last id of the range.", required=True),
    Column("state", "string", "What became of them.", required=True, values=State),
    Column("reason", "string", "Reason for the state; see docs/audit.md.", required=True),
    Column("partition", "long", "Partition, where known."),
    Column("first_offset", "long", "Lowest offset they are or were at, where known."),
    Column("last_offset", "long", "Highest offset they are or were at, where known."),
    Column("first_at", "timestamp", "When the first was sent, as near as reported."),
    Column("last_at", "timestamp", "When the last was sent, as near as reported."),
    Column("told", "boolean", "Whether the application got an error.", required=True),
    Column("acked", "boolean", "Whether they were acknowledged.", required=True),
    Column("error", "string", "Error that the application got, if any."),
    Column("first_received_at", "timestamp", "Receipt of the first report of their outcome."),
    Column("last_received_at", "timestamp", "Receipt of the last report of their outcome."),
    Column("seen_epoch", "long", "All were in the log under this leader epoch, where known."),
)

DELIVERY_LEDGER = Table(
    name="delivery_ledger",
    layer="gold",
    doc="The accounts of one block for one group: sent = sum of the states, residual 0.",
    grain=("cluster", "session", "topic", "group", "block"),
    partition=("bucket",),
    columns=(
        _CLUSTER,
        _SESSION,
        _TOPIC,
        _GROUP,
        Column("block", "long", "seq >> 15.", required=True),
        Column("client_id", "string", "Client id of the session, where reported."),
        Column("host", "string", "Host of the session, where reported."),
        Column(
            "settings", "attributes", "What the session reported of itself that bears on delivery."
        ),
        Column("sent", "long", "Ids handed over.", required=True),
        Column("acked", "long", "Ids acknowledged, with or without offset.", required=True),
        *(Column(s.value, "long", f"Ids in state {s.value}.", required=True) for s in State),
        Column("residual", "long", "sent minus the sum of the states; must be 0.", required=True),
        Column("duplicates", "long", "Records in the log beyond one per id.", required=True),
        Column("redelivered", "long", "Records the group read again.", required=True),
        Column("out_of_order", "long", "Steps back of seq in offset order.", required=True),
        Column(
            "ghosts",
            "long",
            "Ids delivered though reported failed or indeterminate.",
            required=True,
        ),
        Column(
            "forwarded", "long", "Ids seen in topics their session never addressed.", required=True
        ),
        Column("reasons", "attributes", "Why ids are pending or inconclusive, with their number."),
        Column(
            "findings",
            "structs",
            "What was not delivered, as ranges of ids in order; loss_events is made from it.",
            required=True,
            fields=_FINDING,
            former="string",
        ),
        Column("latency_p50_ms", "long", "Create to delivered, median, where reported."),
        Column("latency_p99_ms", "long", "Create to delivered, 99th percentile."),
        Column("latency_max_ms", "long", "Create to delivered, highest."),
        Column("first_at", "timestamp", "Earliest event."),
        Column("last_at", "timestamp", "Latest event."),
        Column(
            "settles_at",
            "timestamp",
            "A complete scan begun after this decides ids without an offset; null without such ids.",
        ),
        Column(
            "awaits_from",
            "long",
            "Where ids without an offset await a scan: until the log begins above this offset, only a "
            "scan decides them. Null where none is awaited.",
        ),
        Column("awaits_to", "long", "A scan that begins above this offset does not decide them."),
        Column(
            "open",
            "boolean",
            "Whether any news of the topic may change it. Losses are decided: they change only by "
            "news about their own offsets or time, new settings, or a re-created topic.",
            required=True,
        ),
        _BUCKET,
    ),
)

OFFSET_ACCOUNTS = Table(
    name="offset_accounts",
    layer="gold",
    doc="What offsets alone show, audited or not: growth of each partition, and how far groups have read.",
    grain=("cluster", "topic", "partition", "group", "hour"),
    partition=("hour",),
    columns=(
        _CLUSTER,
        Column("topic", "string", "Topic.", required=True),
        Column("partition", "long", "Partition.", required=True),
        _GROUP,
        Column(
            "first_offset",
            "long",
            "End of the log, or commit of the group, first seen in the hour.",
        ),
        Column("last_offset", "long", "The same, last seen in the hour."),
        Column(
            "moved",
            "long",
            "last_offset - first_offset; negative where the log was cut or a group reset.",
        ),
        Column(
            "behind", "long", "For a group: the log's last end in the hour minus its last commit."
        ),
        Column(
            "scanned_offsets",
            "long",
            "For the log: offsets that scans begun in the hour have read.",
        ),
        Column("scanned_records", "long", "For the log: records they found."),
        Column(
            "gaps",
            "long",
            "scanned_offsets - scanned_records: compaction or transaction markers, or else an alert.",
        ),
        Column("answers", "long", "Answers of the cluster in the hour.", required=True),
        Column("hour", "string", "UTC hour.", required=True),
    ),
)

LOSS_EVENTS = Table(
    name="loss_events",
    layer="gold",
    doc="Contiguous ids of one session with one state and one cause.",
    grain=("cluster", "session", "topic", "group", "first_seq"),
    partition=("bucket",),
    columns=(
        _CLUSTER,
        _SESSION,
        _TOPIC,
        _GROUP,
        Column("client_id", "string", "Client id of the session, where reported."),
        Column("host", "string", "Host of the session, where reported."),
        Column("first_seq", "long", "First id of the range.", required=True),
        Column("last_seq", "long", "Last id of the range.", required=True),
        Column("count", "long", "Ids in the range.", required=True),
        Column("partition", "long", "Partition, where known."),
        Column("first_offset", "long", "Lowest offset acknowledged for them, where known."),
        Column("last_offset", "long", "Highest offset acknowledged for them, where known."),
        Column("first_at", "timestamp", "When the first was sent, as near as reported."),
        Column("last_at", "timestamp", "When the last was sent, as near as reported."),
        Column("state", "string", "What became of them.", required=True, values=State),
        Column("told", "boolean", "Whether the application got an error.", required=True),
        Column("cause", "string", "Why.", required=True, values=Cause),
        Column(
            "confidence",
            "string",
            "How strong the evidence for the cause is.",
            required=True,
            values=Confidence,
        ),
        Column("because", "string", "Short explanation, with what to do.", required=True),
        Column("evidence", "strings", "Keys of the rows that prove it.", required=True),
        Column("reason", "string", "Reason for the state; see docs/audit.md.", required=True),
        Column("error", "string", "Error that the application got, if any."),
        Column("first_received_at", "timestamp", "Receipt of the first report of their outcome."),
        Column("last_received_at", "timestamp", "Receipt of the last report of their outcome."),
        _BUCKET,
    ),
)

LOSS_INCIDENTS = Table(
    name="loss_incidents",
    layer="gold",
    doc="Losses of one cause, place and time, as one incident.",
    grain=("cluster", "incident"),
    columns=(
        _CLUSTER,
        Column(
            "incident",
            "string",
            "Name of the incident: hash of cluster, topic, group, state, cause and start.",
            required=True,
        ),
        _TOPIC,
        _GROUP,
        Column("state", "string", "What became of them.", required=True, values=State),
        Column("cause", "string", "Why.", required=True, values=Cause),
        Column(
            "confidence",
            "string",
            "The weakest among its events.",
            required=True,
            values=Confidence,
        ),
        Column("told", "boolean", "Whether the applications got an error.", required=True),
        Column("started_at", "timestamp", "First loss."),
        Column("ended_at", "timestamp", "Last loss."),
        Column("ids", "long", "Messages lost.", required=True),
        Column("events", "long", "Loss events in it.", required=True),
        Column("sessions", "long", "Producer instances concerned.", required=True),
        Column("partitions", "longs", "Partitions concerned, where known.", required=True),
        Column("client_ids", "strings", "Client ids concerned, at most 20.", required=True),
        Column("hosts", "strings", "Hosts of the producers concerned, at most 20."),
        Column("because", "string", "Explanation, with what to do.", required=True),
        Column("evidence", "strings", "Keys of the rows that prove it, at most 50.", required=True),
    ),
)

VERDICT_CHANGES = Table(
    name="verdict_changes",
    layer="gold",
    doc="Which verdict replaced which, on what evidence; append only.",
    grain=("cluster", "session", "topic", "group", "first_seq", "changed_at"),
    columns=(
        _CLUSTER,
        _SESSION,
        _TOPIC,
        _GROUP,
        Column("first_seq", "long", "First id of the range.", required=True),
        Column("last_seq", "long", "Last id of the range.", required=True),
        Column("before_state", "string", "State before; null for a new verdict."),
        Column("before_cause", "string", "Cause before."),
        Column("after_state", "string", "State after; null where the loss was withdrawn."),
        Column("after_cause", "string", "Cause after."),
        Column("because", "string", "What evidence changed it."),
        Column("changed_at", "timestamp", "as_of of the run that changed it.", required=True),
    ),
)

PRODUCER_RELIABILITY = Table(
    name="producer_reliability",
    layer="gold",
    doc="Per client, topic and hour: metrics, log evidence and audit results side by side.",
    grain=("cluster", "client_id", "topic", "hour"),
    partition=("hour",),
    columns=(
        _CLUSTER,
        Column(
            "client_id",
            "string",
            "Client id; empty where unknown, and for what only brokers report.",
            required=True,
        ),
        Column(
            "topic",
            "string",
            "Topic; empty for what is only known of the client, or of the cluster, as a whole.",
            required=True,
        ),
        Column(
            "error_rate_per_s",
            "double",
            "Highest record-error-rate in the hour; null where not measured.",
        ),
        Column("retry_rate_per_s", "double", "Highest record-retry-rate in the hour."),
        Column("errors_total", "double", "Growth of record-error-total."),
        Column("retries_total", "double", "Growth of record-retry-total."),
        Column("sends_total", "double", "Growth of record-send-total, retries included."),
        Column(
            "failed_produce_requests_total",
            "double",
            "Growth of FailedProduceRequests of the topic, all brokers; the same beside each of its "
            "clients. Of all topics together only where client_id and topic are empty.",
        ),
        Column(
            "produce_errors_total",
            "double",
            "Growth of produce responses with an error, all brokers; only where client_id and topic "
            "are empty.",
        ),
        Column(
            "under_min_isr_max",
            "double",
            "Highest number of partitions under min ISR seen on any broker.",
        ),
        Column("retry_lines", "long", "Retry events in the logs.", required=True),
        Column("expired_lines", "long", "Expiry events in the logs.", required=True),
        Column(
            "expired_batches",
            "long",
            "Expired batches in the logs; each is counted once, even if the callback of each record prints it.",
        ),
        Column("failure_lines", "long", "Other failed sends in the logs.", required=True),
        Column("attempts_left_min", "long", "Lowest attempts left printed."),
        Column("sent", "long", "Ids handed over; null without an audit."),
        Column("acked", "long", "Ids acknowledged."),
        Column("lost", "long", "Ids lost, with or without an error to the application."),
        Column("duplicated", "long", "Records beyond one per id."),
        Column("out_of_order", "long", "Steps back of seq."),
        Column("latency_p50_ms", "long", "Create to delivered, median of the blocks' medians."),
        Column("latency_p99_ms", "long", "Highest 99th percentile of the blocks."),
        Column("hour", "string", "UTC hour.", required=True),
    ),
)

GOLD = (
    RETRY_BUDGETS,
    DELIVERY_LEDGER,
    OFFSET_ACCOUNTS,
    LOSS_EVENTS,
    LOSS_INCIDENTS,
    VERDICT_CHANGES,
    PRODUCER_RELIABILITY,
)
