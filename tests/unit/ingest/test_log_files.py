"""Log files as they really are: torn, cut, compressed, huge, and not always text."""

from __future__ import annotations

import gzip
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from memory_lake import MemoryLake

from acktrail.settings.sources import LogFilesSource
from ingest.files.stream import BLOCK
from ingest.registry import SourceContext
from ingest.sources.log_files import LogFiles

RETRY = "2026-01-31 10:00:00,001 WARN Got error produce response number {}\n"
QUIET = "2026-01-31 10:00:00,001 INFO nothing of interest\n"


class Reading:
    """One source over a folder, a lake in memory and a clock that stands still until moved."""

    def __init__(self, folder: Path, once: bool = False, **more: object) -> None:
        self.folder = folder
        self.log = folder / "app.log"
        self.lake = MemoryLake()
        self.now = 1_800_000_000.0
        self.once = once
        self.more = {"paths": (str(self.log),), **more}
        self.received = 0
        self.dropped: dict[str, int] = {}
        self.restart()

    def restart(self) -> None:
        wanted = LogFilesSource(kind="log_files", name="s", host="h", **self.more)
        self.source = LogFiles(wanted, SourceContext("c", once=self.once), clock=lambda: self.now)
        self.source.open(self.lake)

    def write(self, text: str | bytes, path: Path | None = None) -> None:
        with (path or self.log).open("ab") as out:
            out.write(text.encode() if isinstance(text, str) else text)
        os.utime(path or self.log, (self.now, self.now))

    def poll(self, after: float = 1.0) -> list[str]:
        """Texts of the records read *after* so many seconds."""
        self.now += after
        texts = []
        for batch in self.source.poll(0):
            self.lake.append(batch.table, batch.rows, batch.positions)
            self.source.committed(batch)
            self.received += batch.received
            for reason, count in batch.dropped.items():
                self.dropped[reason] = self.dropped.get(reason, 0) + count
            texts += batch.rows.column("text").to_pylist()
        assert self.received == len(self.lake.rows) + sum(self.dropped.values())
        return texts


@pytest.fixture
def reading(tmp_path):
    made = Reading(tmp_path)
    yield made
    made.source.close()


CONTENTS = [
    # name, content, texts
    ("CRLF", "WARN Got error produce response\r\nINFO x\r\n", ["WARN Got error produce response"]),
    (
        "invalid UTF-8",
        b"WARN produce response \xff\xfe!\n",
        ["WARN produce response \ufffd\ufffd!"],
    ),
    ("NUL", b"WARN produce response a\0b\n", ["WARN produce response a\ufffdb"]),
    ("ANSI", b"\x1b[33mWARN\x1b[0m produce response\n", ["\x1b[33mWARN\x1b[0m produce response"]),
    ("empty lines", "\n\n\nWARN produce response\n\n", ["WARN produce response\n"]),
    (
        "a settings block",
        "INFO ProducerConfig values: \n\tacks = -1\n\tretries = 5\n\nINFO next\n",
        ["INFO ProducerConfig values: \n\tacks = -1\n\tretries = 5\n"],
    ),
    (
        "an exception without frames",
        "ERROR boom\norg.apache.kafka.common.errors.TimeoutException: x\nINFO next\n",
        ["ERROR boom\norg.apache.kafka.common.errors.TimeoutException: x"],
    ),
    (
        "a credential",
        "WARN produce response password=abc\n",
        ["WARN produce response password=[redacted]"],
    ),
]


@pytest.mark.parametrize(
    ("content", "texts"), [c[1:] for c in CONTENTS], ids=[c[0] for c in CONTENTS]
)
def test_contents(reading, content, texts):
    reading.write(content)
    reading.poll()
    assert reading.poll(after=10) == texts or [r["text"] for r in reading.lake.rows] == texts


def test_a_torn_last_line_waits_for_its_end(reading):
    reading.write(QUIET + "2026-01-31 10:00:01,001 WARN Got error prod")
    assert reading.poll() == reading.poll(after=20) == []
    reading.write("uce response\n")
    reading.poll()
    assert reading.poll(after=10) == ["2026-01-31 10:00:01,001 WARN Got error produce response"]


def test_a_torn_last_line_is_taken_when_nobody_ends_it(reading):
    reading.write(QUIET + "2026-01-31 10:00:01,001 WARN Got error produce response")
    reading.poll()
    assert len(reading.poll(after=61)) == 1


def test_a_record_waits_for_its_stack_trace(reading):
    reading.write("2026-01-31 10:00:01,001 ERROR boom\n")
    assert reading.poll() == []
    reading.write("org.apache.kafka.common.errors.TimeoutException: x\n" + QUIET)
    assert len(reading.poll()) == 1


def test_once_takes_the_last_record_at_once(tmp_path):
    reading = Reading(tmp_path, once=True)
    reading.write(RETRY.format(1))
    assert len(reading.poll(after=0)) == 1
    reading.source.close()


def test_a_line_of_many_megabytes_is_kept_cut(reading):
    reading.write(QUIET)
    reading.write(b"2026-01-31 10:00:01,001 WARN Got error produce response " + b"x" * 5 * BLOCK)
    assert reading.poll() == []
    reading.write(b"y" * BLOCK + b"\n" + RETRY.format(2).encode() + QUIET.encode())
    texts = reading.poll()
    assert len(texts) == 2
    assert len(texts[0]) == 64 * 1024
    assert [row["truncated"] for row in reading.lake.rows] == [True, False]
    assert reading.dropped == {"not_evidence": 1}


@pytest.mark.parametrize("filling", [0, 20_000, 400_000])
def test_the_zeros_of_a_cut_file_with_a_writer_that_does_not_append(reading, filling):
    """copytruncate under a writer that keeps its offset leaves a hole of zeros at the start."""
    first = "x" * filling + "\n" + "".join(RETRY.format(n) for n in range(30))
    reading.write(first)
    reading.poll()
    assert len(reading.lake.rows) == 29  # the last one may go on
    copy = reading.folder / "app.log.1"
    copy.write_bytes(reading.log.read_bytes())
    os.utime(copy, (reading.now, reading.now))
    os.truncate(reading.log, 0)
    with reading.log.open("r+b") as out:
        out.seek(len(first))
        out.write("".join(RETRY.format(n) for n in range(30, 60)).encode())
    os.utime(reading.log, (reading.now + 1, reading.now + 1))
    reading.poll()
    reading.poll(after=10)
    numbers = sorted(int(row["text"].split()[-1]) for row in reading.lake.rows)
    assert numbers == list(range(60))


def test_a_gap_of_copytruncate_is_reported(tmp_path):
    """The copy is out of sight: what was seen and not read is gone, and said to be."""
    reading = Reading(tmp_path, rotated=False)
    reading.write("".join(RETRY.format(n) for n in range(30)))
    reading.poll()
    reading.write("2026-01-31 10:00:01,001 ERROR torn off bef")
    reading.poll()
    os.truncate(reading.log, 0)
    reading.write(QUIET * 30)
    reading.poll()
    assert reading.dropped["cut_away"] == 1
    assert "truncated in place; at least" in " ".join(reading.source.health().notes)
    assert reading.lake.moved["log_files/c/s/h/gaps"] == 1
    reading.source.close()


def test_a_truncation_whose_copy_is_in_sight_is_no_gap(reading):
    reading.write("".join(RETRY.format(n) for n in range(30)))
    reading.poll()
    copy = reading.folder / "app.log.1"
    copy.write_bytes(reading.log.read_bytes())
    os.utime(copy, (reading.now, reading.now))
    os.truncate(reading.log, 0)
    reading.poll()
    reading.poll(after=10)
    assert len(reading.lake.rows) == 30
    assert "cut_away" not in reading.dropped


@pytest.mark.parametrize("lines", [3, 30], ids=["short", "long"])
def test_a_compressed_successor_is_continued(reading, lines):
    reading.write("".join(RETRY.format(n) for n in range(lines)))
    reading.poll()
    reading.write("".join(RETRY.format(n) for n in range(lines, 2 * lines)))
    packed = gzip.compress(reading.log.read_bytes())
    reading.log.unlink()
    reading.source.close()
    (reading.folder / "app.log.1.gz").write_bytes(packed)
    reading.restart()
    reading.poll()
    reading.poll(after=10)
    numbers = sorted(int(row["text"].split()[-1]) for row in reading.lake.rows)
    assert numbers == list(range(2 * lines))


def test_a_deleted_file_is_read_to_its_end(reading):
    with reading.log.open("ab") as held:
        held.write(RETRY.format(1).encode() * 20)
        held.flush()
        reading.poll()
        reading.log.unlink()
        held.write(RETRY.format(2).encode())
        held.flush()
        reading.poll()
        reading.poll(after=10)
    assert len(reading.lake.rows) == 21


def test_a_banner_that_all_files_share_does_not_make_them_one(tmp_path):
    reading = Reading(tmp_path, paths=(str(tmp_path / "*.log"),))
    banner = "SLF4J: Class path contains multiple SLF4J bindings.\n" * 40
    for name in ("a", "b"):
        log = tmp_path / f"{name}.log"
        reading.write(banner + f"2026-01-31 10:00:0{ord(name) % 10} WARN produce response\n", log)
        reading.write(QUIET * 100, log)
    reading.poll()
    assert len(reading.lake.rows) == 2
    assert len({row["file_id"] for row in reading.lake.rows}) == 2
    reading.source.close()


def test_what_cannot_be_read_is_noted(tmp_path):
    reading = Reading(tmp_path, paths=(str(tmp_path / "app.log*"),))
    (tmp_path / "app.log.1.zst").write_bytes(b"x")
    reading.poll()
    assert "use gzip" in " ".join(reading.source.health().notes)
    reading.source.close()


def test_a_damaged_archive_gives_what_it_can_and_is_noted(tmp_path):
    reading = Reading(tmp_path, paths=(str(tmp_path / "app.log*"),))
    packed = bytearray(gzip.compress("".join(RETRY.format(n) for n in range(9_000)).encode()))
    packed[len(packed) // 2] ^= 0xFF
    (tmp_path / "app.log.1.gz").write_bytes(bytes(packed))
    reading.poll()
    reading.poll(after=100)
    assert 0 < len(reading.lake.rows) < 9_000
    assert "damaged" in " ".join(reading.source.health().notes)
    reading.source.close()


def test_both_timestamps_of_a_container_line_are_kept(reading):
    inner = "2026-01-31 09:59:59,001 WARN Got error produce response"
    reading.write(f"2026-01-31T10:00:00.123456789Z stdout F {inner}\n")
    reading.write(f'{{"log":"{inner}\\n","stream":"stdout","time":"2026-01-31T10:00:01.5Z"}}\n')
    reading.poll()
    reading.poll(after=10)
    assert [row["shipped_at"] for row in reading.lake.rows] == [
        datetime(2026, 1, 31, 10, 0, 0, 123_456, tzinfo=UTC),
        datetime(2026, 1, 31, 10, 0, 1, 500_000, tzinfo=UTC),
    ]
