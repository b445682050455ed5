"""Rewrite a table whose columns have a former kind, or lack fields, in one commit.

Every file is read, its outdated columns are converted, and the rows are written again; one commit
then replaces all files and the schema. Until that commit the table is as it was, and a commit of
anybody else in between makes it fail. Nothing is recomputed, so rows stay whose evidence has
expired. The commit repeats the last note of the table's job (run number, consumed versions) and
says that it is a migration, so that jobs that read the table find nothing new in it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable
from deltalake.transaction import AddAction

from acktrail.contracts import Table
from acktrail.contracts.arrow import arrow_type, conform, schema
from acktrail.crashpoints import crash_point
from acktrail.errors import ContractError
from acktrail.lake.damage import commit_seal
from acktrail.lake.data_files import write_files
from acktrail.lake.entries import MIGRATED, noted
from acktrail.lake.guard import stored_schema
from acktrail.lake.rows import dataset
from acktrail.lake.store import Store
from acktrail.lake.table_snapshots import Snapshot

Convert = Callable[[Any], Any]
"""From a value of the former kind to one of the new kind."""


def rewrite(
    table: Table,
    delta: DeltaTable,
    store: Store,
    converters: Mapping[str, Convert],
) -> None:
    """Commit *delta* with the columns of *converters* converted; CommitFailedError if overtaken."""
    files: list[AddAction] = []
    for fragment in dataset(Snapshot.of(delta), store).get_fragments():
        rows = fragment.to_table(schema=stored_schema(delta))
        for name, convert in converters.items():
            rows = _converted(table, rows, name, convert)
        files += write_files(table, conform(table, rows), store)
    crash_point("lake.migration_written")
    read = int(delta.version())
    said = {"userMetadata": json.dumps(_note(table, delta, list(converters)), sort_keys=True)}
    delta.create_write_transaction(
        list(files),
        mode="overwrite",
        schema=schema(table),
        partition_by=list(table.partition),
        commit_properties=CommitProperties(
            custom_metadata={
                **commit_seal(read, 0, len(files), len(delta.file_uris())),
                **said,
            },
            max_commit_retries=0,
        ),
    )


def _converted(table: Table, rows: pa.Table, name: str, convert: Convert) -> pa.Table:
    column = table.column(name)
    if pa.types.is_nested(rows.column(name).type):
        convert = _with_more_fields
    try:
        values = [None if v is None else convert(v) for v in rows.column(name).to_pylist()]
        made = pa.array(values, arrow_type(column))
    except (ValueError, TypeError, ArithmeticError, LookupError, pa.ArrowException) as error:
        raise ContractError(
            f"{table.name}.{name}: a row of an earlier version cannot be migrated: {error!r}. "
            "Nothing was written."
        ) from error
    return rows.set_column(rows.column_names.index(name), pa.field(name, made.type), made)


def _with_more_fields(value: Any) -> Any:
    """Structs of the kind they have now; fields that they lack are null."""
    return value


def _note(table: Table, delta: DeltaTable, columns: list[str]) -> dict[str, Any]:
    """The last note of the table's job, marked as a migration."""
    for commit in delta.history():
        said = noted(commit.get("userMetadata"))
        if said.get("job") == table.name:
            return {**said, MIGRATED: columns}
    return {MIGRATED: columns}
