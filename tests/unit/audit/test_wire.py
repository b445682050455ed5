"""The wire: the vectors of docs/wire.md, and round trips of anything."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acktrail.audit import wire
from acktrail.contracts.arrow import rows
from acktrail.contracts.bronze import AUDIT_REPORTS
from acktrail.contracts.vocabulary import Tier

PAGE = Path("docs/wire.md").read_text(encoding="utf-8")


def _cells(after: str) -> list[list[str]]:
    """The rows of the first table after *after*, without backticks."""
    lines = PAGE[PAGE.index(after) :].splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("| ---"))
    found = []
    for line in lines[start + 1 :]:
        if not line.startswith("|"):
            break
        found.append([cell.strip(" `") for cell in line.strip("|").split("|")])
    return found


def _numbers(text: str) -> list[int]:
    found: list[int] = []
    for span in re.findall(r"\d+(?:-\d+)?", text):
        first, _, last = span.partition("-")
        found.extend(range(int(first), int(last or first) + 1))
    return found


@pytest.mark.parametrize("row", _cells("## Identity"))
def test_buckets_of_the_page(row):
    session, block, bucket = row
    assert wire.bucket_of(session, int(block)) == bucket


@pytest.mark.parametrize("row", _cells("## The record header"))
def test_headers_of_the_page(row):
    session, seq, created, value = row
    header = wire.Header(session, int(seq), int(created))
    assert wire.encode_header(header).hex() == value
    assert wire.decode_header(bytes.fromhex(value)) == header
    assert len(value) == 66


@pytest.mark.parametrize("row", _cells("## Run lists"))
def test_run_lists_of_the_page(row):
    ids, offsets, text = row
    wanted = _numbers(ids)
    at = _numbers(offsets) or None
    assert wire.encode_ids(wanted, at).hex() == text
    assert wire.ids_of(wire.bitmap_of(bytes.fromhex(text))).tolist() == wanted


REPORTS = re.findall(r"```json\n(.*?)\n```", PAGE, re.DOTALL)


@pytest.mark.parametrize("text", REPORTS)
def test_reports_of_the_page(text):
    assert wire.encode_reports(wire.decode_reports(text.encode())).decode() == text


def test_what_the_reports_of_the_page_mean():
    acked, closing, alive = (wire.decode_reports(text.encode()) for text in REPORTS)
    assert wire.ids_of(wire.bitmap_of(acked[0].ids)).tolist() == list(range(100))
    last, offsets, failed = closing
    assert (last.closed, last.records, last.dropped) == (True, 101, {"delivered": 3})
    assert last.metrics == {"record-retry-total": 2.0}
    assert wire.ids_of(wire.bitmap_of(offsets.ids))[-1] + (offsets.block << 15) == 32_867
    assert wire.ids_of(wire.bitmap_of(failed.ids)).tolist() == [100]
    assert alive[0].outcomes == {"0": 2_097_152, "1": 1}


@pytest.mark.parametrize("row", _cells("A record may hold several"))
def test_several_headers_of_the_page(row):
    headers = [(n, bytes.fromhex(v)) for n, v in re.findall(r"`?(\w+)` = `(\w+)", row[0])]
    assert len(headers) > 1
    session, seq = re.fullmatch(r"session `(\w+)`, seq (\d+)", row[1]).groups()
    found = wire.decode_header(wire.own_header(headers))
    assert (found.session, found.seq) == (session, int(seq))


def test_a_foreign_header_of_our_name_stays_foreign():
    assert wire.own_header([("acktrail", b"x"), ("other", b"y")]) == b"x"
    assert wire.own_header([("acktrail", "text")]) is None
    assert wire.own_header(None) is None


FIELDS = st.sampled_from(sorted(wire.Report.__dataclass_fields__))
STRANGE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    | st.sampled_from(["\ud800", 10**30, -1, "AAA=", "heartbeat", 1e999]),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)  # fmt: skip


@given(st.dictionaries(FIELDS, STRANGE, max_size=4))
def test_any_json_fits_the_table_or_is_refused(fields):
    """Whoever writes to the audit topic, nothing it holds stops the source that reads it."""
    sound = {"reporter": "r", "tier": "sent", "topic": "t", "number": 1, "reported_ms": 5}
    message = json.dumps({"v": 1, "reports": [{**sound, **fields}]}).encode()
    try:
        (report,) = wire.decode_reports(message)
    except ValueError:
        return
    rows(AUDIT_REPORTS, [wire.row_of_report(report, "c", "s", datetime(2026, 1, 31, tzinfo=UTC))])
    assert wire.decode_reports(wire.encode_reports([report])) == [report]


def test_every_field_is_on_the_page():
    listed = " ".join(row[0] for row in _cells("## Reports"))
    assert set(re.findall(r"[a-z0-9_]+", listed)) == set(wire.Report.__dataclass_fields__)


IDS = st.lists(st.integers(0, wire.BLOCK_IDS - 1), unique=True, max_size=300)


@given(IDS, st.booleans(), st.integers(0, 2**60))
def test_any_ids_come_back(ids, with_offsets, base):
    ids = sorted(ids)
    offsets = [base + 3 * i for i in range(len(ids))] if with_offsets else None
    text = wire.encode_ids(ids, offsets)
    runs = wire.decode_runs(text)
    back = [i for s, n in zip(runs.starts, runs.lengths, strict=True) for i in range(s, s + n)]
    assert back == ids
    assert runs.count == len(ids)
    if offsets is not None:
        spans = zip(runs.offsets, runs.lengths, strict=True)
        assert [o for first, n in spans for o in range(first, first + n)] == offsets


def test_numbers_whose_sum_overflows_leave_the_block():
    huge = b"\x80" * 8 + b"\x40\x00"  # a gap of 2**62, and a run of one id
    back = b"\x86" + b"\x80" * 7 + b"\x40\x00"  # with the three before, the sum is 9
    with pytest.raises(ValueError, match="leaves its block"):
        wire.decode_runs(b"\x00" + 3 * huge + back)


@given(st.integers(0, 2**32 - 1))
def test_any_bitmap_comes_back_and_is_never_longer_than_itself(seed):
    made = np.random.default_rng(seed)
    bitmap = np.packbits(made.random(wire.BLOCK_IDS) < made.random(), bitorder="little")
    text = wire.encode_ids(wire.ids_of(bitmap))
    assert wire.bitmap_of(text).tobytes() == bitmap.tobytes()
    assert wire.decode_runs(text).count == int(np.unpackbits(bitmap).sum())
    assert len(text) <= wire.BITMAP_BYTES + 1


@given(st.binary(max_size=40))
def test_strange_bytes_are_refused_not_misread(text):
    try:
        runs = wire.decode_runs(text)
    except ValueError:
        return
    assert runs.count <= wire.BLOCK_IDS


@given(st.integers(0, 2**48 - 1))
def test_a_session_tells_its_start(now_ms):
    session = wire.new_session(now_ms)
    assert wire.session_started_ms(session) == now_ms
    assert len(session) == 32


@given(st.text(max_size=20))
def test_any_session_has_a_bucket(session):
    assert re.fullmatch(r"(x[0-9a-f]{2}|[0-9T-]+)\.1", wire.bucket_of(session, 70))


def test_sightings_become_parts_and_fit_the_contract():
    seen = [
        wire.Sighting("run-1", "orders", seq, Tier.IN_LOG, 1_000 + at, 0, offset=at)
        # 3 is stored twice, 1 after 2, and offset 0 is read twice
        for at, seq in [(0, 0), (1, 2), (2, 1), (3, 3), (4, 3), (5, 40_000), (0, 0)]
    ]
    reports = wire.encode_sightings(seen, "r", 1, 2_000)
    got = [
        (r.block, r.part, r.records, r.first_offset, r.last_offset, r.steps_back) for r in reports
    ]
    assert got == [(0, 0, 5, 0, 3, 1), (0, 1, 1, 4, 4, 0), (1, 2, 1, 5, 5, 0)]
    at = datetime(2026, 1, 31, tzinfo=UTC)
    table = rows(AUDIT_REPORTS, [wire.row_of_report(r, "c", "s", at) for r in reports])
    received = [replace(r, received_ms=int(at.timestamp() * 1000)) for r in reports]
    assert [wire.report_of_row(row) for row in table.to_pylist()] == received
    assert wire.decode_reports(wire.encode_reports(reports)) == reports
