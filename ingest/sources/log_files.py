"""Client and broker log files: every record that may be evidence, exactly once."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from acktrail.contracts.arrow import columns, no_rows
from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.errors import ConfigError
from acktrail.lake import Lake
from acktrail.logs.prefilter import clean_text, marker_of, may_be_evidence
from acktrail.logs.records import MAX_LINE_BYTES
from acktrail.settings.sources import LogFilesSource, SourceSettings
from ingest.files.block_scan import BlockScan, Kept, scan_block
from ingest.files.follow import Follower
from ingest.files.stream import BLOCK, Stream
from ingest.registry import SourceContext
from ingest.source import NOT_EVIDENCE, Batch, Health
from ingest.sources.shipped_lines import moment

BLOCKS_IN_TURN = 64
"""Blocks read of one file before the next has its turn."""

CUT_AWAY = "cut_away"
"""A file was truncated in place with text that had not been read."""

_SHIPPED = re.compile(
    rb"(?:(?P<cri>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d))"
    rb" (?:stdout|stderr) [FP] "
    rb'|\{"log":.{0,65536}?"time":\s?"(?P<docker>\d{4}-\d\d-\d\dT[\d:.]{8,18}(?:Z|[+-]\d\d:\d\d))")',
    re.DOTALL,
)


def build(settings: SourceSettings, context: SourceContext) -> LogFiles:
    """The source that *settings* describe."""
    if not isinstance(settings, LogFilesSource):
        raise ConfigError(f"{settings.name} is not a log_files source.")
    return LogFiles(settings, context)


class LogFiles:
    """Log files of one host, by glob, followed through rotation."""

    def __init__(
        self,
        settings: LogFilesSource,
        context: SourceContext,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name = settings.name
        self._settings = settings
        self._cluster = context.cluster
        self._once = context.once
        self._clock = clock
        self._host = settings.host or socket.gethostname()
        scope = f"log_files/{self._cluster}/{self.name}/{self._host}"
        self._follower = Follower(settings.paths, LOG_RECORDS, scope, settings.rotated)
        self._gap_notes: list[str] = []

    def open(self, lake: Lake) -> None:
        """Learn from the lake how far each file was read, as files are met."""
        self._follower.open(lake)

    def poll(self, timeout_s: float) -> Iterator[Batch]:  # noqa: ARG002 - never waits
        """What the files have gained, block by block."""
        now = self._clock()
        for stream in self._follower.look(now):
            yield from self._read_file(stream, now)
        yield from self._gaps()

    def committed(self, batch: Batch) -> None:
        """The lake has it."""
        self._follower.committed(batch.positions)

    def health(self) -> Health:
        """Bytes not yet read, and what a person should know."""
        return self._follower.health(self._clock(), self._gap_notes[-5:])

    def close(self) -> None:
        """Close all files."""
        self._follower.close()

    # -- one file -------------------------------------------------------------------------------

    def _read_file(self, stream: Stream, now: float) -> Iterator[Batch]:
        """A batch for each block of the file that is decided."""
        if self._nothing_new(stream, now):
            return
        for _ in range(BLOCKS_IN_TURN):
            size = stream.content.size()
            block = stream.read(BLOCK)
            at_end = len(block) < BLOCK
            closed, torn = self._closes(stream, now) if at_end else (False, False)
            if closed and not torn:
                block = block[: block.rfind(b"\n") + 1]
            batch = self._read_block(stream, block, at_end, closed)
            if batch is not None:
                yield batch
            if at_end:
                stream.scanned_size = -1 if size is None else size
                stream.scanned_closed = closed
                stream.exhausted = stream.compressed and closed
                if stream.damaged:
                    note = f"damaged, read as far as it goes: {stream.damaged}"
                    self._follower.notes[stream.path] = note
                elif stream.exhausted and not stream.complete:
                    note = "ends too early, read as far as it goes"
                    self._follower.notes[stream.path] = note
                return

    def _read_block(self, stream: Stream, block: bytes, at_end: bool, closed: bool) -> Batch | None:
        zeros = len(block) - len(block.lstrip(b"\0"))
        if zeros:  # the hole before the text of a writer that went on at its old offset
            return self._batch(stream, BlockScan((), zeros, 0, 0))
        if stream.skip_to is not None or (not at_end and b"\n" not in block):
            return self._skip_long_line(stream, block, closed)
        scan = scan_block(block, closed=closed)
        if not scan.settled and not at_end:
            # A record, and behind it a line that fills the block: the record is over.
            scan = scan_block(block[: block.rfind(b"\n") + 1], closed=True)
        return self._batch(stream, scan)

    def _nothing_new(self, stream: Stream, now: float) -> bool:
        if stream.exhausted or (self._once and stream.scanned_size >= 0):
            return True  # with --once a file that still grows is read to its end once
        same = stream.scanned_size >= 0 and stream.scanned_size == stream.content.size()
        return same and stream.scanned_closed == self._closes(stream, now)[0]

    def _closes(self, stream: Stream, now: float) -> tuple[bool, bool]:
        """Whether the last record is over at the end of the file, and whether a torn line is."""
        idle = stream.idle_s(now)
        torn = idle >= self._settings.torn_line_s
        if stream.compressed:
            over = stream.complete or bool(stream.damaged) or torn
            return over, over
        return self._once or idle >= self._settings.idle_s, torn

    def _skip_long_line(self, stream: Stream, block: bytes, torn: bool) -> Batch | None:
        """Look for the end of a line longer than a block; keep its beginning once it is found."""
        track = stream.track
        assert track is not None, "only identified files are read"
        at = stream.skip_to or track.read_to
        while piece := stream.content.read_at(at, BLOCK):
            end = piece.find(b"\n")
            at += len(piece) if end < 0 else end + 1
            if end >= 0:
                break
        else:
            if not torn:
                stream.skip_to = at
                return None
        stream.skip_to = None
        text = block[:MAX_LINE_BYTES]
        kept = (Kept(0, 0, text, True),) if may_be_evidence(text) else ()
        return self._batch(stream, BlockScan(kept, at - track.read_to, 1, 1 - len(kept)))

    def _batch(self, stream: Stream, scan: BlockScan) -> Batch | None:
        """What a block held, and the positions its commit moves; None where nothing is decided."""
        if not scan.settled:
            return None
        track = stream.track
        assert track is not None, "only identified files are read"
        start, kept = track.read_to, scan.kept
        rows = self._rows(stream.path, track.file_id, start, kept) if kept else no_rows(LOG_RECORDS)
        return Batch(
            LOG_RECORDS,
            rows,
            self._follower.moved(stream, start + scan.settled),
            received=len(kept) + scan.skipped,
            dropped={NOT_EVIDENCE: scan.skipped} if scan.skipped else {},
        )

    def _rows(self, path: str, file_id: str, start: int, kept: Sequence[Kept]) -> pa.Table:
        """The records as rows of `log_records`; the block begins at byte *start*."""
        read_at = datetime.fromtimestamp(self._clock(), UTC)
        same: dict[str, Any] = {
            "cluster": self._cluster,
            "source": self.name,
            "host": self._host,
            "file_id": file_id,
            "path": path,
            "zone": self._settings.zone,
            "read_at": read_at,
            "day": f"{read_at:%Y-%m-%d}",
        }
        own: dict[str, list[Any]] = {
            "position": [start + k.position for k in kept],
            "text": [clean_text(k.text) for k in kept],
            "marker": [marker_of(k.text) for k in kept],
            "truncated": [k.truncated for k in kept],
            "shipped_at": [_shipped_at(k.text) for k in kept],
        }
        return columns(LOG_RECORDS, len(kept), same, own)

    def _gaps(self) -> Iterator[Batch]:
        """Report what was cut away unread: one received and dropped for each time it happened."""
        gaps, self._follower.gaps = self._follower.gaps, []
        for gap in gaps:
            self._gap_notes.append(
                f"{gap.path}: truncated in place; at least {gap.at_least} bytes were not read"
            )
            yield Batch(
                LOG_RECORDS,
                no_rows(LOG_RECORDS),
                (self._follower.one_more_gap(),),
                received=1,
                dropped={CUT_AWAY: 1},
            )


def _shipped_at(text: bytes) -> datetime | None:
    """The second timestamp, given by a container runtime to the record's first line."""
    match = _SHIPPED.match(text)
    if match is None:
        return None
    return moment((match.group("cri") or match.group("docker")).decode("ascii"))
