"""Refuse tables that would be read wrongly, or that do not fit their contract."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from acktrail.contracts import Table
from acktrail.contracts.arrow import former_type, schema
from acktrail.errors import ContractError, UnsupportedTable

_FEATURES = {
    "appendOnly",
    "invariants",
    "changeDataFeed",
    "checkConstraints",
    "generatedColumns",
    "timestampNtz",
}


def guard(table: Table, path: str, delta: DeltaTable) -> None:
    """Refuse what delta-rs would read wrongly, and tables that do not fit their contract."""
    _refuse_features(table, path, delta)
    for field in stored_schema(delta):
        if field.name not in table.names:
            raise ContractError(
                f"{table.name} at {path} has a column {field.name} that the contract does not "
                "know: it was written by a newer acktrail. Upgrade this one."
            )
        wanted = schema(table).field(field.name).type
        if not _same_type(field.type, wanted) and not _is_former(table, field):
            raise ContractError(
                f"{table.name}.{field.name} at {path} is {field.type}, the contract says {wanted}. "
                "Move the table away and run again: silver and gold are rebuilt from bronze."
            )


def stored_schema(delta: DeltaTable) -> pa.Schema:
    """The columns the table has now."""
    found: pa.Schema = pa.schema(delta.schema().to_arrow())  # type: ignore[arg-type]
    return found


def columns_to_add(table: Table, delta: DeltaTable) -> list[pa.Field[Any]]:
    """What the contract has grown since the table was made; null in the rows there are."""
    known = set(stored_schema(delta).names)
    return [field.with_nullable(True) for field in schema(table) if field.name not in known]


def outdated_columns(table: Table, delta: DeltaTable) -> list[str]:
    """Columns that an earlier version wrote as another kind: `acktrail run` migrates them."""
    return [field.name for field in stored_schema(delta) if _is_former(table, field)]


def refuse_outdated(table: Table, path: str, delta: DeltaTable, wanted: Collection[str]) -> None:
    """ContractError where one of the columns *wanted* is still as an earlier version wrote it."""
    found = [name for name in outdated_columns(table, delta) if name in wanted]
    if found:
        raise ContractError(
            f"{table.name} at {path} was written by an earlier acktrail: {', '.join(found)} must "
            "be migrated before it can be read. Run `acktrail run`; no row is lost."
        )


def _is_former(table: Table, field: pa.Field[Any]) -> bool:
    former = former_type(table.column(field.name))
    if former is None:
        return False
    return _same_type(field.type, former) or _lacks_fields(
        field.type, schema(table).field(field.name).type
    )


def _lacks_fields(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether *found* is *wanted*, a list of structs, before it grew its last fields."""
    if not (_is_list(found) and _is_list(wanted)):
        return False
    before, now = _items(found), _items(wanted)
    if not pa.types.is_struct(before):
        return False
    had, has = before.fields, {f.name: f.type for f in now.fields}
    known = [f.name in has and _same_type(f.type, has[f.name]) for f in had]
    return all(known) and len(had) < len(has)


def _items(kind: Any) -> Any:
    return kind.value_type


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _refuse_features(table: Table, path: str, delta: DeltaTable) -> None:
    protocol = delta.protocol()
    features = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
    strange = sorted(str(f) for f in features if str(f) not in _FEATURES)
    mapping = delta.metadata().configuration.get("delta.columnMapping.mode", "none")
    if mapping not in ("none", ""):
        strange.append(f"columnMapping ({mapping})")
    if strange:
        raise UnsupportedTable(
            f"{table.name} at {path} uses Delta features that acktrail does not support: "
            f"{', '.join(strange)}. "
            "Its rows could be read wrongly. Write the table again without them "
            "(`acktrail run --rebuild` recomputes silver and gold from bronze)."
        )


def _same_type(found: pa.DataType, wanted: pa.DataType) -> bool:
    if _is_list(wanted):
        return _is_list(found) and _same_type(_items(found), _items(wanted))
    if pa.types.is_map(wanted):
        return bool(pa.types.is_map(found))
    if pa.types.is_struct(wanted):
        return (
            pa.types.is_struct(found)
            and [f.name for f in found.fields] == [f.name for f in wanted.fields]
            and all(
                _same_type(f.type, w.type) for f, w in zip(found.fields, wanted.fields, strict=True)
            )
        )
    plain = {
        pa.large_string(): pa.string(),
        pa.string_view(): pa.string(),
        pa.large_binary(): pa.binary(),
        pa.binary_view(): pa.binary(),
    }
    return bool(plain.get(found, found) == wanted)
