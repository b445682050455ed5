"""A table's Spark schema, and a DataFrame made to fit its contract or refused."""

from __future__ import annotations

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from acktrail.contracts import Column, Kind, Table
from acktrail.errors import ContractError

_SPARK: dict[Kind, T.DataType] = {
    "string": T.StringType(),
    "long": T.LongType(),
    "double": T.DoubleType(),
    "boolean": T.BooleanType(),
    "timestamp": T.TimestampType(),
    "binary": T.BinaryType(),
    "strings": T.ArrayType(T.StringType()),
    "longs": T.ArrayType(T.LongType()),
    "attributes": T.MapType(T.StringType(), T.StringType()),
}


def struct(table: Table) -> T.StructType:
    """The Spark schema of *table*."""
    return T.StructType(
        [
            T.StructField(c.name, _SPARK[c.kind], not c.required, {"comment": c.doc})
            for c in table.columns
        ]
    )


def loose(table: Table, *extra: str) -> T.StructType:
    """As `struct`, all nullable, with *extra* text columns: what a map's reader returns."""
    fields = [T.StructField(c.name, _SPARK[c.kind]) for c in table.columns]
    return T.StructType([*fields, *(T.StructField(name, T.StringType()) for name in extra)])


def conform(table: Table, frame: DataFrame) -> DataFrame:
    """*frame* with exactly the columns and types of *table*; a wrong value fails the write."""
    missing = [c.name for c in table.columns if c.name not in frame.columns and c.required]
    unexpected = [n for n in frame.columns if n not in table.names]
    wrong = [
        f"{c.name} is {frame.schema[c.name].dataType.simpleString()}, "
        f"not {_SPARK[c.kind].simpleString()}"
        for c in table.columns
        if c.name in frame.columns and not _fits(frame.schema[c.name].dataType, c.kind)
    ]
    if missing or unexpected or wrong:
        raise ContractError(
            f"{table.name}: the job's output does not match the contract.\n"
            f"  missing columns:    {', '.join(missing) or 'none'}\n"
            f"  unexpected columns: {', '.join(unexpected) or 'none'}\n"
            f"  wrong types:        {', '.join(wrong) or 'none'}\n"
            "Change the transform, or the table in acktrail/contracts, but not only one of them."
        )
    return frame.select([_fitting(table, c, c.name in frame.columns) for c in table.columns])


def _fits(found: T.DataType, kind: Kind) -> bool:
    if kind == "long":
        return isinstance(found, T.IntegralType)
    if kind == "double":
        return isinstance(found, T.NumericType)
    if isinstance(found, T.NullType):
        return True
    return type(found) is type(_SPARK[kind])


def _fitting(table: Table, column: Column, present: bool) -> SparkColumn:
    value = F.col(column.name) if present else F.lit(None)
    value = value.cast(_SPARK[column.kind])
    if column.values is not None:
        known = [v.value for v in column.values]
        complaint = F.concat(
            F.lit(f"{table.name}.{column.name}: not an allowed value: "), F.col(column.name)
        )
        value = F.when(value.isNull() | value.isin(known), value).otherwise(
            F.raise_error(complaint).cast(_SPARK[column.kind])
        )
    if column.required:
        complaint = F.lit(f"{table.name}.{column.name} is required, and a row has none")
        value = F.when(value.isNotNull(), value).otherwise(
            F.raise_error(complaint).cast(_SPARK[column.kind])
        )
    return value.alias(column.name)
