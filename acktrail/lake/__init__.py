"""The lake: Delta tables, written here by delta-rs, with positions in the same commit as rows.

Agents append rows and positions: both become visible, or neither. A position is a Delta `txn`
action: the application id names one source, the version says how far it has been read. Every
attempt, retries included, reloads the table and requires the position to be where the batch
began, because delta-rs refuses only a *concurrent* commit of the same application id.

The same class is the control plane of the Spark jobs: versions, what was added since, what a job
has consumed; and it commits what the tasks of maps have written. It never starts a JVM.

`tables` is the facade; `data_files` writes Parquet, `entries` reads the log, `changes` says what is
new, `positions` how far sources are, `guard` and `damage` refuse what cannot be trusted, `access`
says why a directory cannot be used, `migration` rewrites what an earlier version wrote.
"""

from acktrail.lake.changes import AddedFiles, Values
from acktrail.lake.positions import Position, Standing
from acktrail.lake.tables import ATTEMPTS, Change, Lake, Note

__all__ = ["ATTEMPTS", "AddedFiles", "Change", "Lake", "Note", "Position", "Standing", "Values"]
