"""A table's Spark schema, and a DataFrame made to fit its contract or refused."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
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
            T.StructField(c.name, spark_type(c), not c.required, {"comment": c.doc})
            for c in table.columns
        ]
    )


def spark_type(column: Column) -> T.DataType:
    """The Spark type of *column*; fields of structs are nullable, as in `arrow_type`."""
    if column.kind != "structs":
        return _SPARK[column.kind]
    fields = [T.StructField(f.name, spark_type(f), True, {"comment": f.doc}) for f in column.fields]
    return T.ArrayType(T.StructType(fields))


def loose(table: Table) -> T.StructType:
    """As `struct`, all nullable: what rules in Python return."""
    return T.StructType([T.StructField(c.name, spark_type(c)) for c in table.columns])


def refuse_misfit(table: Table, frame: DataFrame) -> None:
    """ContractError where *frame* has not the columns and types of *table*.

    Values are checked where they are written (`acktrail.contracts.arrow.conform`).
    """
    missing = [c.name for c in table.columns if c.name not in frame.columns and c.required]
    unexpected = [n for n in frame.columns if n not in table.names]
    wrong = [
        f"{c.name} is {frame.schema[c.name].dataType.simpleString()}, "
        f"not {spark_type(c).simpleString()}"
        for c in table.columns
        if c.name in frame.columns and not _fits(frame.schema[c.name].dataType, c)
    ]
    if missing or unexpected or wrong:
        raise ContractError(
            f"{table.name}: the job's output does not match the contract.\n"
            f"  missing columns:    {', '.join(missing) or 'none'}\n"
            f"  unexpected columns: {', '.join(unexpected) or 'none'}\n"
            f"  wrong types:        {', '.join(wrong) or 'none'}\n"
            "Change the transform, or the table in acktrail/contracts, but not only one of them."
        )


def _fits(found: T.DataType, column: Column) -> bool:
    if column.kind == "long":
        return isinstance(found, T.IntegralType)
    if column.kind == "double":
        return isinstance(found, T.NumericType)
    if isinstance(found, T.NullType):
        return True
    if column.kind == "structs":  # a cast goes by position, so names and order must be the same
        return isinstance(found, T.ArrayType) and _has_fields(found.elementType, column)
    return type(found) is type(_SPARK[column.kind])


def _has_fields(found: T.DataType, column: Column) -> bool:
    return (
        isinstance(found, T.StructType)
        and found.names == [f.name for f in column.fields]
        and all(_fits(found[f.name].dataType, f) for f in column.fields)
    )


def quoted(text: str) -> str:
    """*text* as a literal of SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def no_rows(session: SparkSession, table: Table) -> DataFrame:
    """An empty frame of *table* that the planner knows to be empty, so that it costs nothing."""
    jvm, java = session._jvm, session._jsparkSession
    assert jvm is not None
    kind = java.parseDataType(struct(table).json())
    return DataFrame(java.createDataFrame(jvm.java.util.ArrayList(), kind), session)
