"""One commit to a table, by delta-rs: files that come, files that go, positions and a note.

All of it becomes visible, or nothing. delta-rs is not allowed to try again by itself
(`max_commit_retries=0`): a writer that loses a race reads the table again first.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.transaction import AddAction, RemoveAction

from acktrail.contracts import Table
from acktrail.contracts.arrow import schema
from acktrail.errors import ContractError, Overtaken
from acktrail.lake.changes import partition_texts
from acktrail.lake.damage import commit_seal
from acktrail.lake.entries import Action
from acktrail.lake.positions import Position
from acktrail.lake.replacement import (
    NOTHING_REPLACED,
    Replacement,
    RewriteFiles,
    is_overtaken,
    replaced_files,
)

COMMIT_ID = "commitId"
"""In our commits: a random name, by which a writer knows its own commit."""


@dataclass(frozen=True)
class Change:
    """What a commit does beside adding files."""

    positions: Sequence[Position] = ()
    said: Mapping[str, str] = field(default_factory=dict)
    """Written beside the commit."""
    replaced: Replacement = NOTHING_REPLACED
    """Which files of the table go."""
    computed_at: int | None = None
    """The version of the table that the replacement was computed from; None: of any version."""
    commit_id: str = field(default_factory=lambda: uuid.uuid4().hex)


def commit(
    table: Table,
    delta: DeltaTable,
    files: Sequence[AddAction],
    change: Change,
    entry: Callable[[int], Sequence[Action] | None],
) -> int:
    """Commit on top of the version *delta* was loaded at; the new version.

    CommitFailedError: another writer has made that version. Overtaken: another writer has changed
    what is to be replaced. *entry* reads one log entry.
    """
    _refuse_other_partitions(table, files)
    read = int(delta.version())
    removed = [] if change.replaced == NOTHING_REPLACED else _removed(table, delta, change, entry)
    moved = [Transaction(p.app_id, p.reached) for p in change.positions]
    seal = commit_seal(read, len(moved), len(files), len(removed))
    delta.create_write_transaction(
        [*files, *removed],
        mode="append",
        schema=schema(table),
        partition_by=list(table.partition),
        commit_properties=CommitProperties(
            app_transactions=moved or None,
            custom_metadata={**seal, COMMIT_ID: change.commit_id, **change.said},
            max_commit_retries=0,
        ),
    )
    return read + 1


def is_ours(change: Change, actions: Sequence[Action] | None) -> bool:
    """Whether a log entry is the commit of *change*: an answer of the store may be lost."""
    infos = [content for kind, content in actions or () if kind == "commitInfo"]
    return any(info.get(COMMIT_ID) == change.commit_id for info in infos)


def _removed(
    table: Table,
    delta: DeltaTable,
    change: Change,
    entry: Callable[[int], Sequence[Action] | None],
) -> list[RemoveAction]:
    read = int(delta.version())
    actions = pa.table(delta.get_add_actions(flatten=False))
    current = partition_texts(actions)
    since = read if change.computed_at is None else change.computed_at
    entries = (entry(version) for version in range(since + 1, read + 1))
    if is_overtaken(change.replaced, current, entries):
        raise Overtaken(
            f"{table.name}: another writer changed the rows that were to be replaced. "
            "Nothing was written; run again."
        )
    sizes = dict(zip(current, actions.column("size_bytes").to_pylist(), strict=True))
    now = int(time.time() * 1000)
    return [
        RemoveAction(
            path=unquote(path),  # delta-rs writes it to the log encoded
            deletion_timestamp=now,
            data_change=not isinstance(change.replaced, RewriteFiles),
            partition_values=dict(current[path]),
            size=sizes[path],
        )
        for path in replaced_files(change.replaced, current)
    ]


def _refuse_other_partitions(table: Table, files: Sequence[AddAction]) -> None:
    """ContractError where the partition columns of a file are not those of *table*."""
    for file in files:
        if tuple(file.partition_values) != tuple(table.partition):
            raise ContractError(
                f"{table.name}: {file.path} has the partition columns "
                f"{', '.join(file.partition_values) or 'none'}, the table has "
                f"{', '.join(table.partition) or 'none'}. Nothing was written."
            )
