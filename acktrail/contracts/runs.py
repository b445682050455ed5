"""Runs: what was run, checked, missing and alerted; written by delta-rs."""

from __future__ import annotations

from acktrail.contracts.table import Column, Table
from acktrail.contracts.vocabulary import Grade, Outcome, SourceState

RUNS = Table(
    name="runs",
    layer="runs",
    doc="One run of one job: rows in = rows out + rows dropped, by reason.",
    grain=("job", "run"),
    columns=(
        Column("job", "string", "Name of the job.", required=True),
        Column("run", "long", "Run number of the job.", required=True),
        Column("started_at", "timestamp", "When it began.", required=True),
        Column("ended_at", "timestamp", "When it committed.", required=True),
        Column("as_of", "timestamp", "The --as-of time of the run.", required=True),
        Column("shape", "string", "map or fold.", required=True),
        Column("rebuilt", "boolean", "Whether the whole output was recomputed.", required=True),
        Column(
            "rows_in",
            "long",
            "Rows read: the new ones, or all there are where a window or the whole is recomputed.",
            required=True,
        ),
        Column("rows_out", "long", "Rows written.", required=True),
        Column("dropped", "attributes", "Reason to number of rows not turned into output."),
        Column("consumed", "attributes", "Input table to the version consumed."),
        Column("touched", "long", "Partitions replaced; 0 for a map.", required=True),
        Column("version", "long", "Version of the output table it made.", required=True),
    ),
)

RUN_FAILURES = Table(
    name="run_failures",
    layer="runs",
    doc="A job that `acktrail run` did not finish: it failed, or was not begun after a failure.",
    grain=("job", "failed_at"),
    columns=(
        Column("job", "string", "Name of the job.", required=True),
        Column("failed_at", "timestamp", "When.", required=True),
        Column("as_of", "timestamp", "The --as-of time of the run.", required=True),
        Column("error", "string", "What was raised, or which job failed first.", required=True),
    ),
)

CHECK_RESULTS = Table(
    name="check_results",
    layer="runs",
    doc="What each check found.",
    grain=("check_run", "table", "check", "subject"),
    partition=("day",),
    columns=(
        Column("check_run", "string", "Names one `acktrail check`.", required=True),
        Column("checked_at", "timestamp", "When it ran.", required=True),
        Column("as_of", "timestamp", "The --as-of time of the check.", required=True),
        Column("table", "string", "Table checked.", required=True),
        Column(
            "check",
            "string",
            "Name of the check; the former name in rows from before it was renamed.",
            required=True,
        ),
        Column(
            "subject", "string", "Owner of what failed; empty where nothing did.", required=True
        ),
        Column("grade", "string", "How bad a failure is.", required=True, values=Grade),
        Column("outcome", "string", "What was found.", required=True, values=Outcome),
        Column(
            "not_collected",
            "boolean",
            "Undecided for evidence that the policy file lists as not collected; null in rows of "
            "earlier versions.",
        ),
        Column("rows_checked", "long", "Rows looked at.", required=True),
        Column("rows_failed", "long", "Rows that failed.", required=True),
        Column("rows_muted", "long", "Failed rows a maintenance window expects.", required=True),
        Column("keys", "strings", "Offending keys, at most 50.", required=True),
        Column("because", "string", "What was found: the text of the alert.", required=True),
        Column("runbook", "string", "Page to open.", required=True),
        Column("day", "string", "UTC day of as_of.", required=True),
    ),
)

COVERAGE = Table(
    name="coverage",
    layer="runs",
    doc="What evidence each source gave in each hour, and what is missing.",
    grain=("cluster", "source", "subject", "hour"),
    partition=("hour",),
    columns=(
        Column("cluster", "string", "Name of the Kafka cluster.", required=True),
        Column("source", "string", "Name of the source.", required=True),
        Column("subject", "string", "Reporter, target or file it is about.", required=True),
        Column("kind", "string", "audit, metrics, logs or cluster.", required=True),
        Column("hour", "string", "UTC hour.", required=True),
        Column("rows", "long", "Rows of evidence.", required=True),
        Column("first_at", "timestamp", "Earliest evidence."),
        Column("last_at", "timestamp", "Latest evidence."),
        Column("closed", "boolean", "The reporter reported that it ended normally."),
        Column("missing", "string", "What is missing; null where nothing is known to be."),
    ),
)

_SYMPTOM = (
    Column("check", "string", "Check that found it.", required=True),
    Column("found_by", "strings", "Checks that found it, as table.check.", required=True),
    Column("grade", "string", "How bad it is.", required=True, values=Grade),
    Column("state", "string", "What is wrong.", required=True),
    Column("cause", "string", "Why.", required=True),
    Column("topic", "string", "Topic; empty for all.", required=True),
    Column("group", "string", "Consumer group; empty for none.", required=True),
    Column("incident", "string", "Name of the loss incident; else empty.", required=True),
    Column("began_at", "timestamp", "First sign.", required=True),
    Column("ended_at", "timestamp", "Last sign; null while it goes on."),
    Column("over", "boolean", "It does not go on.", required=True),
    Column(
        "gone", "string", "Why it is over, if there is no proof that it was cured.", required=True
    ),
    Column("loss", "boolean", "Whether messages were lost.", required=True),
    Column("count", "long", "Messages, batches or requests concerned.", required=True),
    Column("at_stake", "long", "Records that can still be saved, where known."),
    Column("deadline", "timestamp", "When the first of them may be given up."),
    Column("clients", "strings", "Client ids.", required=True),
    Column("hosts", "strings", "Hosts of the clients.", required=True),
    Column("brokers", "strings", "Broker ids.", required=True),
    Column("partitions", "strings", "Partitions with leader and in-sync replicas.", required=True),
    Column("because", "string", "What happens.", required=True),
    Column("past", "string", "What happened, once it is over.", required=True),
    Column("fix", "string", "What to do.", required=True),
    Column("runbook", "string", "Page to open.", required=True),
    Column("keys", "strings", "Keys of rows, at most 3.", required=True),
)

ALERTS = Table(
    name="alerts",
    layer="runs",
    doc="The alert outbox: every change of every alert, and which receivers got it.",
    grain=("fingerprint", "number", "step"),
    columns=(
        Column(
            "fingerprint",
            "string",
            "Names the alert: hash of cluster, fault, owner, severity and first sign.",
            required=True,
        ),
        Column("number", "long", "Number of the change of this alert, from 1.", required=True),
        Column(
            "step",
            "long",
            "0 for the change itself, then one row for each time receivers took it.",
            required=True,
        ),
        Column("changed_at", "timestamp", "When.", required=True),
        Column("status", "string", "open or resolved.", required=True),
        Column("delivered", "strings", "Receivers that have accepted this state.", required=True),
        Column(
            "check",
            "string",
            "Check that opened it; the former name in rows from before it was renamed.",
            required=True,
        ),
        Column("grade", "string", "How bad it is.", required=True, values=Grade),
        Column("owner", "string", "Whose alert it is.", required=True),
        Column("cluster", "string", "Cluster; empty where it is about the lake.", required=True),
        Column(
            "topic", "string", "Topic of the sign that opened it; empty for all.", required=True
        ),
        Column("group", "string", "Its consumer group; empty for none.", required=True),
        Column("state", "string", "What was wrong then.", required=True),
        Column("cause", "string", "Why.", required=True),
        Column("starts_at", "timestamp", "First sign.", required=True),
        Column("until_at", "timestamp", "Latest evidence of it; null while it goes on."),
        Column("ends_at", "timestamp", "When it was resolved; null while open."),
        Column("labels", "attributes", "Labels sent to receivers."),
        Column("annotations", "attributes", "What receivers show: text, signs, numbers."),
        Column(
            "found_by",
            "strings",
            "Checks that found it, as table.check: all must look again before it is resolved.",
        ),
        Column("fault", "string", "Name of the fault; null in rows of earlier versions."),
        Column(
            "symptoms",
            "structs",
            "The signs of the fault; null in rows of earlier versions.",
            fields=_SYMPTOM,
        ),
        Column("acknowledged", "long", "Lost messages that were acknowledged; null: none were."),
        Column("acknowledged_by", "string", "Who acknowledged them."),
        Column("acknowledged_at", "timestamp", "When."),
        Column("acknowledged_because", "string", "Why."),
        Column("messages", "attributes", "Receiver to the last message sent to it, and where."),
    ),
)

SOURCE_STATES = Table(
    name="source_states",
    layer="runs",
    doc="The state of each source of each agent: one row per change, and one every ten minutes.",
    grain=("cluster", "source", "host", "agent", "at"),
    partition=("day",),
    retention_days=30,
    columns=(
        Column("cluster", "string", "Name of the Kafka cluster, from the settings.", required=True),
        Column("source", "string", "Name of the source in the settings.", required=True),
        Column("kind", "string", "Kind of the source.", required=True),
        Column(
            "host",
            "string",
            "Host whose files it reads; empty for a source that any host can read.",
            required=True,
        ),
        Column("agent", "string", "Process that reads: host, process id, start.", required=True),
        Column("command", "string", "Its command: agent, agent --once or watch.", required=True),
        Column("at", "timestamp", "When it was so.", required=True),
        Column("state", "string", "State of the source.", required=True, values=SourceState),
        Column("error", "string", "Why it is not up; null where it is."),
        Column("notes", "strings", "Notes for a person.", required=True),
        Column(
            "unread",
            "strings",
            "Paths and topics in its settings that are not there or cannot be opened.",
            required=True,
        ),
        Column("last_commit_at", "timestamp", "Last commit of this process for this source."),
        Column("day", "string", "UTC day of at.", required=True),
    ),
)

RUN_TABLES = (RUNS, RUN_FAILURES, CHECK_RESULTS, COVERAGE, ALERTS, SOURCE_STATES)
