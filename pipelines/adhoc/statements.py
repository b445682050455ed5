"""What a text asks for: a query, or one of the few other statements that are answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from acktrail.errors import UsageError
from pipelines.adhoc.tokens import Token

ANSWERED = (
    "This answers queries (SELECT, WITH, FROM, VALUES, TABLE), EXPLAIN, DESCRIBE, SHOW TABLES, "
    "SHOW COLUMNS and SHOW FUNCTIONS."
)
_MODES = {"EXTENDED", "FORMATTED", "COST", "CODEGEN"}
_QUERY_STARTS = {"SELECT", "WITH", "FROM", "VALUES", "TABLE", "("}

Kind = Literal[
    "query",
    "explain",
    "describe",
    "describe extended",
    "describe query",
    "describe history",
    "describe function",
    "show tables",
    "show columns",
    "show functions",
]


@dataclass(frozen=True)
class Statement:
    """One statement: *subject* is the query, the name or the pattern that it is about."""

    kind: Kind
    subject: str = ""
    mode: str = "simple"
    """Of EXPLAIN."""


def statement_of(text: str, tokens: Sequence[Token]) -> Statement:
    """What *text*, whose words are *tokens*, asks for; UsageError where it is empty."""
    if not tokens:
        raise UsageError(f"The query is empty. {ANSWERED}")
    words = [token.text.upper() for token in tokens]
    match words:
        case ["EXPLAIN", mode, _, *_] if mode in _MODES:
            return Statement("explain", _blanked(text, tokens[2].start), mode.lower())
        case ["EXPLAIN", _, *_]:
            return Statement("explain", _blanked(text, tokens[1].start))
        case ["DESCRIBE" | "DESC", *_]:
            return _described(text, tokens, words)
        case ["SHOW", "TABLES" | "COLUMNS" | "FUNCTIONS", *_]:
            return _shown(tokens, words)
    return Statement("query", text)


def _described(text: str, tokens: Sequence[Token], words: Sequence[str]) -> Statement:
    last = tokens[-1]
    match words[1:]:
        case ["QUERY", start, *_] if start in _QUERY_STARTS:
            return Statement("describe query", _blanked(text, tokens[2].start))
        case ["HISTORY", _]:
            return Statement("describe history", last.name)
        case ["FUNCTION", _] | ["FUNCTION", "EXTENDED", _]:
            return Statement("describe function", last.name)
        case ["EXTENDED", _] | ["TABLE", "EXTENDED", _]:
            return Statement("describe extended", last.name)
        case [_] | ["TABLE", _]:
            return Statement("describe", last.name)
        case [start, *_] if start in _QUERY_STARTS:
            return Statement("describe query", _blanked(text, tokens[1].start))
    raise UsageError(
        "Write DESCRIBE [EXTENDED] table, DESCRIBE HISTORY table, DESCRIBE FUNCTION name or "
        "DESCRIBE query."
    )


def _shown(tokens: Sequence[Token], words: Sequence[str]) -> Statement:
    last = tokens[-1]
    match words[1:]:
        case ["COLUMNS", "IN" | "FROM", _]:
            return Statement("show columns", last.name)
        case ["TABLES"]:
            return Statement("show tables", "*")
        case ["FUNCTIONS"]:
            return Statement("show functions", "*")
        case ["TABLES", "LIKE", _] if last.kind == "STRING_LITERAL":
            return Statement("show tables", last.text[1:-1])
        case ["FUNCTIONS", "LIKE", _] if last.kind == "STRING_LITERAL":
            return Statement("show functions", last.text[1:-1])
    raise UsageError(
        "Write SHOW TABLES [LIKE 'loss*'], SHOW FUNCTIONS [LIKE 'date*'] or SHOW COLUMNS IN table."
    )


def _blanked(text: str, start: int) -> str:
    """*text* from *start* on, with spaces before it: places in it stay as they were."""
    return "".join(c if c == "\n" else " " for c in text[:start]) + text[start:]


def windows(text: str, tokens: Sequence[Token]) -> list[str]:
    """What each definition behind WINDOW says: `(…)` or a name. [] where there is no such clause.

    WINDOW is also a function, and may be a name: only `WINDOW name AS` begins a clause.
    """
    return [spec for clause in _clauses(text, tokens) for spec in clause]


def count_windows(text: str, tokens: Sequence[Token]) -> int:
    """How many WINDOW clauses *text* has."""
    return len(_clauses(text, tokens))


def _clauses(text: str, tokens: Sequence[Token]) -> list[list[str]]:
    found = []
    for i, token in enumerate(tokens):
        if token.kind == "WINDOW" and _begins_definition(tokens, i + 1):
            specs, at = [], i + 1
            while _begins_definition(tokens, at):
                end = _end_of_spec(tokens, at + 2)
                specs.append(text[tokens[at + 2].start : tokens[end].end])
                if end + 1 >= len(tokens) or tokens[end + 1].text != ",":
                    break
                at = end + 2
            found.append(specs)
    return found


def _begins_definition(tokens: Sequence[Token], at: int) -> bool:
    """`name AS` and something behind it."""
    return at + 2 < len(tokens) and tokens[at].is_name and tokens[at + 1].kind == "AS"


def _end_of_spec(tokens: Sequence[Token], at: int) -> int:
    """The word that ends the definition which begins at *at*: `)` for `(`, else itself."""
    depth = 0
    for i in range(at, len(tokens)):
        depth += (tokens[i].text == "(") - (tokens[i].text == ")")
        if not depth:
            return i
    return len(tokens) - 1
