"""What a scan read from a partition as audit reports: ids in the log, and what was covered."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from acktrail.audit.wire import Report, Sighting, decode_header, encode_sightings
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


def scan_reports(
    scan: ScannedRange, records: Iterable[LogRecord], reporter: str, part: int
) -> list[Report]:
    """The ids found in *scan*, and one row that says what was covered.

    Parts are numbered from *part*; the next call's must be higher than len(records) + part.
    """
    sightings, count, epoch = [], 0, scan.leader_epoch
    for record in records:
        count += 1
        if record.leader_epoch is not None:
            epoch = record.leader_epoch if epoch is None else max(epoch, record.leader_epoch)
        message = identity_of(record, scan.topic)
        if message is not None:
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
    covered = Report(
        reporter=reporter,
        tier=Tier.SCANNED,
        topic=scan.topic,
        topic_id=scan.topic_id,
        partition=scan.partition,
        number=part,
        part=part,
        reported_ms=scan.ended_ms,
        leader_epoch=epoch,
        first_offset=scan.first_offset,
        last_offset=scan.end_offset - 1,
        records=count,
        began_ms=scan.began_ms,
        ended_ms=scan.ended_ms,
        closed=scan.closed,
    )
    found = encode_sightings(sightings, reporter, part, scan.ended_ms, first_part=part)
    return [*found, covered]


def identity_of(record: LogRecord, topic: str) -> tuple[str, int] | None:
    """(session, seq) by the header, else by a value that VerifiableProducer wrote."""
    header = decode_header(record.header)
    if header is not None:
        return header.session, header.seq
    if record.header is not None or record.value is None or len(record.value) > 40:
        return None
    return message_of(record.value.decode("ascii", "replace"), topic)
