"""Questions to a Spark Connect server. It has no fence: whoever may ask it may run code there."""

from __future__ import annotations

import contextlib
import logging
import re
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from acktrail.errors import SourceUnavailable, UsageError
from pipelines import spark_errors
from pipelines.adhoc import places
from pipelines.adhoc.ask import SqlAnswer, TooSlow, for_arrow

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

Result = TypeVar("Result")


class RemoteAsker:
    """A session of a server that `acktrail serve` has started."""

    def __init__(self, url: str) -> None:
        import grpc  # noqa: F401 (says which package is missing; PySpark does not)
        from pyspark.sql.connect.session import SparkSession

        spark_errors.silence()
        logging.getLogger("pyspark.sql.connect").setLevel(logging.CRITICAL)
        builder = SparkSession.builder.remote(url)
        self._session: SparkSession = _reached(builder.getOrCreate)

    def ask(
        self,
        text: str,
        *,
        limit: int = 0,
        timeout_s: float = 0,
        parameters: Mapping[str, object] | None = None,
    ) -> SqlAnswer:
        """The answer to *text*; UsageError where it cannot be answered or takes too long."""
        from pyspark.errors import PySparkException

        statement = with_values(text.rstrip().rstrip(";"), parameters or {})
        stopped = threading.Event()

        def stop() -> None:
            stopped.set()
            with contextlib.suppress(Exception):
                self._session.interruptAll()

        timer = threading.Timer(timeout_s, stop) if timeout_s else None
        if timer:
            timer.daemon = True
            timer.start()
        try:
            return _reached(lambda: self._answer(statement, limit))
        except KeyboardInterrupt:
            stop()
            raise
        except PySparkException as error:
            if stopped.is_set():
                raise TooSlow(
                    f"The question took longer than {timeout_s:g} s and was stopped.", stuck=False
                ) from error
            said = spark_errors.message(error)
            raise UsageError(places.with_caret(said, statement)) from error
        finally:
            if timer:
                timer.cancel()

    def table_names(self) -> set[str]:
        """The tables that the server has."""
        rows = self.ask("SHOW TABLES").rows.to_pylist()
        return {str(row["tableName"]) for row in rows}

    def close(self) -> None:
        """End the session."""
        _reached(self._session.stop)

    def _answer(self, statement: str, limit: int) -> SqlAnswer:
        frame = self._session.sql(statement)
        found = for_arrow(frame.limit(limit + 1) if limit else frame).toArrow()
        more = bool(limit) and found.num_rows > limit
        return SqlAnswer(found.slice(0, limit) if more else found, more)


_TEXTS = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|/\*.*?\*/|::|:(\w+)"""


def with_values(text: str, parameters: Mapping[str, object]) -> str:
    """*text* with the value of each parameter as a literal, where it is no part of another text.

    Spark Connect does not bind parameters where Delta's parser comes first.
    """

    def value(found: re.Match[str]) -> str:
        if found[1] is None or found[1] not in parameters:
            return found[0]
        quoted = str(parameters[found[1]]).replace("\\", "\\\\").replace("'", "\\'")
        return f"'{quoted}'"

    return re.sub(_TEXTS, value, text, flags=re.DOTALL)


def _reached(call: Callable[[], Result]) -> Result:
    """What *call* returns; SourceUnavailable or UsageError where the server did not take it."""
    import grpc
    from pyspark.errors.exceptions.connect import SparkConnectGrpcException

    try:
        return call()
    except (grpc.RpcError, SparkConnectGrpcException) as error:
        said = str(error)
        if "UNAUTHENTICATED" in said or "authentication" in said.lower():
            raise UsageError(
                "The server refused the token. Take the address that `acktrail serve` has printed."
            ) from error
        if "UNAVAILABLE" in said or "failed to connect" in said.lower():
            raise SourceUnavailable(
                "No Spark Connect server answers there. Is it running?"
            ) from error
        raise
