"""What the Java consumer prints. Sources: Apache Kafka, clients/.../clients/consumer/internals."""

from __future__ import annotations

import re

from acktrail.logs.pattern import Fields, Pattern, pattern


def _reset(fields: Fields, found: re.Match[str], _: str) -> bool:
    fields["message"] = found.group(0).strip()
    return True


PATTERNS: tuple[Pattern, ...] = (
    # AbstractCoordinator.java / ConsumerMembershipManager.java, WARN (INFO up to 2.x):
    #   consumer poll timeout has expired. This means the time between subsequent calls to poll()
    #   was longer than the configured max.poll.interval.ms, ...
    pattern(
        "onsumer poll timeout has expired",
        r"onsumer poll timeout has expired",
        "poll_timeout",
        "poll_timeout",
    ),
    # AbstractCoordinator.java: Member consumer-1-9f2 sending LeaveGroup request to coordinator
    #   broker1:9092 (id: 2147483646 rack: null) due to the consumer is being closed
    pattern(
        "sending LeaveGroup request",
        r"(?P<message>sending LeaveGroup request to coordinator .{0,300})",
        "leave_group",
        "leave_group",
    ),
    # SubscriptionState.java / OffsetFetcherUtils.java:
    #   Resetting offset for partition orders-0 to position FetchPosition{offset=12, ...
    #   up to 2.4: Resetting offset for partition orders-0 to offset 12.
    pattern(
        "Resetting offset for partition ",
        r"Resetting offset for partition (?P<tp>\S{1,320}) to (?:position FetchPosition\{offset=|"
        r"offset )(?P<offset>-?\d{1,18})",
        "offset_reset",
        "offset_reset",
        _reset,
    ),
    # FetchCollector.java / Fetcher.java:
    #   Fetch position FetchPosition{offset=9, ...} is out of range for partition orders-0,
    #   resetting
    pattern(
        "is out of range for partition ",
        r"is out of range for partition (?P<tp>\S{1,320}?), (?:resetting|raising)",
        "offset_reset",
        "out_of_range",
        _reset,
    ),
    # ConsumerCoordinator.java:
    #   Offset commit failed on partition orders-2 at offset 6: This server does not host this ...
    pattern(
        "Offset commit failed on partition ",
        r"Offset commit failed on partition (?P<tp>\S{1,320}) at offset (?P<offset>-?\d{1,18}): "
        r"(?P<message>.{0,300})",
        "commit_failed",
        "commit_failed",
    ),
    # ConsumerCoordinator.java:
    #   Asynchronous auto-commit of offsets {...} failed: Offset commit cannot be completed ...
    pattern(
        "uto-commit of offsets ",
        r"uto-commit of offsets .{0,600}? failed(?: due to retriable error)?: "
        r"(?P<message>.{0,300})",
        "commit_failed",
        "auto_commit_failed",
    ),
    # clients/consumer/CommitFailedException.java, in what the application prints:
    pattern(
        "CommitFailedException",
        r"(?P<error>CommitFailedException)(?:: (?P<message>.{0,400}))?",
        "commit_failed",
        "commit_failed_exception",
        # A producer says so of the transaction that the offsets were to be part of.
        lambda _, __, text: "error state due to " not in text,
    ),
    # ConsumerCoordinator.java:
    #   Revoke previously assigned partitions orders-0, orders-1
    #   Lost previously assigned partitions orders-0
    #   Adding newly assigned partitions: orders-0
    pattern(
        "previously assigned partitions",
        r"previously assigned partitions",
        "rebalance",
        "partitions_revoked",
    ),
    pattern(
        "Adding newly assigned partitions",
        r"Adding newly assigned partitions",
        "rebalance",
        "partitions_assigned",
    ),
    # AbstractCoordinator.java: Attempt to heartbeat failed since group is rebalancing
    pattern(
        "since group is rebalancing",
        r"since group is rebalancing",
        "rebalance",
        "group_rebalancing",
    ),
)
