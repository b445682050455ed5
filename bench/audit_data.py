"""Messages of many sessions at three tiers: as rows per message, and as audit reports."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from acktrail.audit.wire import (
    BLOCK_BITS,
    BLOCK_IDS,
    Report,
    encode_ids,
    new_session,
    row_of_report,
)
from acktrail.contracts.arrow import rows
from acktrail.contracts.bronze import AUDIT_REPORTS
from acktrail.contracts.vocabulary import PRODUCER_TIERS, Tier

PARTITIONS = 12
TIERS = (Tier.ACKED, Tier.IN_LOG, Tier.DELIVERED)
LOST_IN = 20_000
"""One of so many acknowledged ids is not in the log."""
START = datetime(2026, 1, 31, 7, tzinfo=UTC)


@dataclass(frozen=True)
class Session:
    """The messages of one producer: partition and offset of every id, and which were lost."""

    name: str
    began_ms: int
    partition: np.ndarray
    offset: np.ndarray
    lost: np.ndarray


def sessions(count: int, messages: int, began_ms: int, *, batch: int) -> Iterator[Session]:
    """*count* sessions of *messages* each; offsets of a partition go on from session to session.

    *batch* messages in a row go to one partition: 1 with keys; without, the sticky partitioner
    gives a whole batch to one.
    """
    chance = np.random.default_rng(0)
    ends = np.zeros(PARTITIONS, np.int64)
    for _ in range(count):
        batches = chance.integers(0, PARTITIONS, messages // batch + 1)
        partition = np.repeat(batches, batch)[:messages]
        offset = np.empty(messages, np.int64)
        for number in range(PARTITIONS):
            mine = partition == number
            offset[mine] = ends[number] + np.arange(mine.sum())
            ends[number] += mine.sum()
        lost = np.zeros(messages, bool)
        lost[chance.choice(messages, max(1, messages // LOST_IN), replace=False)] = True
        yield Session(new_session(began_ms), began_ms, partition, offset, lost)


def seen(session: Session, tier: Tier) -> np.ndarray:
    """The ids seen at *tier*."""
    ids = np.arange(session.partition.size)
    return ids if tier is Tier.ACKED else ids[~session.lost]


def write_rows(path: str, tier: Tier, made: list[Session]) -> None:
    """One Parquet file with a row per message."""
    schema = pa.schema(
        [
            ("session", pa.string()),
            ("seq", pa.int64()),
            ("partition", pa.int32()),
            ("offset", pa.int64()),
        ]
    )
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for session in made:
            ids = seen(session, tier)
            names = pa.DictionaryArray.from_arrays(np.zeros(ids.size, np.int32), [session.name])
            writer.write_table(
                pa.table(
                    [
                        names.cast(pa.string()),
                        ids,
                        session.partition[ids].astype(np.int32),
                        session.offset[ids],
                    ],
                    schema=schema,
                )
            )


def reports(session: Session, tier: Tier) -> Iterator[Report]:
    """The reports of one session and tier: a part for each block and partition."""
    ids = seen(session, tier)
    yield from encode(
        session.name, tier, ids, session.partition[ids], session.offset[ids], session.began_ms
    )


def encode(
    name: str, tier: Tier, ids: np.ndarray, partition: np.ndarray, offset: np.ndarray, at_ms: int
) -> Iterator[Report]:
    """Run lists of rows per message that are in the order of ids."""
    blocks = ids >> BLOCK_BITS
    ended = at_ms + (60_000 if tier is Tier.ACKED else 120_000)
    for block in np.unique(blocks).tolist():
        span = slice(*np.searchsorted(blocks, [block, block + 1]).tolist())
        for number in range(PARTITIONS):
            mine = partition[span] == number
            if not mine.any():
                continue
            at = offset[span][mine]
            yield Report(
                reporter=f"{tier.value}-{name}",
                tier=tier,
                topic="orders",
                number=1,
                reported_ms=ended,
                session=name,
                partition=number,
                group="billing" if tier is Tier.DELIVERED else "",
                block=block,
                part=block * PARTITIONS + number,
                first_offset=int(at.min()),
                last_offset=int(at.max()),
                records=int(at.size),
                ids=encode_ids(ids[span][mine] & (BLOCK_IDS - 1), at),
                steps_back=0,
                began_ms=at_ms + (0 if tier is Tier.ACKED else 110_000),
                ended_ms=ended,
            )


def scans(made: list[Session], began_ms: int) -> Iterator[Report]:
    """That all of the log was read, begun after the last ack."""
    for number in range(PARTITIONS):
        at = [s.offset[s.partition == number] for s in made]
        last = max((int(o.max()) for o in at if o.size), default=-1)
        first = min((int(o.min()) for o in at if o.size), default=0)
        for tier, group in ((Tier.SCANNED, ""), (Tier.CONSUMED, "billing")):
            yield Report(
                reporter=f"{tier.value}-{began_ms}",
                tier=tier,
                topic="orders",
                number=1,
                reported_ms=began_ms + 120_000,
                partition=number,
                group=group,
                first_offset=first,
                last_offset=last,
                began_ms=began_ms + 100_000,
                ended_ms=began_ms + 120_000,
                closed=tier is Tier.SCANNED,
                after_ms=_ms(START) if tier is Tier.SCANNED else None,
                records=last - first + 1,
                assignment=1,
            )


def report_rows(made: list[Session], began_ms: int) -> pa.Table:
    """All reports of *made* as rows of `audit_reports`."""
    listed = [r for s in made for tier in TIERS for r in reports(s, tier)]
    listed += scans(made, began_ms)
    return rows(AUDIT_REPORTS, [row_of_report(r, "bench", "bench", _received(r)) for r in listed])


def _received(report: Report) -> datetime:
    """The scan began when the producers' reports had been received, and found what it did later."""
    return START if report.tier in PRODUCER_TIERS else START + timedelta(seconds=200)


def _ms(instant: datetime) -> int:
    return int(instant.timestamp() * 1000)
