"""What the tests against real brokers share: messages, sources read to their end, what came."""

from __future__ import annotations

from confluent_kafka import Producer

from acktrail.audit.wire import BLOCK_BITS, Header, decode_runs, encode_header, new_session
from acktrail.contracts.bronze import AUDIT_REPORTS
from acktrail.contracts.vocabulary import Tier
from acktrail.lake import Lake
from acktrail.settings.model import KafkaSettings
from ingest.registry import SourceContext

TOPIC = "audited-orders"
SESSION = new_session(1_790_000_000_000)


def around(nodes) -> SourceContext:
    return SourceContext("lab", KafkaSettings(bootstrap_servers=nodes.direct), once=True)


def drain(source, lake: Lake) -> int:
    source.open(lake)
    written = 0
    try:
        for batch in source.poll(60):
            assert batch.received == batch.rows.num_rows + sum(batch.dropped.values())
            lake.append(batch.table, batch.rows, batch.positions)
            source.committed(batch)
            written += batch.rows.num_rows
    finally:
        source.close()
    return written


def produce(nodes, topic: str, seqs, partition: int, acks="all") -> dict[int, int]:
    """Audited messages by a plain producer; offset by seq."""
    offsets: dict[int, int] = {}
    patience = {"socket.timeout.ms": 5000}  # with a broker that hangs
    # A request that is answered late is sent again: a record must not be in the log twice.
    once = {"enable.idempotence": acks == "all"}
    producer = Producer({"bootstrap.servers": nodes.direct, "acks": acks, **once, **patience})
    for seq in seqs:
        header = encode_header(Header(SESSION, seq, 1_790_000_000_000 + seq))
        producer.produce(
            topic,
            value=b"x" * 100,
            partition=partition,
            headers=[("trace", b"1"), ("acktrail", header)],
            on_delivery=lambda error, m, seq=seq: (
                offsets.update({seq: m.offset()}) if error is None else None
            ),
        )
    producer.flush(120)
    return offsets


def found(lake: Lake, tier: Tier) -> dict[tuple[str, int, int], int]:
    """(session, partition, seq) to offset, of all ids at *tier*; a second record is an error."""
    ids: dict[tuple[str, int, int], int] = {}
    for row in lake.read(AUDIT_REPORTS).to_pylist():
        if row["tier"] == tier.value:
            runs = decode_runs(row["ids"])
            for i in range(runs.starts.size):
                for k in range(int(runs.lengths[i])):
                    seq = (row["block"] << BLOCK_BITS) + int(runs.starts[i]) + k
                    key = (row["session"], row["partition"], seq)
                    assert key not in ids, f"{key} twice"
                    ids[key] = int(runs.offsets[i]) + k
    return ids


def acks_of(client) -> int:
    return client.output.read_bytes().count(b"producer_send_success")
