"""Ad hoc SQL that can read the lake's tables and do nothing else.

Four fences. Variables (`${env:HOME}`) are not substituted. The text must parse as a query inside
parentheses, where no statement that writes, drops or sets is grammatical. The plan that is run may
hold only known kinds of nodes, and no function that reaches outside the tables. Every relation in
it must be one of the lake's tables or a name the query itself defines.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from acktrail.contracts import TABLES
from acktrail.contracts.runs import ALERTS, CHECK_RESULTS
from acktrail.errors import UsageError
from acktrail.lake import Lake
from acktrail.nearest import did_you_mean
from acktrail.policy.renamed import RENAMED
from pipelines import spark_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical."
_UNRESOLVED = "org.apache.spark.sql.catalyst.analysis.Unresolved"
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
_FORBIDDEN_FUNCTIONS = frozenset(
    [
        # They call Java, read a file that an argument names, or tell who runs this process.
        "reflect",
        "java_method",
        "try_reflect",
        "from_protobuf",
        "to_protobuf",
        "current_user",
        "session_user",
        "user",
    ]
)
_USER_WORDS = frozenset({"current_user", "session_user", "user"})
"""Of them, those that Spark also takes without parentheses: they parse as a column."""
_NAMES_CHECKS = (ALERTS, CHECK_RESULTS)
"""Tables whose rows may have former names of checks: they are read with the current ones."""
_SUBSTITUTION = "spark.sql.variable.substitute"
_ONLY = "`acktrail sql` takes one query: SELECT, WITH or VALUES."
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
    from pyspark.errors import PySparkException

    # Set here, so that no setting of the user and no file of Spark's can turn it on.
    session.conf.set(_SUBSTITUTION, "false")
    statement = text.strip().rstrip(";")
    _refuse_what_is_not_reading(_parsed(session, statement))
    for table in TABLES:
        if lake.exists(table):
            frame = session.read.format("delta").load(lake.path(table))
            if table in _NAMES_CHECKS:
                frame = frame.replace([*RENAMED], [*RENAMED.values()], ["check"])
            frame.createOrReplaceTempView(table.name)
    try:
        return _with_unique_names(session.sql(statement))
    except PySparkException as error:
        raise _refused(session, error) from error


def _with_unique_names(frame: DataFrame) -> DataFrame:
    """*frame* with the second column called `run` renamed to `run (2)`: a row has one of each."""
    seen: Counter[str] = Counter()
    names = []
    for name in frame.columns:
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return frame if len(seen) == len(names) else frame.toDF(*names)


def rows(session: SparkSession, frame: DataFrame) -> Iterator[dict[str, Any]]:
    """The rows of *frame*, one after another; UsageError where they cannot be computed."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        for row in frame.toLocalIterator():
            yield row.asDict(recursive=True)
    except (PySparkException, Py4JJavaError) as error:
        raise _refused(session, error) from error


def _refused(session: SparkSession, error: Exception) -> UsageError:
    return UsageError(spark_errors.message(error, lambda: _functions(session)))


def _functions(session: SparkSession) -> list[str]:
    return [row[0] for row in session.sql("SHOW FUNCTIONS").collect()]


def _parsed(session: SparkSession, statement: str) -> Any:
    """The plan of *statement* as JSON; UsageError where it is not one query."""
    from pyspark.errors import ParseException

    parser = session._jsparkSession.sessionState().sqlParser()
    if not statement:
        raise UsageError(f"The query is empty. {_ONLY}")
    try:
        plan = parser.parsePlan(statement)
    except ParseException as error:
        raise UsageError(f"{spark_errors.message(error)}\n{_ONLY}") from error
    try:
        parser.parsePlan(f"SELECT * FROM (\n{statement}\n)")
    except ParseException as error:
        raise UsageError(f"This is not a query. {_ONLY}") from error
    return json.loads(plan.toJSON())


def _refuse_what_is_not_reading(plan: Any) -> None:
    nodes = list(_nodes(plan))
    if not str(plan[0].get("class", "")).startswith((_LOGICAL, _UNRESOLVED)):
        raise UsageError(f"This is not a query. {_ONLY}")
    defined = {str(node["_1"]) for node in nodes if node.get("product-class") == "scala.Tuple3"}
    strange = [name for name in defined if not re.fullmatch(r"\w+", name)]
    if strange:
        # `a, b` would look like b of a below.
        raise UsageError(f"Name it with letters, digits and _ only: {strange[0]!r}.")
    known = {table.name for table in TABLES} | {name.lower() for name in defined}
    for node in nodes:
        _refuse_node(node, known)


def _refuse_node(node: dict[str, Any], known: set[str]) -> None:
    kind = str(node.get("class", ""))
    name = kind.rpartition(".")[2].rstrip("$")
    if (kind.startswith(_LOGICAL) and name not in _NODES) or any(o in kind for o in _OUTSIDE):
        raise UsageError(f"This does more than read the lake's tables ({name}). {_ONLY}")
    if name == "UnresolvedRelation" and (asked := _name(node["multipartIdentifier"])) not in known:
        raise UsageError(
            f"There is no table {asked.replace(', ', '.')}.{did_you_mean(asked, known)} "
            "`acktrail lake tables` lists the tables."
        )
    if name == "UnresolvedTableValuedFunction" and _name(node["name"]) not in _TABLE_FUNCTIONS:
        raise UsageError(f"`acktrail sql` does not call {_name(node['name'])}.")
    if name == "UnresolvedFunction":
        called = _name(node["nameParts"])
        if called.rpartition(", ")[2].lower() in _FORBIDDEN_FUNCTIONS:
            raise UsageError(f"`acktrail sql` does not call {called.replace(', ', '.')}.")
    if name == "UnresolvedAttribute" and _name(node["nameParts"]) in _USER_WORDS:
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
    """`[a]` is a; `[delta, /x]` stays as it is, and so is not a known name."""
    inner = parts.strip()[1:-1]
    return inner if ", " in inner else inner.lower()
