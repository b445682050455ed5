"""What a scan read from a partition as audit reports: ids in the log, and what was covered."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from acktrail.audit.wire import (
    BLOCK_IDS,
    Report,
    Sighting,
    decode_header,
    encode_ids,
    encode_sightings,
)
from acktrail.contracts.vocabulary import Tier
from ingest.sources.verifiable_lines import message_of


@dataclass(frozen=True)
class LogRecord:
    """One record of a log, as far as an audit cares."""

    offset: int
    value: bytes | None
    header: bytes | None
    """Value of the header `acktrail`, where the record has one."""
    leader_epoch: int | None = None


@dataclass(frozen=True)
class ScannedRange:
    """A range of one partition that was read from its first to its last offset."""

    topic: str
    partition: int
    first_offset: int
    end_offset: int
    """The offset after the last one covered."""
    began_ms: int
    ended_ms: int
    closed: bool
    """The scan reached the end that the log had when it began."""
    topic_id: str | None = None
    leader_epoch: int | None = None
    """Of the log's end when the scan began, where the cluster told it."""
    after_ms: int | None = None
    """The newest receipt that the lake had of the cluster's reports before the scan began."""


def scan_reports(
    scan: ScannedRange, records: Iterable[LogRecord], reporter: str, part: int
) -> list[Report]:
    """The ids found in *scan*, and what was covered: one row, or several that follow each other.

    *records* are in order. Parts are numbered from *part*; the next call's must be higher than
    len(records) + part.
    """
    sightings: list[Sighting] = []
    offsets: list[int] = []
    unnamed: list[int] = []
    epoch = scan.leader_epoch
    for record in records:
        offsets.append(record.offset)
        if record.leader_epoch is not None:
            epoch = record.leader_epoch if epoch is None else max(epoch, record.leader_epoch)
        message = identity_of(record, scan.topic)
        if message is None:
            unnamed.append(record.offset)
            continue
        sightings.append(
            Sighting(
                session=message[0],
                topic=scan.topic,
                seq=message[1],
                tier=Tier.IN_LOG,
                # The earliest it may have been read: what a later truncation took is void.
                at_ms=scan.began_ms,
                partition=scan.partition,
                offset=record.offset,
                leader_epoch=record.leader_epoch,
                topic_id=scan.topic_id,
            )
        )
    found = encode_sightings(sightings, reporter, part, scan.ended_ms, first_part=part)
    covered = Report(
        reporter=reporter,
        tier=Tier.SCANNED,
        topic=scan.topic,
        topic_id=scan.topic_id,
        partition=scan.partition,
        number=part,
        reported_ms=scan.ended_ms,
        leader_epoch=epoch,
        began_ms=scan.began_ms,
        ended_ms=scan.ended_ms,
        after_ms=scan.after_ms,
    )
    return [
        *(replace(report, after_ms=scan.after_ms) for report in found),
        *_covered(covered, scan, offsets, unnamed, part),
    ]


def _covered(
    covered: Report, scan: ScannedRange, offsets: list[int], unnamed: list[int], part: int
) -> Iterator[Report]:
    """*covered* as rows: a run list reaches BLOCK_IDS offsets from the first one of its row."""
    starts = [scan.first_offset]
    for offset in unnamed:
        if offset - starts[-1] >= BLOCK_IDS:
            starts.append(offset)
    for index, (start, end) in enumerate(pairwise([*starts, scan.end_offset])):
        inside = slice(bisect_left(unnamed, start), bisect_left(unnamed, end))
        numbers = [offset - start for offset in unnamed[inside]]
        yield replace(
            covered,
            part=part + index,
            first_offset=start,
            last_offset=end - 1,
            records=bisect_left(offsets, end) - bisect_left(offsets, start),
            unnamed=encode_ids(numbers) if numbers else None,
            closed=scan.closed and end == scan.end_offset,
        )


def identity_of(record: LogRecord, topic: str) -> tuple[str, int] | None:
    """(session, seq) by the header, else by a value that VerifiableProducer wrote."""
    header = decode_header(record.header)
    if header is not None:
        return header.session, header.seq
    if record.header is not None or record.value is None or len(record.value) > 40:
        return None
    return message_of(record.value.decode("ascii", "replace"), topic)
