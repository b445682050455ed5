"""The prompt of `acktrail sql`: history, lines of several, completion, paging, ^C."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers.sql import SqlLexer

from acktrail.artifacts import cache_directory
from acktrail.errors import AcktrailError, UsageError
from acktrail.operate.sql_sources import QuestionSource
from acktrail.terminal.results import write_expanded, write_lines, write_results

if TYPE_CHECKING:
    from pipelines.adhoc.ask import SqlAnswer
    from pipelines.adhoc.saved import SavedQuestion

HELP = r"""A query ends with ; and may have several lines. Tab completes names. ^C stops a query.
  \d             the tables                    \timing        print how long each answer took
  \d TABLE       columns of a table            \x             each column on its own line
  \df [PATTERN]  functions                     \limit N       most rows shown; 0 for all
  \l             saved questions               \o FILE        write the next answer to FILE
  \r NAME [P=V]  run a saved question          \q or ^D       leave"""
_KEYWORDS: list[str] = str.split(
    "SELECT FROM WHERE GROUP BY ORDER LIMIT HAVING JOIN LEFT INNER FULL CROSS ON USING AS AND OR "
    "NOT IN EXISTS BETWEEN LIKE IS NULL CASE WHEN THEN ELSE END WITH RECURSIVE UNION ALL DISTINCT "
    "OVER PARTITION ROWS WINDOW LATERAL VIEW PIVOT UNPIVOT VALUES INTERVAL TIMESTAMP DATE VERSION "
    "OF EXPLAIN FORMATTED DESCRIBE EXTENDED HISTORY SHOW TABLES COLUMNS FUNCTIONS ASC DESC FILTER"
)
_COMMANDS = ("\\?", "\\d", "\\df", "\\l", "\\limit", "\\o", "\\q", "\\r", "\\timing", "\\x")
_WORD = re.compile(r"[\w\\?-]*$")


class Prompt:
    """Reads statements from a terminal and shows their answers, until its user leaves."""

    def __init__(
        self,
        source: QuestionSource,
        saved: Mapping[str, SavedQuestion],
        *,
        limit: int,
        timeout_s: float,
    ) -> None:
        self._source, self._saved = source, saved
        self._limit, self._timeout_s = limit, timeout_s
        self._timing = self._expanded = False
        self._file: str | None = None
        self._columns = source.columns()
        self._warming = threading.Thread(target=self._warm, daemon=True)

    def run(self) -> None:
        """Until \\q or ^D."""
        history = Path(os.environ.get("ACKTRAIL_SQL_HISTORY") or cache_directory() / "sql_history")
        history.parent.mkdir(parents=True, exist_ok=True)
        history.touch(mode=0o600)
        session: PromptSession[str] = PromptSession(
            "acktrail> ",
            history=FileHistory(str(history)),
            multiline=True,
            prompt_continuation="       -> ",
            completer=NameCompleter(self._columns, self._saved),
            complete_while_typing=False,
            lexer=PygmentsLexer(SqlLexer),
            key_bindings=_bindings(),
        )
        print(
            f"{len(self._columns)} tables. \\d lists them, \\? shows what can be typed here. "
            "Spark is starting; the first answer waits for it.",
            file=sys.stderr,
        )
        self._warming.start()
        while True:
            try:
                text = session.prompt().strip()
            except KeyboardInterrupt:
                continue
            except EOFError:
                break
            if text in ("\\q", "exit", "quit", "exit;", "quit;"):
                break
            if text:
                self._take(text)
        self._warming.join()

    def _warm(self) -> None:
        with contextlib.suppress(Exception):  # the first question meets it again, and reports it
            self._source.warm_up()

    def _take(self, text: str) -> None:
        began = time.monotonic()
        try:
            if self._warming.is_alive():
                self._warming.join()
            if text.startswith("\\"):
                self._command(text.rstrip(";"))
            else:
                self._answer(text)
        except KeyboardInterrupt:
            print("Stopped.", file=sys.stderr)
        except AcktrailError as error:
            print(error, file=sys.stderr)
        except Exception as error:
            if type(error).__module__.partition(".")[0] not in ("pyspark", "py4j", "grpc"):
                raise
            from pipelines import spark_errors

            print(f"Spark failed: {spark_errors.message(error)}", file=sys.stderr)
        if self._timing:
            print(f"{time.monotonic() - began:.2f} s", file=sys.stderr)

    def _answer(self, text: str, parameters: Mapping[str, object] | None = None) -> None:
        answer = self._source.ask(
            text, limit=self._limit, timeout_s=self._timeout_s, parameters=parameters
        )
        if self._file is not None:
            from acktrail.terminal.results import format_of

            file, self._file = self._file, None
            write_results(answer.rows, format_of(None, file), file)
            print(f"{_rows(answer)} written to {file}", file=sys.stderr)
            return
        page(self._shown(answer))
        more = ", the first; \\limit 0 shows all" if answer.more else ""
        if not answer.plain_text:
            print(f"({_rows(answer)}{more})", file=sys.stderr)

    def _shown(self, answer: SqlAnswer) -> str:
        out = io.StringIO()
        if answer.plain_text:
            write_lines(answer.rows, out)
        elif self._expanded:
            write_expanded(answer.rows, out)
        else:
            write_results(answer.rows, "text", stream=out)
        return out.getvalue()

    def _command(self, text: str) -> None:
        try:
            name, *words = shlex.split(text.replace("\\", "\\\\", 1))
        except ValueError as error:
            raise UsageError(f"{text}: {error}") from None
        match name, words:
            case "\\?", _:
                print(HELP)
            case "\\d", []:
                self._answer("SHOW TABLES")
            case "\\d", [table]:
                self._answer(f"DESCRIBE {table}")
            case "\\df", [*pattern]:
                self._answer(f"SHOW FUNCTIONS LIKE '{pattern[0] if pattern else '*'}'")
            case "\\l", []:
                page("".join(f"{n:<26} {q.question}\n" for n, q in self._saved.items()))
            case "\\r", [question, *given]:
                self._run_saved(question, given)
            case "\\timing", []:
                self._timing = not self._timing
                print(f"Timing is {'on' if self._timing else 'off'}.", file=sys.stderr)
            case "\\x", []:
                self._expanded = not self._expanded
                print(f"One line a column: {'on' if self._expanded else 'off'}.", file=sys.stderr)
            case "\\limit", [number] if number.isdigit():
                self._limit = int(number)
            case "\\o", [file]:
                self._file = file
            case _:
                raise UsageError(f"{text} is not a command here. \\? lists them.")

    def _run_saved(self, name: str, given: Iterable[str]) -> None:
        from pipelines.adhoc.saved import question_named

        question = question_named(name, self._saved)
        pairs = [each.partition("=") for each in given]
        values = question.values({key: value for key, _, value in pairs})
        self._answer(question.text, values)


class NameCompleter(Completer):
    """Completes commands, tables, columns of the tables that are named, functions, keywords."""

    def __init__(
        self, columns: Mapping[str, list[str]], saved: Mapping[str, SavedQuestion]
    ) -> None:
        from pipelines.adhoc import allowed

        self._columns, self._saved = columns, saved
        self._functions = sorted(allowed.functions())

    def get_completions(
        self,
        document: Document,
        complete_event: CompleteEvent,  # noqa: ARG002
    ) -> Iterable[Completion]:
        """What the word before the cursor may become."""
        before = document.text_before_cursor
        found = _WORD.search(before)
        word = found.group() if found else ""
        lower = word.lower()
        seen = set()
        for name, meta in self._candidates(document.text, before[: len(before) - len(word)]):
            if name not in seen and name.lower().startswith(lower):
                seen.add(name)
                shown = name.lower() if meta == "keyword" and word.islower() else name
                yield Completion(shown, start_position=-len(word), display_meta=meta)

    def _candidates(self, text: str, before: str) -> Iterable[tuple[str, str]]:
        last = before.split()[-1:] or [""]
        if not before.strip():
            yield from ((name, "command") for name in _COMMANDS)
        if last[0] == "\\r":
            yield from ((name, "saved question") for name in self._saved)
            return
        tables = [(name, "table") for name in self._columns]
        if last[0].lower() in ("from", "join", "describe", "desc", "extended", "table", "\\d"):
            yield from tables
            return
        words = set(re.findall(r"\w+", text.lower()))
        named = [name for name in self._columns if name in words]
        for table in named:
            yield from ((column, table) for column in self._columns[table])
        yield from tables
        if not named:
            for table, columns in self._columns.items():
                yield from ((column, table) for column in columns)
        yield from ((name, "function") for name in self._functions)
        yield from ((name, "keyword") for name in _KEYWORDS)


def page(text: str) -> None:
    """Write *text*; by $PAGER, else `less`, where it is longer than the terminal."""
    size = shutil.get_terminal_size()
    lines = text.count("\n")
    widest = max((len(line) for line in text.split("\n")), default=0)
    pager = os.environ.get("PAGER") or (shutil.which("less") or "")
    if not pager or (lines < size.lines and widest <= size.columns) or not sys.stdout.isatty():
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    environment = {**os.environ, "LESS": os.environ.get("LESS", "-FRSX")}
    subprocess.run(pager, shell=True, input=text.encode(), env=environment, check=False)


def _rows(answer: SqlAnswer) -> str:
    count = answer.rows.num_rows
    return f"{count} row" if count == 1 else f"{count} rows"


def _bindings() -> KeyBindings:
    """Enter ends what is whole: a command, or a statement with its semicolon."""
    bindings = KeyBindings()

    @Condition
    def whole() -> bool:
        from prompt_toolkit.application import get_app

        return is_whole(get_app().current_buffer.text)

    @bindings.add("enter", filter=whole)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    return bindings


def is_whole(text: str) -> bool:
    """Whether Enter sends *text*: else it begins another line."""
    stripped = text.strip()
    if not stripped or stripped.startswith("\\") or stripped in ("exit", "quit"):
        return True
    return stripped.endswith(";")
