"""Ad hoc SQL that can read the lake's tables and do nothing else.

Three fences. The text must parse as a query inside parentheses, where no statement that writes,
drops or sets is grammatical. Its parsed plan may hold only known kinds of nodes. Every relation in
it must be one of the lake's tables or a name the query itself defines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from acktrail.contracts import TABLES
from acktrail.errors import UsageError
from acktrail.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical."
_NODES = frozenset(
    [
        "Project",
        "Filter",
        "SubqueryAlias",
        "Join",
        "AsOfJoin",
        "LateralJoin",
        "Aggregate",
        "Sort",
        "GlobalLimit",
        "LocalLimit",
        "LocalRelation",
        "Offset",
        "Tail",
        "Distinct",
        "Union",
        "Intersect",
        "Except",
        "UnresolvedWith",
        "Generate",
        "Pivot",
        "Unpivot",
        "Sample",
        "UnresolvedHint",
        "OneRowRelation",
        "Window",
        "WithWindowDefinition",
        "Deduplicate",
        "Range",
        "JoinHint",
        "HintInfo",
    ]
)
_OUTSIDE = ("ScriptTransformation", "ScriptInputOutputSchema", "UnresolvedIdentifier")
_FORBIDDEN_FUNCTIONS = frozenset({"reflect", "java_method", "try_reflect"})
_TABLE_FUNCTIONS = frozenset(
    [
        "range",
        "explode",
        "explode_outer",
        "posexplode",
        "posexplode_outer",
        "inline",
        "inline_outer",
        "stack",
        "json_tuple",
        "sql_keywords",
    ]
)


def query(session: SparkSession, lake: Lake, text: str) -> DataFrame:
    """The rows of *text*, a single query over the lake's tables; UsageError for anything else."""
    from pyspark.errors import AnalysisException, ParseException

    statement = text.strip().rstrip(";")
    parser = session._jsparkSession.sessionState().sqlParser()
    try:
        plan = parser.parsePlan(f"SELECT * FROM (\n{statement}\n)")
    except ParseException as error:
        raise UsageError(
            f"This is not one query: {_first_line(error)}\n"
            "`acktrail sql` reads: SELECT, WITH and VALUES only, one at a time."
        ) from None
    _refuse_what_is_not_reading(json.loads(plan.toJSON()))
    for table in TABLES:
        if lake.exists(table):
            frame = session.read.format("delta").load(lake.path(table))
            frame.createOrReplaceTempView(table.name)
    try:
        return session.sql(statement)
    except AnalysisException as error:
        raise UsageError(f"The query cannot be answered: {_first_line(error)}") from None


def _refuse_what_is_not_reading(plan: Any) -> None:
    nodes = list(_nodes(plan))
    defined = {str(node["_1"]) for node in nodes if node.get("product-class") == "scala.Tuple3"}
    known = {table.name for table in TABLES} | defined
    for node in nodes:
        kind = str(node.get("class", ""))
        name = kind.rpartition(".")[2].rstrip("$")
        if (kind.startswith(_LOGICAL) and name not in _NODES) or any(o in kind for o in _OUTSIDE):
            raise UsageError(f"`acktrail sql` only reads the lake's tables; {name} does more.")
        if name == "UnresolvedRelation" and _name(node["multipartIdentifier"]) not in known:
            raise UsageError(
                f"There is no table {_name(node['multipartIdentifier'])}. "
                f"There are: {', '.join(table.name for table in TABLES)}."
            )
        if name == "UnresolvedTableValuedFunction" and _name(node["name"]) not in _TABLE_FUNCTIONS:
            raise UsageError(f"`acktrail sql` does not call {_name(node['name'])}.")
        if name == "UnresolvedFunction" and _name(node["nameParts"]) in _FORBIDDEN_FUNCTIONS:
            raise UsageError(f"`acktrail sql` does not call {_name(node['nameParts'])}.")


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in the plan's JSON, subqueries and expressions included."""
    if isinstance(value, list):
        for item in value:
            yield from _nodes(item)
    elif isinstance(value, dict):
        yield value
        for item in value.values():
            yield from _nodes(item)


def _name(parts: str) -> str:
    """`[a]` is a; `[delta, /x]` stays as it is, and so is no known name."""
    inner = parts.strip()[1:-1]
    return inner if ", " in inner else inner.lower()


def _first_line(error: Exception) -> str:
    return re.sub(r"\s+", " ", str(error).strip().split("\n\n")[0]).strip()
