"""Per-message rows become reports that say exactly the same, against a naive reading."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from acktrail.audit.wire import BLOCK_BITS, decode_runs
from acktrail.cli import main
from acktrail.contracts.bronze import AUDIT_REPORTS
from acktrail.contracts.vocabulary import Tier
from acktrail.errors import UsageError
from acktrail.lake import Lake
from ingest.messages.message_files import ingest_files
from ingest.messages.reports import message_reports

AT = datetime(2026, 1, 31, tzinfo=UTC)
ROW = st.fixed_dictionaries(
    {
        "session": st.sampled_from(["s1", "s2"]),
        "topic": st.sampled_from(["orders", "pay"]),
        "seq": st.one_of(st.integers(0, 40), st.integers(32_760, 32_775)),
        "tier": st.sampled_from(["sent", "acked", "delivered", "in_log", "failed"]),
        "time": st.integers(0, 300_000),
        "group": st.sampled_from([None, "g"]),
        "partition": st.one_of(st.none(), st.integers(0, 1)),
        "offset": st.one_of(st.none(), st.integers(0, 60)),
        "leader_epoch": st.one_of(st.none(), st.integers(0, 3)),
        "error": st.sampled_from([None, "NOT_ENOUGH_REPLICAS"]),
    }
)
SCHEMA = pa.schema(
    [
        *[(n, pa.string()) for n in ("session", "topic", "tier", "group", "error")],
        *[(n, pa.int64()) for n in ("seq", "time", "partition", "offset", "leader_epoch")],
    ]
)


def seen(reports) -> set[tuple]:
    """Every (place, seq, offset) the reports speak of."""
    found = set()
    for r in reports:
        if r.tier in (Tier.HEARTBEAT, Tier.CONSUMED):
            continue
        runs = decode_runs(r.ids)
        error = next(iter(r.errors), "")
        for i in range(runs.starts.size):
            for k in range(int(runs.lengths[i])):
                seq = (r.block << BLOCK_BITS) + int(runs.starts[i]) + k
                at = None if runs.offsets is None else int(runs.offsets[i]) + k
                found.add((r.session, r.topic, r.tier.value, r.group, r.partition, error, seq, at))
    return found


def naive(listed) -> set[tuple]:
    return {
        (
            *(r["session"], r["topic"], r["tier"], r["group"] or ""),
            *(-1 if r["partition"] is None else r["partition"], r["error"] or ""),
            *(r["seq"], r["offset"]),
        )
        for r in listed
    }


@settings(max_examples=40, deadline=None)
@given(st.lists(ROW, max_size=40))
def test_reports_say_what_the_rows_say(listed):
    table = pa.Table.from_pylist(listed, schema=SCHEMA)
    reports = message_reports(table, "ab" * 16, 0, 1)
    assert seen(reports) == naive(listed)
    records = Counter()
    for r in reports:
        if r.tier is not Tier.CONSUMED:
            records[r.tier.value] += r.records
    assert {t: n for t, n in records.items() if n} == Counter(r["tier"] for r in listed)
    keys = [(r.session, r.topic, r.partition, r.tier, r.group, r.block, r.part) for r in reports]
    assert len(keys) == len(set(keys))


@settings(max_examples=30, deadline=None)
@given(st.lists(ROW, min_size=1, max_size=30))
def test_the_first_id_of_every_minute(listed):
    table = pa.Table.from_pylist(listed, schema=SCHEMA)
    got = {
        (r.session, r.topic, minute): seq
        for r in message_reports(table, "ab" * 16, 0, 1)
        if r.tier is Tier.HEARTBEAT
        for minute, seq in zip(r.minutes[::2], r.minutes[1::2], strict=True)
    }
    wanted: dict[tuple, int] = {}
    for r in listed:
        if r["tier"] == "sent":
            key = (r["session"], r["topic"], r["time"] // 60_000)
            wanted[key] = min(r["seq"], wanted.get(key, 1 << 60))
    assert got == wanted


def sent(count: int) -> list[dict]:
    return [
        {"session": "s", "topic": "t", "seq": n, "tier": "sent", "time": 1_760_000_000_000 + n}
        for n in range(count)
    ]


def test_a_file_is_read_once_whatever_its_form(tmp_path):
    lake = Lake(tmp_path / "lake")
    lines = tmp_path / "a.jsonl"
    lines.write_text("".join(json.dumps(r) + "\n" for r in sent(500)))
    parquet = tmp_path / "b.parquet"
    pq.write_table(pa.Table.from_pylist(sent(700)), parquet)
    first = ingest_files([lines, parquet], lake, "c", AT)
    assert [(f["rows"], f["new"]) for f in first] == [(500, 500), (700, 700)]
    again = ingest_files([parquet, lines], lake, "c", AT)
    assert [f["new"] for f in again] == [0, 0]
    stored = lake.read(AUDIT_REPORTS, columns=["tier", "records"]).to_pylist()
    assert sum(r["records"] for r in stored if r["tier"] == "sent") == 1200


def test_killed_after_a_commit_it_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr("ingest.messages.message_files.ROWS_AT_A_TIME", 100)
    parquet = tmp_path / "b.parquet"
    pq.write_table(pa.Table.from_pylist(sent(450)), parquet)
    lake = Lake(tmp_path / "lake")
    append, commits = lake.append, []

    def dies(*args, **kwargs):
        if len(commits) == 2:
            raise KeyboardInterrupt
        commits.append(append(*args, **kwargs))

    monkeypatch.setattr(lake, "append", dies)
    with pytest.raises(KeyboardInterrupt):
        ingest_files([parquet], lake, "c", AT)
    monkeypatch.setattr(lake, "append", append)
    (done,) = ingest_files([parquet], lake, "c", AT)
    assert done["new"] == 250
    stored = lake.read(AUDIT_REPORTS, columns=["records"]).to_pylist()
    assert sum(r["records"] for r in stored) == 450


READ = {
    "tier": "consumed", "topic": "t", "group": "g", "partition": 0, "first_offset": 5,
    "last_offset": 9, "member": "m", "assignment": 1, "time": 1_760_000_000_000,
}  # fmt: skip
WRONG = [
    # what is wrong                    rows                                   the error names
    ("a column is missing", [{"session": "s", "topic": "t", "seq": 1, "tier": "sent"}], "time"),
    ("an unknown tier", [{**sent(1)[0], "tier": "posted"}], "posted"),
    ("a tier without ids", [{**sent(1)[0], "tier": "scanned"}], "scanned"),
    ("a negative seq", [{**sent(1)[0], "seq": -1}], "below 0"),
    ("a null", [*sent(3), {**sent(1)[0], "session": None}, *sent(1)], "row 4: session is missing"),
    ("an empty topic", [{**sent(1)[0], "topic": ""}], "row 1: topic is missing"),
    ("no number", [{**sent(1)[0], "seq": "x"}], "cannot be read"),
    ("a range without a group", [{**READ, "group": None}], "group is missing, for tier consumed"),
    ("a range without an end", [{**READ, "last_offset": None}], "last_offset is missing"),
    (
        "a range that ends before it begins",
        [{**READ, "last_offset": 3}],
        "3 is below first_offset 5",
    ),
    ("a range of no partition", [{**READ, "partition": -1}], "partition -1 is below 0"),
    ("an assignment below 0", [{**READ, "assignment": -2}], "assignment -2 is below 0"),
]


@pytest.mark.parametrize(("listed", "named"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG])
def test_wrong_rows_are_refused_whole(tmp_path, listed, named):
    file = tmp_path / "wrong.jsonl"
    file.write_text("".join(json.dumps(r) + "\n" for r in listed))
    lake = Lake(tmp_path / "lake")
    with pytest.raises(UsageError, match=named):
        ingest_files([file], lake, "c", AT)
    assert not lake.exists(AUDIT_REPORTS)


TIMES = [
    # as written                    what the error says of it; None: it is taken
    (1_760_000_000_000, None),
    (1_760_000_000_000.7, None),
    ("2025-10-09T08:53:20Z", None),
    ("2025-10-09 10:53:20.123456+02:00", None),
    (1_760_000_000, r"time 1760000000 looks like seconds; write milliseconds \(1760000000000\) "
                    r"or text \(2025-10-09T08:53:20.000Z\)"),
    (1_760_000_000.5, r"looks like seconds; write milliseconds \(1760000000500\)"),
    (1_760_000_000_000_000, r"looks like microseconds; write milliseconds \(1760000000000\)"),
    (1_760_000_000_000_000_000, r"looks like nanoseconds; write milliseconds \(1760000000000\)"),
    (0, "time 1970-01-01T00:00:00.000Z is before 2010"),
    (-5, "time 1969-12-31T23:59:59.995Z is before 2010"),
    (1_800_000_000_000, "time 2027-01-15T08:00:00.000Z is in the future"),
    (1 << 62, "is not a time in milliseconds"),
    ("1970-01-01T00:00:00Z", "time 1970-01-01T00:00:00.000Z is before 2010"),
    ("2027-01-15T08:00:00Z", "is in the future"),
    ("2025-10-09T08:53:20", "time 2025-10-09T08:53:20 has no zone; write it with one, e.g. "
                            "2025-10-09T08:53:20Z for UTC"),
    ("2025-10-09", "time '2025-10-09' is not a time; write milliseconds since 1970 or a text with"),
    ("1760000000000", "time '1760000000000' is not a time"),
    ("yesterday", "time 'yesterday' is not a time"),
    (True, "time has the type bool"),
    (None, "time is missing"),
]  # fmt: skip


@pytest.mark.parametrize(("time", "named"), TIMES, ids=[str(t[0]) for t in TIMES])
def test_times_in_a_wrong_unit_or_without_a_zone_are_refused(tmp_path, time, named):
    file = tmp_path / "times.jsonl"
    good = {str: "2025-10-09T08:53:20Z", bool: True}.get(type(time), 1_760_000_000_000)
    rows = [{**sent(1)[0], "time": value} for value in (good, time)]
    file.write_text("".join(json.dumps(r) + "\n" for r in rows))
    lake = Lake(tmp_path / "lake")
    if named is None:
        ingest_files([file], lake, "c", AT)
        ends = lake.read(AUDIT_REPORTS, columns=["ended_at"]).column("ended_at").to_pylist()
        assert {end.isoformat(timespec="seconds") for end in ends} == {"2025-10-09T08:53:20+00:00"}
        return
    with pytest.raises(UsageError, match=f"row (1|2): .*{named}"):
        ingest_files([file], lake, "c", AT)
    assert not lake.exists(AUDIT_REPORTS)


STAMPS = [
    (pa.timestamp("ms", "UTC"), None),
    (pa.timestamp("ns", "Europe/Berlin"), None),
    (pa.timestamp("us"), "time 2025-10-09 08:53:20 has no zone"),
    (pa.date32(), "time has the type date32"),
]


@pytest.mark.parametrize(("kind", "named"), STAMPS, ids=[str(s[0]) for s in STAMPS])
def test_timestamps_of_parquet_need_a_zone(tmp_path, kind, named):
    file = tmp_path / "times.parquet"
    table = pa.Table.from_pylist(sent(1))
    at = pa.array([datetime(2025, 10, 9, 8, 53, 20)]).cast(kind, safe=False)
    pq.write_table(table.set_column(4, "time", at), file)
    if named is None:
        ingest_files([file], Lake(tmp_path / "lake"), "c", AT)
        return
    with pytest.raises(UsageError, match=f"row 1: {named}"):
        ingest_files([file], Lake(tmp_path / "lake"), "c", AT)


def test_the_first_wrong_rows_are_named_and_the_rest_is_counted(tmp_path, monkeypatch):
    """Also where the wrong rows come after a piece that is right: nothing is written before."""
    monkeypatch.setattr("ingest.messages.message_files.ROWS_AT_A_TIME", 10)
    file = tmp_path / "wrong.parquet"
    listed = [{**r, "tier": "posted"} if n >= 12 else r for n, r in enumerate(sent(30))]
    pq.write_table(pa.Table.from_pylist(listed), file)
    lake = Lake(tmp_path / "lake")
    with pytest.raises(UsageError) as refused:
        ingest_files([file], lake, "c", AT)
    first, *named = str(refused.value).splitlines()
    assert first.endswith("18 of 30 rows are wrong; nothing of the file was written.")
    assert [line.split(":")[0].strip() for line in named] == [
        *(f"row {n}" for n in range(13, 18)),
        "and 13 more",
    ]
    assert not lake.exists(AUDIT_REPORTS)


def test_ranges_that_members_read_are_reports_of_their_own(tmp_path):
    file = tmp_path / "read.jsonl"
    listed = [
        READ, {**READ, "first_offset": 15, "last_offset": 19},
        {**READ, "member": "other"}, {**READ, "assignment": None},
    ]  # fmt: skip
    file.write_text("".join(json.dumps(r) + "\n" for r in listed))
    lake = Lake(tmp_path / "lake")
    ingest_files([file], lake, "c", AT)
    found = lake.read(AUDIT_REPORTS).to_pylist()
    assert {r["tier"] for r in found} == {"consumed"}
    assert [(r["first_offset"], r["last_offset"], r["assignment"], r["part"]) for r in found] == [
        (5, 9, 1, 0), (15, 19, 1, 1), (5, 9, 1, 2), (5, 9, None, 3),
    ]  # fmt: skip
    reporters = [r["reporter"] for r in found]
    assert reporters[0] == reporters[1] == reporters[3] != reporters[2]


@settings(max_examples=40, deadline=None)
@given(st.lists(ROW, max_size=40))
def test_delivered_messages_prove_where_a_group_was(listed):
    """The lowest and the highest offset of each place, none of them in one assignment."""
    reports = message_reports(pa.Table.from_pylist(listed, schema=SCHEMA), "ab" * 16, 0, 1)
    got: dict[tuple, set[int]] = {}
    for r in reports:
        if r.tier is Tier.CONSUMED:
            assert r.first_offset == r.last_offset
            assert r.assignment is None
            got.setdefault((r.topic, r.group, r.partition), set()).add(r.first_offset)
    wanted: dict[tuple, set[int]] = {}
    for r in listed:
        if r["tier"] == "delivered" and None not in (r["group"], r["partition"], r["offset"]):
            place = (r["topic"], r["group"], r["partition"])
            wanted.setdefault(place, set()).add(r["offset"])
    assert got == {place: {min(found), max(found)} for place, found in wanted.items()}


def test_the_command(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_text("".join(json.dumps(r) + "\n" for r in sent(5)))
    args = ["ingest", "audits", str(file), "--lake", str(tmp_path / "lake"), "--format", "json"]
    done = CliRunner().invoke(main, args)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == {"file": str(file), "rows": 5, "new": 5, "reports": 2}


def test_the_producer_of_a_session_is_told_by_what_it_sent():
    minute = 60_000
    listed = [
        {"session": "s1", "tier": "sent", "seq": 0, "time": 0, "client_id": "pay", "host": "h1"},
        {"session": "s1", "tier": "sent", "seq": 1, "time": minute, "client_id": None},
        {"session": "s1", "tier": "acked", "seq": 0, "time": 5},
        {"session": "s2", "tier": "sent", "seq": 0, "time": 0, "client_id": "other"},
    ]
    piece = pa.Table.from_pylist(
        [{"topic": "t", "client_id": None, "host": None} | row for row in listed]
    )
    beats = [r for r in message_reports(piece, "r", 0, 0) if r.tier is Tier.HEARTBEAT]
    assert {r.session: (dict(r.settings), r.minutes) for r in beats} == {
        "s1": ({"client_id": "pay", "host": "h1"}, (0, 0, 1, 1)),
        "s2": ({"client_id": "other"}, (0, 0)),
    }
