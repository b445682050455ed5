"""Verifiable files become reports: each id where it was seen, however the file is cut."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from acktrail.audit.wire import BLOCK_BITS, decode_runs
from acktrail.contracts.vocabulary import Tier
from ingest.sources.verifiable_lines import VerifiableReader, message_of

OLD = (
    b'{"exception":"class org.apache.kafka.common.errors.NotEnoughReplicasException",'
    b'"time_ms":1714532400000,"name":"producer_send_error","topic":"orders","message":"Messages '
    b'are rejected since there are fewer in-sync replicas than required.","class":"class '
    b'org.apache.kafka.tools.VerifiableProducer","value":"2","key":null}\n'
)


def line(name: str, at: int = 1_714_532_400_000, **facts) -> bytes:
    return json.dumps({"timestamp": at, "name": name, **facts}).encode() + b"\n"


def acked(seq: int, offset: int, partition: int = 0, prefix: str = "7.", at=1_714_532_400_000):
    return line(
        "producer_send_success",
        at,
        key=None,
        value=f"{prefix}{seq}",
        topic="orders",
        partition=partition,
        offset=offset,
    )


def error(seq: int, exception: str, message: str = "") -> bytes:
    return line(
        "producer_send_error",
        key=None,
        value=f"7.{seq}",
        topic="orders",
        exception=exception,
        message=message,
    )


def data(value: str, partition: int, offset: int) -> bytes:
    return line(
        "record_data", key=None, value=value, topic="orders", partition=partition, offset=offset
    )


def ids(reports, tier: Tier) -> set[tuple[str, int, int, int | None]]:
    """(session, partition, seq, offset) of every id reported at *tier*."""
    found = set()
    for report in reports:
        if report.tier is tier:
            runs = decode_runs(report.ids)
            for i in range(runs.starts.size):
                for k in range(int(runs.lengths[i])):
                    seq = (report.block << BLOCK_BITS) + int(runs.starts[i]) + k
                    at = None if runs.offsets is None else int(runs.offsets[i]) + k
                    found.add((report.session, report.partition, seq, at))
    return found


def read(text: bytes, group: str = "", **given):
    return VerifiableReader("ab" * 16, group, given).read(text, 0)


CASES = [
    # exception                                             message               tier, error
    ("class org.apache.kafka.common.errors.NotEnoughReplicasException", "", "failed", None),
    ("class org.apache.kafka.common.errors.RecordTooLargeException", "", "failed", None),
    ("org.apache.kafka.common.errors.TopicAuthorizationException", "", "failed", None),
    (
        "class org.apache.kafka.common.errors.TimeoutException",
        "Topic orders not present in metadata after 60000 ms.",
        "failed",
        "TimeoutException(metadata)",
    ),
    (
        "class org.apache.kafka.common.errors.TimeoutException",
        "Expiring 5 record(s) for pay-1:20004 ms has passed since batch creation",
        "indeterminate",
        "TimeoutException(expired)",
    ),
    ("class org.apache.kafka.common.errors.NetworkException", "", "indeterminate", None),
    (
        "class org.apache.kafka.common.errors.NotEnoughReplicasAfterAppendException",
        "",
        "indeterminate",
        None,
    ),
    ("_MSG_TIMED_OUT", "Local: Message timed out", "indeterminate", None),
    ("NOT_ENOUGH_REPLICAS", "", "failed", None),
    ("class com.example.Surprise", "", "indeterminate", None),
]


def test_errors_by_what_they_prove():
    for exception, message, tier, name in CASES:
        got = read(error(3, exception, message))
        assert ids(got.reports, Tier(tier)) == {("vp-7", -1, 3, None)}, exception
        told = next(r.errors for r in got.reports if r.tier == tier)
        assert list(told) == [name or exception.rpartition(".")[2]]


def test_every_version_of_the_lines():
    text = b"Option --producer.config is deprecated.\n" + OLD + acked(0, 88210, 3, "")
    got = read(text)
    assert got.dropped == {"not_json": 1}
    assert ids(got.reports, Tier.ACKED) == {("vp:orders", 3, 0, 88210)}
    assert ids(got.reports, Tier.FAILED) == {("vp:orders", -1, 2, None)}
    assert {seq for _, _, seq, _ in ids(got.reports, Tier.SENT)} == {0, 1, 2}


def test_acks_0_is_no_ack():
    assert ids(read(acked(0, -1)).reports, Tier.SENT_UNACKED)
    assert ids(read(acked(0, -1), acks="0").reports, Tier.SENT_UNACKED)
    assert ids(read(acked(0, -1), acks="-1").reports, Tier.ACKED_NO_OFFSET)
    both = read(acked(0, 5) + acked(1, -1)).reports
    assert {seq for _, _, seq, _ in ids(both, Tier.ACKED_NO_OFFSET)} == {1}


def test_the_sum_at_the_end_says_what_was_sent_and_never_reported():
    text = acked(0, 0) + line("shutdown_complete") + line("tool_data", sent=4, acked=1)
    got = read(text)
    assert {seq for _, _, seq, _ in ids(got.reports, Tier.SENT)} == {0, 1, 2, 3}
    (beat,) = [r for r in got.reports if r.tier is Tier.HEARTBEAT]
    assert beat.closed
    assert beat.minutes == (28575540, 0)


def test_an_exit_code_proves_an_end_but_no_good_order():
    """A line of whoever supervises the tool; it may be all there is in a piece of the file."""
    reader = VerifiableReader("ab" * 16, "", {"client_id": "shop"})
    first = acked(0, 5)
    (before,) = [r for r in reader.read(first, 0).reports if r.tier is Tier.HEARTBEAT]
    assert (before.closed, before.exited) == (False, False)
    piece = reader.read(line("process_exited", 1_714_532_500_000, code=137), len(first))
    (beat,) = piece.reports
    assert (beat.tier, beat.session, beat.closed, beat.exited) == (
        Tier.HEARTBEAT,
        "vp-7",
        False,
        True,
    )
    assert dict(beat.settings) == {"client_id": "shop"}
    wrong = reader.read(line("process_exited"), 10_000)
    assert wrong.dropped["unreadable"] == 1
    assert not any(r.exited for r in wrong.reports)


def test_ids_of_many_blocks():
    got = read(acked(70_000, 1))
    assert len(ids(got.reports, Tier.SENT)) == 70_001


def test_a_consumer_of_java():
    text = (
        line("startup_complete")
        + line("partitions_assigned", partitions=[{"topic": "orders", "partition": 3}])
        + data("7.0", 3, 10)
        + data("7.1", 3, 11)
        + data("not ours", 3, 12)
        + line(
            "records_consumed",
            count=3,
            partitions=[
                {"topic": "orders", "partition": 3, "count": 3, "minOffset": 10, "maxOffset": 12}
            ],
        )
        + data("7.2", 3, 13)
        + line(
            "records_consumed",
            count=1,
            partitions=[
                {"topic": "orders", "partition": 3, "count": 1, "minOffset": 13, "maxOffset": 13}
            ],
        )
        + line("shutdown_complete")
    )
    got = read(text, "g")
    assert ids(got.reports, Tier.DELIVERED) == {
        ("vp-7", 3, n, o) for n, o in enumerate((10, 11, 13))
    }
    (consumed,) = [r for r in got.reports if r.tier is Tier.CONSUMED]
    assert (consumed.first_offset, consumed.last_offset, consumed.records) == (10, 13, 4)
    assert (consumed.group, consumed.assignment) == ("g", 1)
    assert [r.closed for r in got.reports if r.tier is Tier.HEARTBEAT] == [True]
    assert got.dropped == {"says_nothing_of_messages": 1, "not_audited": 1}


def test_a_consumer_that_prints_records_only_and_jumps():
    got = read(data("7.0", 0, 5) + data("7.1", 0, 6) + data("7.9", 0, 40) + data("7.1", 1, 0), "g")
    ranges = {
        (r.partition, r.first_offset, r.last_offset) for r in got.reports if r.tier == "consumed"
    }
    assert ranges == {(0, 5, 6), (0, 40, 40), (1, 0, 0)}


def test_an_assignment_is_known_only_where_its_line_was_read():
    """Else what another member read between two assignments would look jumped over."""
    given = line("partitions_assigned", partitions=[{"topic": "orders", "partition": 0}])
    first, second = given + data("7.0", 0, 5), data("7.1", 0, 9) + given + data("7.2", 0, 20)

    def assignments(*pieces: tuple[bytes, int]) -> list[int | None]:
        reader = VerifiableReader("ab" * 16, "g")
        made = [r for text, at in pieces for r in reader.read(text, at).reports]
        return [r.assignment for r in made if r.tier is Tier.CONSUMED]

    one, same, other = assignments((first, 0), (second, len(first)))
    assert one == same is not None
    assert other not in (None, one)
    unknown, after = assignments((second, len(first)))
    assert (unknown, after) == (None, other), "a reader that is started again"
    assert assignments((data("7.0", 0, 5), 0)) == [None], "a client that prints records only"


def test_values_that_are_messages():
    assert message_of("7.12", "t") == ("vp-7", 12)
    assert message_of("12", "t") == ("vp:t", 12)
    for strange in (None, "", "a.1", "7.", ".7", "-1", "7.1.2", "9" * 40, "7.1\n"):
        assert message_of(strange, "t") is None


EVENT = st.one_of(
    st.builds(acked, st.integers(0, 60), st.integers(-1, 99), st.integers(0, 2)),
    st.builds(
        error, st.integers(0, 60), st.sampled_from(["NOT_ENOUGH_REPLICAS", "_MSG_TIMED_OUT"])
    ),
    st.builds(lambda n, p, o: data(f"7.{n}", p, o), *[st.integers(0, 50)] * 3),
    st.sampled_from(
        [b"a note to people\n", b"{torn\n", b"\n", b'{"name": "producer_send_error"}\n']
    ),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(EVENT, max_size=25), st.data())
def test_any_cut_with_restarts_says_the_same(lines, choose):
    """Pieces read by readers with or without memory: the same ids, parts never used twice."""
    whole = read(b"".join(lines), "g", acks="1").reports
    pieces, reader, position = [], VerifiableReader("ab" * 16, "g", {"acks": "1"}), 0
    while lines:
        count = choose.draw(st.integers(1, len(lines)))
        if choose.draw(st.booleans()):
            reader = VerifiableReader("ab" * 16, "g", {"acks": "1"})
        text, lines = b"".join(lines[:count]), lines[count:]
        pieces += reader.read(text, position).reports
        position += len(text)
    for tier in (Tier.SENT, Tier.ACKED, Tier.ACKED_NO_OFFSET, Tier.FAILED, Tier.INDETERMINATE):
        assert ids(pieces, tier) == ids(whole, tier)
    assert ids(pieces, Tier.DELIVERED) == ids(whole, Tier.DELIVERED)
    keys = [(r.session, r.topic, r.partition, r.tier, r.group, r.block, r.part) for r in pieces]
    assert len(keys) == len(set(keys))
    assert sum(r.records for r in pieces if r.tier is Tier.ACKED) == sum(
        r.records for r in whole if r.tier is Tier.ACKED
    )


def test_offsets_travel_with_ids():
    got = read(b"".join(acked(n, 1000 + n) for n in range(50)))
    (report,) = [r for r in got.reports if r.tier is Tier.ACKED]
    runs = decode_runs(report.ids)
    assert np.array_equal(runs.offsets, [1000])
    assert (report.first_offset, report.last_offset, report.records) == (1000, 1049, 50)
