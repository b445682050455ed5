"""The words of a text, by the lexer that Spark's parser uses: comments and strings are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PARSER = "org.apache.spark.sql.catalyst.parser"


@dataclass(frozen=True)
class Token:
    """One word: its kind as Spark's grammar calls it, and where it is in the text."""

    kind: str
    text: str
    line: int
    column: int
    """From 0."""
    start: int
    end: int

    @property
    def is_name(self) -> bool:
        """A word, quoted or not, that can be the name of something."""
        return self.kind == "BACKQUOTED_IDENTIFIER" or self.text.replace("_", "a").isalnum()

    @property
    def name(self) -> str:
        """The name without back quotes, in lower case."""
        return self.text.strip("`").lower()


def tokens_of(session: SparkSession, text: str) -> list[Token]:
    """Every word of *text*, without comments and spaces."""
    jvm = session._jvm
    assert jvm is not None
    if not text.isascii():  # Java counts UTF-16 units: one for each character, for places
        text = "".join(c if ord(c) < 0x10000 else "\ufffd" for c in text)
    parser = getattr(jvm, _PARSER)
    stream = parser.UpperCaseCharStream(jvm.org.antlr.v4.runtime.CharStreams.fromString(text))
    lexer = parser.SqlBaseLexer(stream)
    lexer.removeErrorListeners()
    names = lexer.getVocabulary()
    found = []
    for token in lexer.getAllTokens():
        if token.getChannel() != 0:
            continue
        start, end = token.getStartIndex(), token.getStopIndex() + 1
        kind = names.getSymbolicName(token.getType())
        line, column = token.getLine(), token.getCharPositionInLine()
        found.append(Token(str(kind), text[start:end], line, column, start, end))
    return found
