"""A table's Arrow schema, and rows made to fit it or refused."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from acktrail.contracts.table import Column, Kind, Table
from acktrail.errors import ContractError

_ARROW: dict[Kind, pa.DataType] = {
    "string": pa.string(),
    "long": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "binary": pa.binary(),
    "strings": pa.list_(pa.field("element", pa.string())),
    "longs": pa.list_(pa.field("element", pa.int64())),
    "attributes": pa.map_(pa.string(), pa.string()),
}


def schema(table: Table) -> pa.Schema:
    """The Arrow schema of *table*."""
    return pa.schema(
        [
            pa.field(c.name, arrow_type(c), nullable=not c.required, metadata={"comment": c.doc})
            for c in table.columns
        ]
    )


def arrow_type(column: Column) -> pa.DataType:
    """The Arrow type of *column*.

    Fields of structs are nullable in storage; `conform` refuses nulls in those that are required.
    """
    if column.kind != "structs":
        return _ARROW[column.kind]
    fields = [pa.field(f.name, arrow_type(f), metadata={"comment": f.doc}) for f in column.fields]
    return pa.list_(pa.field("element", pa.struct(fields)))


def former_type(column: Column) -> pa.DataType | None:
    """The Arrow type that *column* had in earlier versions; None where it never changed."""
    return None if column.former is None else _ARROW[column.former]


def rows(table: Table, records: Iterable[Mapping[str, Any]]) -> pa.Table:
    """*records* as an Arrow table that fits *table*; a key left out is null."""
    listed = list(records)
    unknown = sorted({key for record in listed for key in record} - set(table.names))
    if unknown:
        raise ContractError(_mismatch(table, [], unknown))
    try:
        built = pa.Table.from_pylist(listed, schema=schema(table))
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError, OverflowError) as error:
        raise ContractError(
            f"{table.name}: a row does not fit the contract: {error}\n"
            "Change the source of the row, or the table in acktrail/contracts."
        ) from error
    return conform(table, built)


@functools.cache
def no_rows(table: Table) -> pa.Table:
    """The empty table."""
    return schema(table).empty_table()


def columns(
    table: Table, count: int, same: Mapping[str, Any], own: Mapping[str, Sequence[Any]]
) -> pa.Table:
    """*count* rows with the values of *same* in each and one value of each list in *own*."""
    unknown = sorted({*same, *own} - set(table.names))
    if unknown:
        raise ContractError(_mismatch(table, [], unknown))
    built = {}
    for field in schema(table):
        if field.name in own:
            built[field.name] = pa.array(own[field.name], field.type)
        elif same.get(field.name) is not None:
            built[field.name] = pa.repeat(pa.scalar(same[field.name], field.type), count)
    return conform(table, pa.table(built))


def conform(table: Table, data: pa.Table) -> pa.Table:
    """*data* with exactly the columns, types and allowed values of *table*, or ContractError."""
    missing = [c.name for c in table.columns if c.name not in data.column_names and c.required]
    unexpected = [n for n in data.column_names if n not in table.names]
    if missing or unexpected:
        raise ContractError(_mismatch(table, missing, unexpected))
    wanted = schema(table)
    columns = []
    for field in wanted:
        if field.name not in data.column_names:
            columns.append(pa.nulls(data.num_rows, field.type))
            continue
        column = data.column(field.name)
        if column.type != field.type:
            try:
                column = column.cast(field.type)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise ContractError(
                    f"{table.name}.{field.name}: {column.type} does not fit {field.type}: {error}"
                ) from error
        columns.append(column)
    built = pa.Table.from_arrays(columns, schema=wanted)
    for c in table.columns:
        _refuse_values(f"{table.name}.{c.name}", c, built.column(c.name))
    return built


def _refuse_values(name: str, c: Column, column: pa.ChunkedArray[Any]) -> None:
    """ContractError for nulls in a required column, and for words that it may not hold."""
    if c.required and column.null_count:
        raise ContractError(
            f"{name} is required, and {column.null_count} of {len(column)} rows have none."
        )
    if c.values is not None:
        known = pa.array([v.value for v in c.values], pa.string())
        strange = pc.unique(
            column.filter(pc.invert(pc.or_kleene(pc.is_in(column, known), pc.is_null(column))))
        ).to_pylist()
        if strange:
            raise ContractError(
                f"{name}: {strange[:3]} is not one of {', '.join(v.value for v in c.values)}."
            )
    if c.fields:
        structs = pc.list_flatten(column)
        for field in c.fields:
            _refuse_values(f"{name}.{field.name}", field, pc.struct_field(structs, field.name))


def _mismatch(table: Table, missing: list[str], unexpected: list[str]) -> str:
    return (
        f"{table.name}: the rows do not match the contract.\n"
        f"  missing columns:    {', '.join(missing) or 'none'}\n"
        f"  unexpected columns: {', '.join(unexpected) or 'none'}\n"
        "Change the writer, or the table in acktrail/contracts, but not only one of them."
    )
