"""One question and its answer, within a time and a number of rows."""

from __future__ import annotations

import contextlib
import fnmatch
import json
import re
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from acktrail.errors import UsageError
from acktrail.lake import Lake
from acktrail.nearest import did_you_mean
from pipelines import spark_errors
from pipelines.adhoc import allowed, fence, places, statements, table_catalog
from pipelines.adhoc.statements import Statement
from pipelines.adhoc.tokens import tokens_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

FIXED_CONF = {
    # Set before each question, so that no setting of the user and no file of Spark's changes them.
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    # Spark's other way puts values into the text, and Delta's parser does not take part in it.
    "spark.sql.legacy.parameterSubstitution.constantsOnly": "true",
}
_GRACE_S = 5.0
"""How long a cancelled question may take to end, before its JVM is given up."""


class TooSlow(UsageError):
    """The question was stopped. *stuck*: its JVM does not end it, and is of no more use."""

    def __init__(self, message: str, *, stuck: bool) -> None:
        super().__init__(message)
        self.stuck = stuck


@dataclass(frozen=True)
class SqlAnswer:
    """The rows of an answer; *more*: there are others that were not asked for."""

    rows: pa.Table
    more: bool = False
    plain_text: bool = False
    """It is a text (of EXPLAIN), not a table for people."""


class Asker:
    """Answers questions about *lake* by *session*."""

    def __init__(self, session: SparkSession, lake: Lake) -> None:
        self._session, self._lake = session, lake

    def ask(
        self,
        text: str,
        *,
        limit: int = 0,
        timeout_s: float = 0,
        parameters: Mapping[str, object] | None = None,
    ) -> SqlAnswer:
        """The answer to *text*; UsageError with the reason where there is none.

        At most *limit* rows (0: all), within *timeout_s* seconds (0: however long it takes).
        """
        return self._stoppable(lambda: self._answer(text, limit, parameters or {}), timeout_s)

    def frame(self, text: str, parameters: Mapping[str, object] | None = None) -> DataFrame:
        """The rows of *text*, a query, not read yet."""
        from pyspark.errors import PySparkException

        for key, value in FIXED_CONF.items():
            self._session.conf.set(key, value)
        statement = _without_end(text)
        try:
            self._pass_fence(statement, parameters or {})
            table_catalog.register(self._session, self._lake, self._names(statement))
            found = self._session.sql(statement, dict(parameters) if parameters else None)
            fence.refuse_analyzed(json.loads(found._jdf.queryExecution().analyzed().toJSON()))
        except PySparkException as error:
            raise self._explained(error, statement) from error
        except fence.Refused as refused:
            raise UsageError(self._placed(refused, statement)) from refused
        return _with_unique_names(found)

    # -- statements -----------------------------------------------------------------------------

    def _answer(self, text: str, limit: int, parameters: Mapping[str, object]) -> SqlAnswer:
        statement = statements.statement_of(text, tokens_of(self._session, _without_end(text)))
        if statement.kind == "query":
            return self._rows(self.frame(text, parameters), limit, text)
        return self._about(statement, parameters)

    def _about(self, statement: Statement, parameters: Mapping[str, object]) -> SqlAnswer:
        subject = statement.subject
        answers: dict[str, Callable[[], SqlAnswer]] = {
            "explain": lambda: self._plan(subject, statement.mode, parameters),
            "describe query": lambda: _described(self.frame(subject, parameters)),
            "describe": lambda: _described(self._table(subject)),
            "show columns": lambda: _described(self._table(subject)),
            "describe extended": lambda: self._described_at_length(subject),
            "describe history": lambda: self._history(subject),
            "describe function": lambda: self._function(subject),
            "show functions": lambda: _functions_like(subject),
            "show tables": lambda: self._listed(subject),
        }
        return answers[statement.kind]()

    def _listed(self, pattern: str) -> SqlAnswer:
        shown = [
            (table.name, table.layer, table.doc)
            for name, table in table_catalog.BY_NAME.items()
            if fnmatch.fnmatch(name, pattern.lower()) and self._lake.is_made(table)
        ]
        names = ("table", "layer", "one row is")
        columns = zip(*shown, strict=True) if shown else ([], [], [])
        made = {n: pa.array(c, pa.string()) for n, c in zip(names, columns, strict=True)}
        return SqlAnswer(pa.table(made))

    def _table(self, name: str) -> DataFrame:
        return self.frame(f"SELECT * FROM {_name(name)}")

    def _described_at_length(self, name: str) -> SqlAnswer:
        columns = _described(self._table(name)).rows.to_pylist()
        table = table_catalog.table_named(name)
        assert table is not None
        seen = self._lake.look(table)
        facts = [
            ("", "", ""),
            ("one row is", "", table.doc),
            ("layer", "", table.layer),
            ("grain", "", ", ".join(table.grain)),
            ("partition", "", ", ".join(table.partition) or "none"),
            ("kept for", "", f"{table.retention_days} days"),
            ("location", "", f"{table.layer}/{table.name}"),
        ]
        if seen is not None:
            facts += [
                ("version", "", str(seen.version)),
                ("files", "", str(len(seen.files))),
                ("bytes", "", str(sum(seen.sizes.values()))),
            ]
        rows = [*columns, *(dict(zip(_DESCRIBED, fact, strict=True)) for fact in facts)]
        return SqlAnswer(pa.Table.from_pylist(rows, _DESCRIPTION))

    def _history(self, name: str) -> SqlAnswer:
        self._table(name)  # the error of any other question, where there is none
        table = table_catalog.table_named(name)
        seen = self._lake.look(table) if table else None
        entries = seen.delta.history() if seen is not None else []
        times = [1000 * int(e["timestamp"]) for e in entries]
        arrays: list[pa.Array[Any]] = [
            pa.array([e.get("version") for e in entries], pa.int64()),
            pa.array(times, pa.timestamp("us", "UTC")),
            pa.array([e.get("operation") for e in entries], pa.string()),
        ]
        return SqlAnswer(pa.Table.from_arrays(arrays, ["version", "committed_at", "operation"]))

    def _function(self, name: str) -> SqlAnswer:
        if name not in allowed.functions():
            raise UsageError(
                f"There is no function {name} here.{did_you_mean(name, allowed.functions())}"
            )
        said = [row[0] for row in self._session.sql(f"DESCRIBE FUNCTION {name}").collect()]
        shown = [line for line in said if not line.startswith("Class:")]
        return SqlAnswer(pa.table({"plan": pa.array(shown, pa.string())}), plain_text=True)

    def _plan(self, text: str, mode: str, parameters: Mapping[str, object]) -> SqlAnswer:
        frame = self.frame(text, parameters)
        jvm = self._session._jvm
        assert jvm is not None
        modes = jvm.org.apache.spark.sql.execution.ExplainMode
        said = str(frame._jdf.queryExecution().explainString(modes.fromString(mode)))
        lines = self._relative(said).rstrip().split("\n")
        return SqlAnswer(pa.table({"plan": pa.array(lines, pa.string())}), plain_text=True)

    def _relative(self, text: str) -> str:
        """*text* with paths as they are below the lake, and tables by their own names."""
        place = self._lake.uri.rstrip("/")
        scheme = ""
        if "://" not in place:
            place, scheme = str(Path(place).absolute()), r"(?:file:(?://)?)?"
        text = re.sub(f"{scheme}{re.escape(place)}/?", "", text)
        text = re.sub(r"file:/[^\s,\]\)]*/", "", text)
        return text.replace("spark_catalog.default.", "").replace("`spark_catalog`.`default`.", "")

    # -- the fence ------------------------------------------------------------------------------

    def _pass_fence(self, statement: str, parameters: Mapping[str, object]) -> None:
        words = tokens_of(self._session, statement)
        fence.refuse_options(words)
        specs = statements.windows(statement, words)
        plans = [self._parsed(statement)]
        self._refuse_no_query(statement)
        plans += [self._parsed(f"SELECT count(*) OVER {spec}") for spec in specs]
        fence.refuse_parsed(plans, table_catalog.NAMES, statements.count_windows(statement, words))
        given = {str(n["name"]) for n in _parameters(plans)}
        if missing := sorted(given - parameters.keys()):
            raise UsageError(f"No value was given for :{missing[0]}. Add --param {missing[0]}=…")

    def _refuse_no_query(self, statement: str) -> None:
        """UsageError where *statement* cannot stand in parentheses behind FROM."""
        try:
            self._parsed(f"SELECT * FROM (\n{statement}\n)")
        except UsageError:
            raise UsageError(f"This is not a query. {statements.ANSWERED}") from None

    def _parsed(self, text: str) -> Any:
        """The plan of *text* as JSON; UsageError where it is no statement."""
        from pyspark.errors import ParseException

        parser = self._session._jsparkSession.sessionState().sqlParser()
        try:
            return json.loads(parser.parsePlan(text).toJSON())
        except ParseException as error:
            raise self._explained(error, text) from error

    def _names(self, statement: str) -> set[str]:
        """The names of tables among the words: no other table has to be known."""
        return {token.name for token in tokens_of(self._session, statement)} & table_catalog.NAMES

    def _placed(self, refused: fence.Refused, text: str) -> str:
        """The refusal, with a caret under the word that it is about."""
        word = refused.word.lower()
        found = next((t for t in tokens_of(self._session, text) if word and t.name == word), None)
        shown = places.caret(text, found.line, found.column) if found else ""
        return f"{refused}\n{shown}" if shown else str(refused)

    def _explained(self, error: Exception, text: str) -> UsageError:
        said = spark_errors.message(error, lambda: sorted(allowed.functions()))
        return UsageError(self._relative(places.with_caret(said, text)))

    # -- rows -----------------------------------------------------------------------------------

    def _rows(self, frame: DataFrame, limit: int, text: str) -> SqlAnswer:
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        try:
            wanted = for_arrow(frame.limit(limit + 1) if limit else frame)
            # Planned here: a fatal error of the JVM while rows are sent would never be reported.
            wanted._jdf.queryExecution().executedPlan()
            found = wanted.toArrow()
        except (PySparkException, Py4JJavaError) as error:
            raise self._explained(error, _without_end(text)) from error
        more = bool(limit) and found.num_rows > limit
        return SqlAnswer(found.slice(0, limit) if more else found, more)

    def _stoppable(self, work: Callable[[], SqlAnswer], timeout_s: float) -> SqlAnswer:
        """*work* in a thread of its own: this one can be interrupted, and looks at the clock."""
        group = f"acktrail-sql-{uuid.uuid4()}"
        outcome: list[SqlAnswer | BaseException] = []

        def worker() -> None:
            try:
                context.setJobGroup(group, "acktrail sql", interruptOnCancel=True)
                outcome.append(work())
            except BaseException as error:
                outcome.append(error)

        context = self._session.sparkContext
        thread = threading.Thread(target=worker, name="acktrail-sql", daemon=True)
        thread.start()
        try:
            thread.join(timeout_s or None)
        except KeyboardInterrupt:
            _cancel(context, group, thread)
            if thread.is_alive():
                raise TooSlow("Interrupted.", stuck=True) from None
            raise
        if thread.is_alive():
            _cancel(context, group, thread)
            raise TooSlow(
                f"The question took longer than {timeout_s:g} s and was stopped. Ask for less (an "
                "hour, a topic), or give it more time: --timeout.",
                stuck=thread.is_alive(),
            )
        (ended,) = outcome
        if isinstance(ended, BaseException):
            raise ended
        return ended


def _cancel(context: Any, group: str, thread: threading.Thread) -> None:
    """Stop the question's jobs; what it does between jobs cannot be stopped."""
    with contextlib.suppress(Exception):
        context.cancelJobGroup(group)
    thread.join(_GRACE_S)


def _without_end(text: str) -> str:
    """*text* without the semicolons and spaces at its end; places in it stay as they are."""
    return text.rstrip().rstrip(";").rstrip()


def _parameters(plans: Sequence[Any]) -> Iterator[dict[str, Any]]:
    for plan in plans:
        for node in fence.nodes(plan):
            if str(node.get("class", "")).endswith(".NamedParameter"):
                yield node


def _name(name: str) -> str:
    if not re.fullmatch(r"\w+", name):
        raise UsageError(f"There is no table {name}. SHOW TABLES lists them.")
    return f"`{name}`"


_DESCRIBED = ("column", "type", "meaning")
_DESCRIPTION = pa.schema([(name, pa.string()) for name in _DESCRIBED])


def _functions_like(pattern: str) -> SqlAnswer:
    names = fnmatch.filter(sorted(allowed.functions()), pattern.lower())
    return SqlAnswer(pa.table({"function": pa.array(names, pa.string())}))


def _described(frame: DataFrame) -> SqlAnswer:
    rows = [
        {
            "column": field.name,
            "type": field.dataType.simpleString(),
            "meaning": (field.metadata or {}).get("comment", ""),
        }
        for field in frame.schema.fields
    ]
    return SqlAnswer(pa.Table.from_pylist(rows, _DESCRIPTION))


def _with_unique_names(frame: DataFrame) -> DataFrame:
    """*frame* with the second column called `run` renamed to `run (2)`: a row has one of each."""
    seen: Counter[str] = Counter()
    names = []
    for name in frame.columns:
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return frame if len(seen) == len(names) else frame.toDF(*names)


def for_arrow(frame: DataFrame) -> DataFrame:
    """*frame* with what Arrow has no type for as text."""
    odd = [f.name for f in frame.schema.fields if not _has_arrow_type(f.dataType)]
    if not odd:
        return frame
    from pyspark.sql import functions as F

    texts = {name: F.col(f"`{name.replace('`', '``')}`").cast("string") for name in odd}
    return frame.withColumns(texts)


def _has_arrow_type(kind: DataType) -> bool:
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_type
    from pyspark.sql.types import VariantType, YearMonthIntervalType

    if isinstance(kind, VariantType | YearMonthIntervalType):
        return False
    try:
        to_arrow_type(kind)
    except (PySparkException, TypeError):
        return False
    return True
