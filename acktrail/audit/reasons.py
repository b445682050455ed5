"""Why a state was given: the clause a person reads, and what is still missing."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """The ground of a verdict."""

    NONE = "none"
    # pending
    NOT_SCANNED = "not_scanned"
    SILENT = "silent"
    TOLD_NOT_CHECKED = "told_not_checked"
    NO_COMPLETE_SCAN = "no_complete_scan"
    GROUP_BEHIND = "group_behind"
    # inconclusive
    RETENTION = "retention"
    COMPACTED = "compacted"
    POLICY_UNKNOWN = "policy_unknown"
    UNNAMED = "unnamed"
    TOPIC_RECREATED = "topic_recreated"
    TRANSACTIONAL = "transactional"
    UNREPORTED_RANGE = "unreported_range"
    MAY_BE_ANOTHER = "may_be_another"
    REPORTS_MISSING = "reports_missing"
    ACKS_WITHOUT_IDS = "acks_without_ids"
    # decided
    SCANNED_PAST = "scanned_past"
    BEYOND_END = "beyond_end"
    COMPLETE_SCAN = "complete_scan"
    TOLD = "told"
    JUMPED_OVER = "jumped_over"
    RESET_WHILE_EMPTY = "reset_while_empty"
    COMMITTED_UNPROCESSED = "committed_unprocessed"
    EXPIRED = "expired"


CLAUSES: dict[Reason, str] = {
    Reason.NONE: "",
    Reason.NOT_SCANNED: "no scan that began after the ack has read past its offset",
    Reason.SILENT: "its producer reported no outcome, and nothing shows that the process ended",
    Reason.TOLD_NOT_CHECKED: (
        "the application got an error for it; the log has not been scanned since"
    ),
    Reason.NO_COMPLETE_SCAN: "no scan of the whole log has begun late enough",
    Reason.GROUP_BEHIND: "the group has not reached its offset",
    Reason.RETENTION: "retention deleted its offset before a scan",
    Reason.COMPACTED: "the topic is compacted, so absence from the log proves nothing",
    Reason.POLICY_UNKNOWN: (
        "the topic's cleanup.policy is not known, so compaction may have removed it"
    ),
    Reason.UNNAMED: "a record without an id may be it",
    Reason.TOPIC_RECREATED: "the topic may have been deleted and created again since it was sent",
    Reason.TRANSACTIONAL: (
        "its producer is transactional, and has not reported that its transaction was committed"
    ),
    Reason.UNREPORTED_RANGE: "the group moved past it, but no audited member reported reading it",
    Reason.MAY_BE_ANOTHER: (
        "the group read its offset, but the log may have been cut and written again since"
    ),
    Reason.REPORTS_MISSING: "reports of what became of it are missing",
    Reason.ACKS_WITHOUT_IDS: (
        "its client reports acks without ids, and not every outcome of the session is known"
    ),
    Reason.SCANNED_PAST: "a scan that began after the ack read past its offset and did not find it",
    Reason.BEYOND_END: "the log ends below its offset under a higher leader epoch",
    Reason.COMPLETE_SCAN: (
        "a scan of the whole log, begun after its outcome was known, did not find it"
    ),
    Reason.TOLD: "the client reported an error that comes before the first send",
    Reason.JUMPED_OVER: "a member of the group jumped over its offset",
    Reason.RESET_WHILE_EMPTY: (
        "the group's offset was moved past it while the group had no members"
    ),
    Reason.COMMITTED_UNPROCESSED: (
        "the group's last commit was past it before it was processed, and the next member began "
        "there"
    ),
    Reason.EXPIRED: "retention deleted it before the group read it",
}
