"""How transactions ended, by two readings of one log."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from acktrail.audit.wire import Header, Report, decode_runs, encode_header
from acktrail.contracts.vocabulary import Tier
from ingest.sources.scan_reports import LogRecord, ScannedRange
from ingest.sources.scan_transactions import TransactionalTopics, outcomes

PLAIN, MOVER, OTHER = "01" * 16, "02" * 16, "03" * 16


def record(offset: int, session: str, seq: int) -> LogRecord:
    return LogRecord(offset, None, encode_header(Header(session, seq, 1)))


def ids(reports: list[Report], tier: Tier) -> set[tuple[str, int]]:
    found = [r for r in reports if r.tier is tier]
    return {
        (r.session, (r.block << 15) + i)
        for r in found
        for i in decode_runs(r.ids).listed()[0].tolist()
    }


@given(st.lists(st.tuples(st.sampled_from([PLAIN, MOVER, OTHER, ""]), st.booleans()), max_size=60))
def test_every_record_is_told_by_whether_a_reader_of_committed_records_was_given_it(log):
    """*log*: a session, and whether the record was given; a plain one always is."""
    records, committed, aborted, got = [], set(), set(), set()
    for offset, (session, was_given) in enumerate(log):
        records.append(
            record(offset, session, offset) if session else LogRecord(offset, None, None)
        )
        if was_given or session == PLAIN:
            got.add(offset)
            if session == MOVER:
                committed.add((session, offset))
        elif session:
            aborted.add((session, offset))
    scan = ScannedRange("t", 0, 0, len(log), 5, 6, closed=False, after_ms=4)
    made = outcomes(scan, records, got, {MOVER}, "r", 7)
    assert ids(made, Tier.COMMITTED) == committed  # nothing of sessions that may have none
    assert ids(made, Tier.ABORTED) == aborted
    assert all(r.after_ms == 4 and r.partition == 0 for r in made)
    assert len({r.part for r in made}) == len(made)


def test_topics_are_known_by_the_settings_of_their_sessions():
    known = TransactionalTopics()
    beat = Report("p", Tier.HEARTBEAT, "t", 1, 900, MOVER, settings={"transactional.id": "m"})
    known.take([beat, Report("p", Tier.HEARTBEAT, "u", 1, 800, PLAIN, settings={"acks": "all"})])
    assert (known.sessions, known.began_ms) == ({"t": {MOVER}}, {"t": 900})


def test_an_end_is_read_to_once_its_sessions_have_been_heard_of():
    known = TransactionalTopics()
    asked = [(10, 1_000), (12, 1_500), (15, 2_000), (20, 2_999), (21, 3_000), (30, 9_000)]
    assert [known.settled_end("p", end, at, 1_000) for end, at in asked] == [0, 0, 10, 0, 15, 21]
