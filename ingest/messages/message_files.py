"""Finished files of per-message rows into `audit_reports`, each row once.

A file is known by a hash of all its bytes, so the same file is never counted twice, whatever it is
called.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

import pyarrow as pa

from acktrail.audit.wire import row_of_report
from acktrail.contracts.arrow import rows
from acktrail.contracts.bronze import AUDIT_REPORTS
from acktrail.errors import UsageError
from acktrail.lake import Lake, Position
from ingest.messages.checks import refuse_wrong_rows
from ingest.messages.columns import TEXTS
from ingest.messages.reports import message_reports
from ingest.recorded import name_hash

SOURCE = "audits"
ROWS_AT_A_TIME = 1_000_000


def ingest_files(
    paths: Sequence[Path], lake: Lake, cluster: str, read_at: datetime
) -> list[dict[str, object]]:
    """Write the messages of every file; for each what was read and written."""
    return [_ingest(path, lake, cluster, read_at) for path in paths]


def _ingest(path: Path, lake: Lake, cluster: str, read_at: datetime) -> dict[str, object]:
    """Check the file as a whole, then commit it piece by piece, each with the file's position.

    The position is the number of rows read: a run that was killed goes on after its last commit,
    and a file that was read before writes nothing. Of a file with a wrong row nothing is written.
    """
    identity = _identity(path)
    app_id = f"audits/{cluster}/{identity}"
    reporter = name_hash("audits", cluster, identity)
    began = lake.position(AUDIT_REPORTS, app_id)
    reported_ms = int(read_at.timestamp() * 1000)
    if began is None:
        refuse_wrong_rows(_pieces(path), str(path), reported_ms)
    row = messages = reports = 0
    for piece in _pieces(path):
        first, row = row, row + piece.num_rows
        if began is not None and row <= began:
            continue
        made = message_reports(piece, reporter, first, reported_ms, str(path))
        data = rows(AUDIT_REPORTS, [row_of_report(r, cluster, SOURCE, read_at) for r in made])
        lake.append(AUDIT_REPORTS, data, (Position(app_id, began, row),))
        began, messages, reports = row, messages + piece.num_rows, reports + len(made)
    return {"file": str(path), "rows": row, "new": messages, "reports": reports}


def _identity(path: Path) -> str:
    """The hash of all bytes of the file."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from None
    return digest.hexdigest()[:32]


def _pieces(path: Path) -> Iterator[pa.Table]:
    """The rows of the file, a bounded number at a time."""
    try:
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            for batch in pq.ParquetFile(path).iter_batches(ROWS_AT_A_TIME):
                yield pa.Table.from_batches([batch])
            return
        whole = _json_rows(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise UsageError(
            f"{path} is neither Parquet nor JSON lines, one object per line: {error}"
        ) from None
    for start in range(0, whole.num_rows, ROWS_AT_A_TIME):
        yield whole.slice(start, ROWS_AT_A_TIME)


def _json_rows(path: Path) -> pa.Table:
    from pyarrow import json as arrow_json

    with path.open("rb") as file:
        line = next((text for text in file if text.strip()), b"")
    try:
        first = json.loads(line)
    except ValueError:
        first = None
    known = first if isinstance(first, dict) else {}
    # Arrow reads a text that looks like a time as one, and drops its zone: keep it as text.
    texts = [name for name in (*TEXTS, "time") if isinstance(known.get(name), str)]
    return arrow_json.read_json(
        str(path),
        arrow_json.ReadOptions(block_size=64 << 20),
        arrow_json.ParseOptions(explicit_schema=pa.schema([(name, pa.string()) for name in texts])),
    )
