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
            T.StructField(c.name, _SPARK[c.kind], not c.required, {"comment": c.doc})
            for c in table.columns
        ]
    )


def loose(table: Table) -> T.StructType:
    """As `struct`, all nullable: what rules in Python return."""
    return T.StructType([T.StructField(c.name, _SPARK[c.kind]) for c in table.columns])


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
    return frame.selectExpr(*(_fitting(table, c, c.name in frame.columns) for c in table.columns))


def _fits(found: T.DataType, kind: Kind) -> bool:
    if kind == "long":
        return isinstance(found, T.IntegralType)
    if kind == "double":
        return isinstance(found, T.NumericType)
    if isinstance(found, T.NullType):
        return True
    return type(found) is type(_SPARK[kind])


def _fitting(table: Table, column: Column, present: bool) -> str:
    """The column as SQL: text is planned in one call, where built columns cost one each."""
    kind = _SPARK[column.kind].simpleString()
    name = f"`{column.name}`"
    value = f"CAST({name if present else 'NULL'} AS {kind})"
    if column.values is not None:
        known = ", ".join(quoted(v.value) for v in column.values)
        said = quoted(f"{table.name}.{column.name}: not an allowed value: ")
        value = (
            f"CASE WHEN {value} IS NULL OR {value} IN ({known}) THEN {value} "
            f"ELSE CAST(raise_error(concat({said}, {name})) AS {kind}) END"
        )
    if column.required:
        said = quoted(f"{table.name}.{column.name} is required, and a row has none")
        value = (
            f"CASE WHEN {value} IS NOT NULL THEN {value} "
            f"ELSE CAST(raise_error({said}) AS {kind}) END"
        )
    return f"{value} AS {name}"


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
