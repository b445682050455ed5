"""Per-message files into `audit_reports`, each row once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from acktrail.audit.wire import row_of_report
from acktrail.contracts.arrow import rows
from acktrail.contracts.bronze import AUDIT_REPORTS
from acktrail.lake import Lake, Position
from ingest.messages.checks import refuse_wrong_rows
from ingest.messages.file import MessageFile
from ingest.messages.rows import message_reports
from ingest.recorded import name_hash

SOURCE = "audits"


def ingest_files(
    paths: Sequence[Path], lake: Lake, cluster: str, read_at: datetime
) -> list[dict[str, object]]:
    """Write the messages of every file; for each what was read and written.

    The position is the number of rows read: a run that was killed goes on after its last commit,
    and a file that was read before writes nothing. Of a file with a wrong row nothing is written.
    """
    return [_ingest(MessageFile.of(path), lake, cluster, read_at) for path in paths]


def _ingest(file: MessageFile, lake: Lake, cluster: str, read_at: datetime) -> dict[str, object]:
    app_id = f"audits/{cluster}/{file.identity}"
    reporter = name_hash("audits", cluster, file.identity)
    began = lake.position(AUDIT_REPORTS, app_id)
    reported_ms = int(read_at.timestamp() * 1000)
    if began is None:
        refuse_wrong_rows(file, reported_ms)
    row = messages = reports = 0
    for piece in file.pieces():
        first, row = row, row + piece.num_rows
        if began is not None and row <= began:
            continue
        made = message_reports(piece, reporter, first, reported_ms, str(file.path))
        data = rows(AUDIT_REPORTS, [row_of_report(r, cluster, SOURCE, read_at) for r in made])
        lake.append(AUDIT_REPORTS, data, (Position(app_id, began, row),))
        began, messages, reports = row, messages + piece.num_rows, reports + len(made)
    return {"file": str(file.path), "rows": row, "new": messages, "reports": reports}
