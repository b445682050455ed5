"""The block scan finds what joining every line would find, wherever the blocks are cut."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from acktrail.logs.prefilter import may_be_evidence
from acktrail.logs.records import join_records
from ingest.files.block_scan import scan_block

LINES = st.sampled_from(
    [
        b"[2024-07-07 10:25:20,682] INFO quiet\n",
        b"[2024-07-07 10:25:20,683] WARN Got error produce response with correlation id 7\r\n",
        b"[2024-07-07 10:25:20,684] ERROR boom\n",
        b"org.apache.kafka.common.errors.TimeoutException: Expiring 30 record(s) for a-0\n",
        b"\tat com.acme.Shop.buy(Shop.java:1)\n",
        b"Caused by: java.io.IOException: x\n",
        b"a bare sentence\n",
        b"Delivery failed: bare\n",
        b"\n",
        b"\x00\xff\xfe not text \x1b[31m\n",
        b"\x1b[33mWARN\x1b[0m Got error produce response\n",
        b'{"level":"WARN","message":"Got error produce response"}\n',
        b"ProducerConfig values: \n",
        b"\tacks = -1\n",
        b"\r\n",
        b"x" * 20_000 + b"\n",
    ]
)
TEXTS = st.lists(LINES, max_size=60).map(b"".join)


def oracle(text: bytes) -> list[tuple[int, bytes]]:
    records = join_records(_lines(text))
    return [(r.position, r.text) for r in records if may_be_evidence(r.text)]


def _lines(text: bytes) -> list[bytes]:
    parts = text.split(b"\n")
    return [p + b"\n" for p in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def scanned(text: bytes, cuts: list[int]) -> tuple[list[tuple[int, bytes]], int]:
    """Scan as a follower does: each block begins where the last was settled."""
    found: list[tuple[int, bytes]] = []
    settled = counted = 0
    for end in [*sorted(min(c, len(text)) for c in cuts), len(text)]:
        scan = scan_block(text[settled:end], closed=False)
        found += [(settled + k.position, k.text) for k in scan.kept]
        settled += scan.settled
        counted += scan.lines
    scan = scan_block(text[settled:], closed=True)
    found += [(settled + k.position, k.text) for k in scan.kept]
    return found, counted + scan.lines


@settings(max_examples=400, deadline=None)
@given(TEXTS, st.lists(st.integers(0, 4_000), max_size=6))
def test_blocks_cut_anywhere_give_the_records_of_the_whole(text, cuts):
    found, lines = scanned(text, cuts)
    assert found == oracle(text)
    assert lines == len(_lines(text))


@settings(max_examples=100, deadline=None)
@given(TEXTS)
def test_every_line_is_kept_or_counted_as_skipped(text):
    scan = scan_block(text, closed=True)
    kept_lines = sum(k.text.count(b"\n") + 1 for k in scan.kept)
    assert kept_lines + scan.skipped == scan.lines == len(_lines(text))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=2_000), st.booleans())
def test_any_bytes_are_scanned(block, closed):
    scan = scan_block(block, closed=closed)
    assert 0 <= scan.settled <= len(block)
    assert not closed or scan.settled == len(block)


def test_a_torn_last_line_waits():
    text = b"[2024-07-07 10:25:20,682] INFO a\n[2024-07-07 10:25:21,682] WARN produce resp"
    assert scan_block(text, closed=False).settled == 0
    assert scan_block(text, closed=True).lines == 2


def test_a_long_line_is_kept_cut_and_says_so():
    text = b"WARN Got error produce response " + b"x" * 100_000 + b"\nINFO next\n"
    (kept,) = scan_block(text, closed=True).kept
    assert kept.truncated
    assert len(kept.text) == 64 * 1024
