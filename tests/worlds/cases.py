"""Views in which the rules were wrong once: seed of the world, number of the view."""

from __future__ import annotations

CASES: dict[str, tuple[int, int]] = {
    "aborted, and its session's settings are not known": (2, 0),
    "read at an offset that was cut and written again": (9, 0),
    "processed up to an offset, from a later one on": (37, 0),
    "aborted, and the group read past it": (63, 0),
    "sent to a topic before it was created again": (108, 0),
    "a record of an earlier topic, few answers": (11, 4),
    "acked in a topic that only early scans named": (38, 5),
    "compacted when the group passed": (23, 0),
    "compacted, few answers": (15, 5),
    "committed ahead, then read": (15, 3),
    "ranges of two topics, few answers": (63, 5),
    "a range that goes on over a cut": (74, 0),
    "a record of an earlier topic, without an offset": (122, 5),
    "policy asked for by an agent that is ahead": (112, 0),
    "the log directory was lost after an empty start": (39, 0),
    "another record at an offset that was read": (1008, 0),
    "the same, and no member told epochs": (10_248, 0),
    "an earlier topic was read, and reported late": (63, 9),
    "an earlier topic was read: other ids at the same offsets": (10_842, 23),
    "an earlier topic was read, the cluster answered about the later": (10_896, 32),
    "acked by a leader alone, above a high watermark that stands": (10_359, 3),
    "timed out, above a high watermark that stands": (10_228, 13),
    "acks=0, above a high watermark that stands": (10_498, 2),
    "acked in an earlier topic, and the first leader still leads": (10_419, 49),
    "found by scans under the first leader, lost later": (10_278, 0),
    "compacted, then another log took its place": (10_543, 0),
    "gone after one unclean election, back after the next": (20_166, 49),
    "a change of policy that was asked for again": (10_021, 22),
    "exact cause: lines of the topic that was created again": (10_150, 1),
    "exact cause: the same, few answers": (10_709, 5),
    "exact cause: the line of an unclean election is missing": (10_884, 4),
    "exact cause: missing, and the log was created again": (10_644, 4),
    "exact cause: missing, and acks=1": (11_696, 22),
    "stored after the scan, deleted before the next": (11_691, 0),
    "stored by a retry whose name was removed, below the lost one": (501_723, 13),
}
SPARK_CASES: dict[int, int] = {1115: 4, 20_066: 49}
"""Views in which Spark and pure Python differed once: a session ended, as its successor shows."""
