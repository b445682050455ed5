"""What a scan says of the offsets it read: which hold no id, and what was known before it began."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from acktrail.audit.wire import BLOCK_IDS, Header, decode_runs, encode_header
from acktrail.contracts.vocabulary import Tier
from ingest.sources.scan_reports import LogRecord, ScannedRange, scan_reports

SESSION = "5e" * 16


def record(offset: int, seq: int | None) -> LogRecord:
    header = None if seq is None else encode_header(Header(SESSION, seq, 0))
    return LogRecord(offset, b"payload", header, 3)


def a_scan(first: int, end: int, closed: bool = True) -> ScannedRange:
    return ScannedRange("t", 0, first, end, 5, 9, closed, "id", 3, after_ms=4)


# Gaps are what compaction and transaction markers leave; long ones reach over a run list's end.
gaps = st.one_of(st.integers(0, 3), st.integers(0, 3 * BLOCK_IDS))


@settings(max_examples=200, deadline=None)
@given(
    st.integers(0, 10), st.lists(st.tuples(gaps, st.booleans()), max_size=12), gaps, st.booleans()
)
def test_rows_follow_each_other_and_name_what_has_no_id(first, steps, rest, closed):
    records, offset = [], first - 1
    for gap, named in steps:
        offset += 1 + gap
        records.append(record(offset, offset if named else None))
    end = offset + 1 + rest
    made = scan_reports(a_scan(first, end, closed), records, "ab" * 16, 7)
    covered = [r for r in made if r.tier is Tier.SCANNED]
    bounds = [(r.first_offset, r.last_offset + 1) for r in covered]
    assert bounds[0][0] == first
    assert bounds[-1][1] == end
    assert all(a[1] == b[0] for a, b in pairwise(bounds))
    assert sum(r.records for r in covered) == len(records)
    assert [r.closed for r in covered] == [False] * (len(covered) - 1) + [closed]
    assert len({r.part for r in covered}) == len(covered)
    assert max(r.part for r in made) < 7 + len(records) + 1
    unnamed = {r.first_offset + int(n) for r in covered for n in numbers(r.unnamed)}
    assert unnamed == {r.offset for r in records if r.header is None}
    found = [r for r in made if r.tier is Tier.IN_LOG]
    assert sum(r.records for r in found) == sum(named for _, named in steps)
    assert {r.after_ms for r in made} == {4}


def numbers(runs: bytes | None) -> np.ndarray:
    return np.empty(0, int) if runs is None else decode_runs(runs).listed()[0]


def test_a_scan_of_nothing_but_named_records_is_one_row():
    records = [record(n * BLOCK_IDS, n) for n in range(5)]
    (covered,) = [
        r
        for r in scan_reports(a_scan(0, 10 * BLOCK_IDS), records, "ab" * 16, 0)
        if r.tier is Tier.SCANNED
    ]
    assert (covered.unnamed, covered.last_offset) == (None, 10 * BLOCK_IDS - 1)
