"""Which errors surely mean that a record was not written: a closed list, the same as acktrail's."""

from __future__ import annotations

NOT_WRITTEN = frozenset(
    {
        "CLUSTER_AUTHORIZATION_FAILED",
        "INVALID_MSG_SIZE",
        "INVALID_RECORD",
        "INVALID_REQUIRED_ACKS",
        "INVALID_TIMESTAMP",
        "MSG_SIZE_TOO_LARGE",
        "NOT_ENOUGH_REPLICAS",
        "POLICY_VIOLATION",
        "TOPIC_AUTHORIZATION_FAILED",
        "TOPIC_EXCEPTION",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        "UNSUPPORTED_COMPRESSION_TYPE",
        "UNSUPPORTED_FOR_MESSAGE_FORMAT",
        "_QUEUE_FULL",
        "_UNKNOWN_PARTITION",
        "_UNKNOWN_TOPIC",
    }
)


def tier_of_error(name: str) -> str:
    """`failed` where *name* surely means that nothing was written, else `indeterminate`."""
    return "failed" if name in NOT_WRITTEN else "indeterminate"
