"""The wire: identity of a message, its record header, run lists of ids, and audit reports.

`docs/wire.md` is the same as a text with test vectors, so that any client can be audited.
"""

from acktrail.audit.wire.encoder import Sighting, encode_sightings
from acktrail.audit.wire.header import HEADER_NAME, Header, decode_header, encode_header, own_header
from acktrail.audit.wire.identity import (
    BLOCK_BITS,
    BLOCK_IDS,
    bucket_of,
    new_session,
    session_started_ms,
)
from acktrail.audit.wire.report import (
    Report,
    decode_reports,
    encode_reports,
    report_of_row,
    row_of_report,
)
from acktrail.audit.wire.run_lists import (
    BITMAP_BYTES,
    Runs,
    bitmap_of,
    decode_runs,
    encode_ids,
    encode_runs,
    ids_of,
)

__all__ = [
    "BITMAP_BYTES",
    "BLOCK_BITS",
    "BLOCK_IDS",
    "HEADER_NAME",
    "Header",
    "Report",
    "Runs",
    "Sighting",
    "bitmap_of",
    "bucket_of",
    "decode_header",
    "decode_reports",
    "decode_runs",
    "encode_header",
    "encode_ids",
    "encode_reports",
    "encode_runs",
    "encode_sightings",
    "ids_of",
    "new_session",
    "own_header",
    "report_of_row",
    "row_of_report",
    "session_started_ms",
]
