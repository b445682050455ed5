"""What a question may use: the kinds of plan nodes and expressions, and the functions by name.

Whatever is not here is refused, also what a later Spark brings.
"""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


CATALYST = "org.apache.spark.sql.catalyst."

PARSED_NODES = _words("""
    Aggregate Deduplicate Distinct Except Filter Generate GlobalLimit Intersect Join LateralJoin
    LimitAll LocalLimit LocalRelation Offset OneRowRelation Pivot Project Range
    RepartitionByExpression Sample Sort SubqueryAlias Tail Union UnresolvedHint UnresolvedWith
    Unpivot Window WithWindowDefinition
    """)
"""Of `plans.logical`, as the parser makes them."""

UNRESOLVED = _words("""
    NamedParameter UnresolvedAlias UnresolvedAttribute UnresolvedExtractValue UnresolvedFunction
    UnresolvedGenerator UnresolvedHaving UnresolvedInlineTable UnresolvedOrdinal UnresolvedRelation
    UnresolvedStar UnresolvedStarExceptOrReplace UnresolvedStarWithColumns
    UnresolvedSubqueryColumnAliases UnresolvedTVFAliases UnresolvedTableValuedFunction
    MultiAlias RelationTimeTravel ResolvedInlineTable
    """)
"""Of `analysis`: what the parser leaves to the analysis."""

PARSED_EXPRESSIONS = _words("""
    Add Alias And AttributeReference Between BitwiseAnd BitwiseNot BitwiseOr BitwiseXor CaseWhen
    Cast Coalesce Collate Concat CreateArray CreateMap CreateNamedStruct Cube CurrentDate
    CurrentRow$ CurrentTime CurrentTimestamp DateAdd DateSub Divide EqualNullSafe EqualTo Exists
    GreaterThan GreaterThanOrEqual GroupingSets If In InSubquery IntegralDivide IsNaN IsNotNull
    IsNull LambdaFunction LateralSubquery LessThan LessThanOrEqual Like LikeAll LikeAny
    ListQuery Literal Lower Multiply NamedArgumentExpression Not NotLikeAll NotLikeAny Or
    Overlay PipeExpression PipeOperator Pmod RLike Remainder Rollup ScalarSubquery
    SemiStructuredExtract ShiftLeft ShiftRight ShiftRightUnsigned SortOrder SpecifiedWindowFrame
    StringLocate StringTrim StringTrimBoth StringTrimLeft StringTrimRight Substring Subtract
    TimestampAdd TimestampDiff UnaryMinus UnaryPositive UnboundedFollowing$ UnboundedPreceding$
    UnresolvedCollation UnresolvedNamedLambdaVariable UnresolvedWindowExpression
    UnspecifiedFrame$ Upper WindowExpression WindowSpecDefinition WindowSpecReference
    aggregate.AggregateExpression
    aggregate.AnyValue aggregate.First aggregate.Last
    """)
"""Of `expressions`, as the parser makes them."""

ANALYZED_NODES = _words("""
    Aggregate CTERelationDef CTERelationRef Deduplicate Distinct Except Expand Filter Generate
    GlobalLimit Intersect Join LateralJoin LocalLimit LocalRelation Offset OneRowRelation Pivot
    Project Range RebalancePartitions Repartition RepartitionByExpression ResolvedHint Sample Sort
    SubqueryAlias Tail Union UnionLoop UnionLoopRef Unpivot View Window WithCTE
    """)
"""Of `plans.logical`, after the analysis."""

FORBIDDEN_EXPRESSIONS = (
    "Reflect",
    "Proto",
    "Avro",
    "CurrentUser",
    "InputFile",
    "UDF",
    "CurrentCatalog",
    "CurrentDatabase",
    "Python",
    "VariableReference",
    "Invoke",
)
"""Parts of the names of expressions that call other code, or name files, users or catalogs."""

USER_WORDS = _words(
    "current_user session_user user current_catalog current_database current_schema"
)
"""Functions that Spark also takes without parentheses: they parse as a column."""

HIDDEN_COLUMN = "_metadata"
"""Every table of files has it: paths on this host."""


@cache
def functions() -> frozenset[str]:
    """Names of functions that compute from their arguments alone."""
    return frozenset(name for name, _ in _listed())


@cache
def table_functions() -> frozenset[str]:
    """Names of functions that may stand behind FROM."""
    return frozenset(name for name, rows in _listed() if rows)


def _listed() -> list[tuple[str, str]]:
    with Path(__file__).with_name("functions.csv").open(encoding="utf-8") as lines:
        return [(row["function"], row["rows"]) for row in csv.DictReader(lines)]
