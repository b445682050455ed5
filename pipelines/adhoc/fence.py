"""Refuses whatever a plan holds beside reading the lake's tables.

The plan comes as the JSON that Spark makes of it. Spark leaves two things out of that JSON: the
definitions behind WINDOW, and the options behind a table's name. `statements` brings the first as
plans of their own; the second are refused by the words of the text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import Any

from acktrail.errors import UsageError
from acktrail.nearest import did_you_mean
from pipelines.adhoc import allowed
from pipelines.adhoc.tokens import Token

_LOGICAL = f"{allowed.CATALYST}plans.logical."
_EXPRESSIONS = f"{allowed.CATALYST}expressions."
_ANALYSIS = f"{allowed.CATALYST}analysis."
_PARSED = (
    {_LOGICAL + name for name in allowed.PARSED_NODES}
    | {_ANALYSIS + name for name in allowed.UNRESOLVED}
    | {_EXPRESSIONS + name for name in allowed.PARSED_EXPRESSIONS}
)
_RELATION = "org.apache.spark.sql.execution.datasources.LogicalRelation"
_ANALYZED = {
    *(_LOGICAL + name for name in allowed.ANALYZED_NODES),
    f"{_ANALYSIS}ResolvedInlineTable",
    _RELATION,
}
_FORBIDDEN = re.compile("|".join(allowed.FORBIDDEN_EXPRESSIONS))
_WINDOWS = f"{_LOGICAL}WithWindowDefinition"

Json = Any


class Refused(UsageError):
    """Something in a question is not allowed; *word* says where it is in the text."""

    def __init__(self, message: str, word: str = "") -> None:
        super().__init__(message)
        self.word = word


def refuse_options(tokens: Sequence[Token]) -> None:
    """Refused for `WITH (…)` behind a table's name: nothing else has these two words together."""
    for word, following in pairwise(tokens):
        if word.kind == "WITH" and following.text == "(":
            raise Refused("Options of a table (`WITH (...)`) cannot be given here.", word.text)


def refuse_parsed(plans: Sequence[Json], tables: Collection[str], windows: int) -> None:
    """Refused unless *plans* read *tables* only; *windows* WINDOW clauses are among the plans."""
    found = [node for plan in plans for node in nodes(plan)]
    if sum(node.get("class") == _WINDOWS for node in found) != windows:
        raise Refused("A WINDOW clause could not be read here. Write OVER (...) instead.", "WINDOW")
    known = {*tables, *_defined(found)}
    for node in found:
        _refuse_class(str(node.get("class", "")), _PARSED)
        _refuse_name(node, known)


def refuse_analyzed(plan: Json) -> None:
    """Refused where the analysis has brought something in that no question may use."""
    for node in nodes(plan):
        kind = str(node.get("class", ""))
        if kind.startswith(_EXPRESSIONS):
            name = kind.removeprefix(_EXPRESSIONS)
            if _FORBIDDEN.search(name):
                raise Refused(f"This calls something outside the lake's tables ({name}).")
            if name == "AttributeReference" and _hidden(str(node.get("name", ""))):
                raise Refused(_NO_PATHS, allowed.HIDDEN_COLUMN)
        elif kind:
            _refuse_class(kind, _ANALYZED)


_NO_PATHS = "The column _metadata names files of the lake, and cannot be read here."


def _refuse_class(kind: str, allowed_kinds: Collection[str]) -> None:
    if kind and kind not in allowed_kinds:
        name = kind.rpartition(".")[2].rstrip("$")
        raise Refused(f"This does more than read the lake's tables ({name}).")


def _defined(found: Sequence[dict[str, Json]]) -> set[str]:
    """The names that WITH gives; Refused for one that could be taken for something else."""
    defined = {str(n["_1"]) for n in found if n.get("product-class") == "scala.Tuple3"}
    strange = [name for name in defined if not re.fullmatch(r"\w+", name)]
    if strange:
        # `a, b` would look like b of a below.
        raise Refused(f"Name it with letters, digits and _ only: {strange[0]!r}.")
    return {name.lower() for name in defined}


def _refuse_name(node: dict[str, Json], known: Collection[str]) -> None:
    name = str(node.get("class", "")).rpartition(".")[2]
    match name:
        case "UnresolvedRelation":
            _refuse_relation(node, known)
        case "UnresolvedTableValuedFunction":
            _refuse_function(_parts(node["name"]), allowed.table_functions())
        case "UnresolvedFunction":
            _refuse_function(_parts(node["nameParts"]), allowed.functions())
        case "UnresolvedGenerator":
            identifier = node["name"]
            parts = [identifier.get(key) for key in ("catalog", "database", "funcName")]
            _refuse_function([str(p) for p in parts if p], allowed.table_functions())
        case "UnresolvedAttribute":
            parts = _parts(node["nameParts"])
            if any(_hidden(part) for part in parts):
                raise Refused(_NO_PATHS, allowed.HIDDEN_COLUMN)
            if len(parts) == 1 and parts[0].lower() in allowed.USER_WORDS:
                raise Refused(_not_called(parts[0]), parts[0])


def _refuse_relation(node: dict[str, Json], known: Collection[str]) -> None:
    parts = _parts(node["multipartIdentifier"])
    asked = ".".join(parts)
    if node.get("isStreaming"):
        raise Refused("STREAM cannot be read here.", "STREAM")
    if len(parts) == 1 and asked.lower() in known:
        return
    near = did_you_mean(parts[-1], known)
    raise Refused(f"There is no table {asked}.{near or ' SHOW TABLES lists them.'}", parts[0])


def _refuse_function(parts: Sequence[str], names: Collection[str]) -> None:
    called = ".".join(parts)
    if len(parts) == 1 and called.lower() in names:
        return
    near = did_you_mean(parts[-1], names)
    if near:
        raise Refused(f"There is no function {called} here.{near}", parts[0])
    raise Refused(_not_called(called), parts[0])


def _not_called(name: str) -> str:
    return f"The function {name} cannot be called here. SHOW FUNCTIONS lists those that can."


def _hidden(name: str) -> bool:
    return name.lower() == allowed.HIDDEN_COLUMN


def nodes(value: Json) -> Iterator[dict[str, Json]]:
    """Every object in the plan's JSON, subqueries and expressions included."""
    if isinstance(value, list):
        for item in value:
            yield from nodes(item)
    elif isinstance(value, dict):
        yield value
        for item in value.values():
            yield from nodes(item)


def _parts(text: str) -> list[str]:
    """The parts of `[a, b]`. A name with a comma in it looks like two, and is no known name."""
    return text.strip()[1:-1].split(", ")
