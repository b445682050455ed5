"""Which ranges a scanner looks at, against a naive account of every id."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from acktrail.audit.wire import Report, Sighting, encode_sightings, row_of_report
from acktrail.contracts.vocabulary import Tier
from ingest.sources.scan_plan import Suspect, suspects

AT = datetime(2026, 1, 31, tzinfo=UTC)
PLACES = {("t", 0): [(0, 0)], ("t", 1): [(0, 0)]}


def rows(sightings, *more: Report):
    made = encode_sightings(sightings, "ab" * 16, 0, 1_000)
    return [row_of_report(r, "c", "s", AT) for r in (*made, *more)]


def seen(seq: int, tier: Tier, offset: int | None = None, at: int = 1_000) -> Sighting:
    partition = -1 if offset is None else 0
    group = "g" if tier is Tier.DELIVERED else ""
    return Sighting("s", "t", seq, tier, at, partition=partition, offset=offset, group=group)


def scanned(first: int, last: int, began: int, closed: bool = False) -> Report:
    return Report(
        "cd" * 16,
        Tier.SCANNED,
        "t",
        0,
        began,
        partition=0,
        first_offset=first,
        last_offset=last,
        began_ms=began,
        ended_ms=began,
        closed=closed,
    )


def ask(listed, now=10_000, settle=500, margin=0):
    return suspects(listed, PLACES, now, settle, margin)


ACKED = [seen(n, Tier.ACKED, 100 + n) for n in range(10)]
READ = [seen(n, Tier.DELIVERED, 100 + n) for n in range(10) if n not in (4, 5)]
BOTH = ACKED + READ
LOOK = Suspect(100, 105, 1_500)

CASES = [
    # case                                    reports                               ranges of t-0
    ("nobody saw 4 and 5", rows(BOTH), [LOOK]),
    ("all were delivered", rows(ACKED + [seen(n, Tier.DELIVERED, 1) for n in range(10)]), None),
    ("all are in the log", rows(ACKED + [seen(n, Tier.IN_LOG, 100 + n) for n in range(10)]), None),
    ("a scan before it was due", rows(BOTH, scanned(0, 200, 1_400)), [LOOK]),
    ("a scan since it was due", rows(BOTH, scanned(0, 200, 1_500)), None),
    ("a scan since, not far enough", rows(BOTH, scanned(0, 104, 1_500)), [LOOK]),
    ("two scans that meet", rows(BOTH, scanned(0, 102, 1_600), scanned(103, 120, 1_700)), None),
    ("two with a gap", rows(BOTH, scanned(0, 101, 1_600), scanned(103, 120, 1_700)), [LOOK]),
    ("the log ends before", rows(BOTH, scanned(90, 99, 1_600, closed=True)), None),
    ("failed ones need a look too, later", rows([seen(0, Tier.FAILED)]), None),
    ("nothing is known", [], None),
]  # fmt: skip


def test_named_cases():
    for name, listed, wanted in CASES:
        assert ask(listed).get(("t", 0)) == wanted, name


def test_margin_widens_and_joins():
    acked = [seen(n, Tier.ACKED, n) for n in range(100)]
    read = [seen(n, Tier.DELIVERED, n) for n in range(100) if n not in (40, 50)]
    (one,) = ask(rows(acked + read), margin=5)["t", 0]
    assert (one.first_offset, one.last_offset) == (0, 55)


def test_an_id_without_a_place_wants_every_partition_once_it_can_no_longer_come():
    listed = rows([seen(0, Tier.INDETERMINATE)])
    assert ask(listed, now=150_000) == {}
    due = 1_000 + 120_000 + 30_000
    wanted = [Suspect(0, None, due)]
    assert ask(listed, now=due) == {("t", 0): wanted, ("t", 1): wanted}
    patient = Report(
        "ab" * 16, Tier.HEARTBEAT, "t", 0, 0, session="s", settings={"delivery.timeout.ms": "5000"}
    )
    listed = rows([seen(0, Tier.INDETERMINATE)], patient)
    assert ask(listed, now=36_000)["t", 0] == [Suspect(0, None, 36_000)]
    covering = [scanned(0, 9, 36_000), scanned(10, 9, 36_100, closed=True)]
    assert ("t", 0) not in ask(rows([seen(0, Tier.INDETERMINATE)], patient, *covering), now=37_000)


def test_a_session_is_not_sought_before_it_began():
    listed = rows([seen(0, Tier.INDETERMINATE, at=5_000)])
    ends = {("t", 0): [(1_000, 70), (4_000, 80), (6_000, 90)], ("t", 1): [(6_000, 7)]}
    found = suspects(listed, ends, 1_000_000, 0, 0)
    assert [s.first_offset for s in found["t", 0]] == [80]
    assert [s.first_offset for s in found["t", 1]] == [0]


IDS = st.sets(st.integers(0, 60), max_size=30)


@settings(max_examples=50, deadline=None)
@given(IDS, IDS, st.integers(0, 5))
def test_every_missing_offset_is_in_a_range_and_ranges_do_not_touch(acked, read, margin):
    sightings = [seen(n, Tier.ACKED, 1000 + 2 * n) for n in acked]
    sightings += [seen(n, Tier.IN_LOG, 1000 + 2 * n) for n in read]
    ranges = ask(rows(sightings), margin=margin).get(("t", 0), [])
    covered = {o for s in ranges for o in range(s.first_offset, s.last_offset + 1)}
    missing = {1000 + 2 * n for n in acked - read}
    assert missing <= covered
    assert bool(ranges) == bool(missing)
    bounds = [(s.first_offset, s.last_offset) for s in ranges]
    assert all(a[1] + 1 < b[0] for a, b in pairwise(bounds))
