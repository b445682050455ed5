"""Which ranges a scanner looks at, against a naive account of every id."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from acktrail.audit.wire import Report, Sighting, encode_sightings
from acktrail.contracts.vocabulary import Tier
from ingest.sources.scan_plan import Bounds, ScanPlan, Suspect

PLACE = ("t", 0)
PARTITIONS = {PLACE: Bounds(0, 1_000, "id"), ("t", 1): Bounds(0, 10, "id")}
SETTLE, RECEIVED = 500, 1_000


def reports(sightings, received: int = RECEIVED) -> list[Report]:
    made = encode_sightings(sightings, "ab" * 16, received, 7)
    return [replace(r, received_ms=received) for r in made]


def seen(seq: int, tier: Tier, offset: int | None = None, error: str | None = None) -> Sighting:
    partition = -1 if offset is None else 0
    group = "g" if tier is Tier.DELIVERED else ""
    # The producer's clock: no decision may depend on it.
    return Sighting(
        "s", "t", seq, tier, 10**12, partition=partition, offset=offset, group=group, error=error
    )


def scanned(first: int, last: int, after: int | None, closed: bool = False, **more) -> Report:
    facts = {"partition": 0, "topic_id": "id", "first_offset": first, "last_offset": last}
    facts |= {"began_ms": 1, "ended_ms": 1, "closed": closed, "after_ms": after, **more}
    return Report("cd" * 16, Tier.SCANNED, "t", 0, 1, **facts)


def beat(session: str = "s", received: int = RECEIVED, **facts) -> Report:
    return Report("ab" * 16, Tier.HEARTBEAT, "t", 0, 0, session, received_ms=received, **facts)


def ask(listed, after=10_000, margin=0, partitions=None, lowest=0):
    plan = ScanPlan(SETTLE, margin)
    plan.take(listed)
    return plan.suspects(after, partitions or PARTITIONS, lambda _place, _begun: lowest)


ACKED = reports([seen(n, Tier.ACKED, 100 + n) for n in range(10)])
READ = reports([seen(n, Tier.DELIVERED, 100 + n) for n in range(10) if n not in (4, 5)], 900)
BOTH = ACKED + READ
LOOK = Suspect(100, 105, RECEIVED)
ALL = reports([seen(n, Tier.IN_LOG, 100 + n) for n in range(10)], 900)

BROKERS = [seen(0, Tier.FAILED, error="NotEnoughReplicasException")]

CASES = [
    # case                                    reports                             ranges of t-0
    ("nobody saw 4 and 5", BOTH, [LOOK]),
    ("all were delivered", ACKED + reports([seen(n, Tier.DELIVERED, 1) for n in range(10)]), None),
    ("all are in the log", ACKED + ALL, None),
    ("a look before the receipt", [*BOTH, scanned(0, 200, RECEIVED - 1)], [LOOK]),
    ("a look of which it is not known", [*BOTH, scanned(0, 200, None)], [LOOK]),
    ("a look since the receipt", [*BOTH, scanned(0, 200, RECEIVED)], None),
    ("at a deleted topic of that name", [*BOTH, scanned(0, 200, 1_600, topic_id="x")], [LOOK]),
    ("a look since, not far enough", [*BOTH, scanned(0, 104, RECEIVED)], [LOOK]),
    ("two looks that meet", [*BOTH, scanned(0, 102, 1_600), scanned(103, 120, 1_700)], None),
    ("two with a gap", [*BOTH, scanned(0, 101, 1_600), scanned(103, 120, 1_700)], [LOOK]),
    ("the log ends before", [*BOTH, scanned(90, 99, 1_600, closed=True)], None),
    ("told failed, and not late enough", reports(BROKERS), None),
    ("nothing is known", [], None),
]  # fmt: skip


def test_named_cases():
    for name, listed, wanted in CASES:
        assert ask(listed).get(PLACE) == wanted, name


def test_a_report_settles_first():
    assert ask(BOTH, after=RECEIVED + SETTLE - 1) == {}
    assert ask(BOTH, after=RECEIVED + SETTLE) == {PLACE: [LOOK]}


def test_what_retention_has_taken_is_not_read_for_ever():
    gone = {PLACE: Bounds(106, 1_000, "id")}
    assert ask(BOTH, partitions=gone) == {}
    half = {PLACE: Bounds(103, 1_000, "id")}
    assert ask(BOTH, partitions=half) == {PLACE: [LOOK]}
    assert ask([*BOTH, scanned(103, 105, RECEIVED)], partitions=half) == {}


def test_margin_widens_and_joins():
    acked = reports([seen(n, Tier.ACKED, n) for n in range(100)])
    read = reports([seen(n, Tier.DELIVERED, n) for n in range(100) if n not in (40, 50)])
    (one,) = ask(acked + read, margin=5)[PLACE]
    assert (one.first_offset, one.last_offset) == (0, 55)


WHOLE = {PLACE, ("t", 1)}
WAIT = 30_000
"""The time a request may lie at a broker."""
CLIENTS = [seen(0, Tier.FAILED, error="TimeoutException(metadata)")]
SENT = reports([seen(0, Tier.SENT)])
LATER = 3_000_000
NAMED = {"client_id": "shop", "host": "a"}
SHORT = {"delivery.timeout.ms": "5000"}

WITHOUT_A_PLACE = [
    # case                                      reports                                due
    ("nobody knows", reports([seen(0, Tier.INDETERMINATE, error="X")]), RECEIVED + WAIT),
    ("acks=0", reports([seen(0, Tier.SENT_UNACKED)]), RECEIVED + WAIT),
    ("told failed by a broker, perhaps after a first attempt", reports(BROKERS), RECEIVED + WAIT),
    ("told failed before anything was sent", reports(CLIENTS), None),
    ("handed over: a client that is not known may try for 300 s", SENT, RECEIVED + 300_000 + WAIT),
    ("its settings say less", [*SENT, beat(settings=SHORT)], RECEIVED + 5_000 + WAIT),
    ("it was killed", [*SENT, beat(received=9_000, exited=True)], 9_000 + WAIT),
    ("it was closed", [*SENT, beat(received=9_000, closed=True)], 9_000 + WAIT),
    (
        "a successor on its host",
        [*SENT, beat(settings=NAMED), beat("new", 8_000, settings=NAMED)],
        8_000 + WAIT,
    ),
    (
        "its namesake on another host",
        [*SENT, beat(settings=NAMED), beat("new", 8_000, settings={**NAMED, "host": "b"})],
        RECEIVED + 300_000 + WAIT,
    ),
    ("handed over, then acked", [*SENT, *ACKED, *ALL], None),
    ("handed over, then seen", [*SENT, *ALL], None),
]  # fmt: skip


def test_an_id_without_a_place_wants_every_partition_once_it_can_no_longer_come():
    for name, listed, due in WITHOUT_A_PLACE:
        if due is None:
            assert ask(listed, after=LATER) == {}, name
            continue
        assert ask(listed, after=due - 1) == {}, name
        wanted = [Suspect(7, None, due)]
        assert ask(listed, after=due, lowest=7) == dict.fromkeys(WHOLE, wanted), name
        late = [scanned(0, 9, due, partition=p) for p in (0, 1)]
        late += [scanned(10, 9, due, closed=True, partition=p) for p in (0, 1)]
        assert ask([*listed, *late], after=due, lowest=7) == {}, name


def test_of_a_silent_session_a_look_is_made_again_once_it_has_ended():
    plan = ScanPlan(SETTLE, 0)
    plan.take(SENT)
    first = RECEIVED + 300_000 + WAIT
    assert plan.suspects(first, {PLACE: Bounds(0, 9)}, lambda *_: 0)
    plan.take([scanned(0, 8, first, closed=True)])
    assert plan.suspects(first + 1, {PLACE: Bounds(0, 9)}, lambda *_: 0) == {}
    plan.take([beat(received=first + 5, exited=True)])
    assert plan.suspects(first + 10, {PLACE: Bounds(0, 9)}, lambda *_: 0) == {}
    assert plan.waits_for() == first + 5 + WAIT
    found = plan.suspects(first + 5 + WAIT, {PLACE: Bounds(0, 9)}, lambda *_: 0)
    assert found == {PLACE: [Suspect(0, None, first + 5 + WAIT)]}


IDS = st.sets(st.integers(0, 60), max_size=30)


@settings(max_examples=50, deadline=None)
@given(IDS, IDS, st.integers(0, 5))
def test_every_missing_offset_is_in_a_range_and_ranges_do_not_touch(acked, read, margin):
    listed = reports([seen(n, Tier.ACKED, 200 + 2 * n) for n in acked])
    listed += reports([seen(n, Tier.IN_LOG, 200 + 2 * n) for n in read])
    ranges = ask(listed, margin=margin).get(PLACE, [])
    covered = {o for s in ranges for o in range(s.first_offset, s.last_offset + 1)}
    missing = {200 + 2 * n for n in acked - read}
    assert missing <= covered
    assert bool(ranges) == bool(missing)
    bounds = [(s.first_offset, s.last_offset) for s in ranges]
    assert all(a[1] + 1 < b[0] for a, b in pairwise(bounds))


class Scanner:
    """A partition, its reports, and a scanner that does what the plan says, beside naive books."""

    def __init__(self, margin: int) -> None:
        self.plan = ScanPlan(SETTLE, margin)
        self.receipt = 0
        self.log: dict[int, int] = {}
        """Offset to id."""
        self.acked: dict[int, tuple[int, int]] = {}
        """Id to offset and receipt."""
        self.sighted: set[int] = set()
        self.looks: list[tuple[int, int, int]] = []
        self.read = 0

    def commit(self, made: list[Report]) -> None:
        self.receipt += 1
        self.plan.take([replace(r, received_ms=self.receipt) for r in made])

    def round(self, latest: int) -> int:
        """One round; the number of offsets that were read."""
        after, read = self.receipt, 0
        for one in self.plan.suspects(after, {PLACE: Bounds(0, latest)}, lambda *_: 0).get(
            PLACE, []
        ):
            start = min(one.first_offset, latest)
            end = latest if one.last_offset is None else min(latest, one.last_offset + 1)
            there = [(o, i) for o, i in self.log.items() if start <= o < end]
            made = reports([seen(i, Tier.IN_LOG, o) for o, i in sorted(there)])
            self.sighted |= {i for _, i in there}
            self.looks.append((start, end if end < latest else 10**9, after))
            self.commit([*made, scanned(start, end - 1, after, end >= latest)])
            read += end - start
        self.read += read
        return read

    def is_decided(self, message: int) -> bool:
        offset, received = self.acked[message]
        return message in self.sighted or any(
            first <= offset < end and after >= received for first, end, after in self.looks
        )


@st.composite
def histories(draw):
    """Per step: ids that are acked, of these the lost ones and those that a group has read."""
    ids = list(range(draw(st.integers(1, 40))))
    steps = []
    while ids:
        count = draw(st.integers(1, 8))
        now, ids = ids[:count], ids[count:]
        lost = draw(st.sets(st.sampled_from(now)))
        read = draw(st.sets(st.sampled_from(now)))
        steps.append((now, lost, read, draw(st.booleans())))
    return steps, draw(st.integers(0, 4)), draw(st.integers(0, 60))


@settings(max_examples=100, deadline=None)
@given(histories())
def test_in_the_end_every_promise_was_seen_or_looked_for_and_nothing_is_read_for_ever(history):
    steps, margin, tail = history
    scanner = Scanner(margin)
    latest = 60
    for now, lost, read, looked in steps:
        scanner.commit(reports([seen(i, Tier.DELIVERED, i) for i in read - lost]))
        scanner.sighted |= read - lost
        scanner.log |= {i: i for i in now if i not in lost}
        scanner.commit(reports([seen(i, Tier.ACKED, i) for i in now]))
        scanner.acked |= {i: (i, scanner.receipt) for i in now}
        scanner.receipt += tail * 20
        if looked:
            scanner.round(latest)
    scanner.receipt += SETTLE
    scanner.round(latest)
    assert all(scanner.is_decided(i) for i in scanner.acked)
    scanner.receipt += SETTLE
    assert scanner.round(latest) == 0
    assert scanner.plan.settled(scanner.receipt) == scanner.receipt


@settings(max_examples=50, deadline=None)
@given(IDS, IDS, st.randoms(use_true_random=False))
def test_the_order_of_reports_and_their_number_do_not_matter(acked, read, chance):
    listed = reports([seen(n, Tier.ACKED, 200 + n) for n in acked])
    listed += reports([seen(n, Tier.DELIVERED, 200 + n) for n in read])
    listed += [*SENT, beat(received=9_000, exited=True), scanned(0, 210, 900)]
    wanted = ask(listed, after=LATER)
    mixed = listed + chance.sample(listed, len(listed) // 2)
    chance.shuffle(mixed)
    assert ask(mixed, after=LATER) == wanted


def test_books_are_closed_after_a_while():
    """What is decided is forgotten: a round costs what is new and what is open."""
    plan = ScanPlan(SETTLE, 0)
    for number in range(200):
        at = number * 60_000
        acks = encode_sightings(
            [Sighting("s", "t", number << 15, Tier.ACKED, 0, 0, number)], "ab" * 16, number, 0
        )
        reads = encode_sightings(
            [Sighting("s", "t", number << 15, Tier.DELIVERED, 0, 0, number, "g")], "ab" * 16, 0, 0
        )
        plan.take(replace(r, received_ms=at) for r in (*acks, *reads))
        plan.take([scanned(number, number, at)])
        assert plan.suspects(at, PARTITIONS, lambda *_: 0) == {}
    assert len(plan._blocks) <= 62
    assert len(plan._looks[PLACE]) <= 62
