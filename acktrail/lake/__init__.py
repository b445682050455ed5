"""The lake: Delta tables, written here by delta-rs, with positions in the same commit as rows.

Agents append rows and positions: both become visible, or neither. A position is a Delta `txn`
action: the application id names one source, the version says how far it has been read. Every
attempt, retries included, reloads the table and requires the position to be where the batch
began, because delta-rs refuses only a *concurrent* commit of the same application id.

The same class is the control plane of the Spark jobs: versions, what was added since, what a job
has consumed; and it commits what Spark's tasks have written. delta-rs is the only engine that
commits, to every table. It never starts a JVM.

`tables` is the facade; `data_files` writes Parquet, `commit` and `replacement` make files part of
a table, `entries` reads the log and what a job has noted there, `changes` says what is new,
`positions` how far sources are, `receipts` in what order reports came, `table_snapshots` keeps what
was loaded, `rows` reads rows by Arrow, `guard` and `damage` refuse what cannot be trusted,
`migration` rewrites what an earlier version wrote, `housekeeping` compacts and expires. `store`
knows where files are, `s3_options` how a bucket is reached, and `safe_commits` refuses a store that
would lose commits. `directory_access` and `store_errors` say why a place cannot be used; `refusal`
asks whichever of the two it is.
"""

from acktrail.lake.changes import AddedFiles
from acktrail.lake.commit import Change
from acktrail.lake.entries import Note
from acktrail.lake.positions import Position, Standing
from acktrail.lake.replacement import (
    NOTHING_REPLACED,
    ReplaceAll,
    ReplaceBefore,
    Replacement,
    ReplaceNothing,
    ReplacePartitions,
    ReplaceRange,
    RewriteFiles,
    Values,
)
from acktrail.lake.table_snapshots import Snapshot
from acktrail.lake.tables import ATTEMPTS, Lake

__all__ = [
    "ATTEMPTS",
    "NOTHING_REPLACED",
    "AddedFiles",
    "Change",
    "Lake",
    "Note",
    "Position",
    "ReplaceAll",
    "ReplaceBefore",
    "ReplaceNothing",
    "ReplacePartitions",
    "ReplaceRange",
    "Replacement",
    "RewriteFiles",
    "Snapshot",
    "Standing",
    "Values",
]
