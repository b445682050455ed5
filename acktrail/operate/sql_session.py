"""Questions answered by a Spark session of this process, which stays warm."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from acktrail.contracts.runs import RUNS
from acktrail.lake import Lake
from acktrail.settings import Loaded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pipelines.adhoc.ask import SqlAnswer


class SessionSource:
    """Makes the session when it is first needed; makes another where a question blocks it."""

    def __init__(self, loaded: Loaded, lake: Lake, master: str | None) -> None:
        from pipelines.spark_conf import refuse_private_lake

        given = loaded.settings.spark
        self._spark = given.model_copy(update={"master": master}) if master else given
        self._lake = lake
        self._session: SparkSession | None = None
        self._making = threading.Lock()
        refuse_private_lake(self._spark, lake.store)

    def ask(
        self,
        text: str,
        *,
        limit: int,
        timeout_s: float,
        parameters: Mapping[str, object] | None = None,
    ) -> SqlAnswer:
        """The answer; UsageError with the reason where there is none."""
        from pipelines.adhoc.ask import Asker, TooSlow

        asker = Asker(self._made(), self._lake)
        try:
            return asker.ask(text, limit=limit, timeout_s=timeout_s, parameters=parameters)
        except TooSlow as error:
            if error.stuck:
                self._kill()
            raise

    def columns(self) -> dict[str, list[str]]:
        """The columns of each table of the lake."""
        from pipelines.adhoc import table_catalog

        made = {n: t for n, t in table_catalog.BY_NAME.items() if self._lake.is_made(t)}
        return {name: list(table.names) for name, table in made.items()}

    def warm_up(self) -> None:
        """Start the JVM, declare the tables, and read one."""
        from pipelines.adhoc import table_catalog
        from pipelines.adhoc.ask import Asker

        session = self._made()
        asker = Asker(session, self._lake)
        made = table_catalog.register(session, self._lake, [RUNS.name]) or self.columns()
        for name in list(made)[:1]:
            asker.ask(f"SELECT count(*) FROM {name} GROUP BY ALL", limit=1)
        table_catalog.register(session, self._lake, table_catalog.NAMES)

    def __enter__(self) -> SessionSource:
        return self

    def __exit__(self, *_error: object) -> None:
        from pipelines import session

        with self._making:
            if self._session is not None:
                session.stop(self._session)
                self._session = None

    def _made(self) -> SparkSession:
        from pipelines import session, spark_log

        with self._making:
            if self._session is None:
                self._session = session.build(self._spark, self._lake.store)
            spark_log.keep_short(spark_log.jvm_log())
            return self._session

    def _kill(self) -> None:
        """End the JVM at once: what a question does there does not end."""
        from pipelines import session

        with self._making:
            if self._session is None:
                return
            process: Any = getattr(self._session.sparkContext._gateway, "proc", None)
            if process is not None:
                process.kill()
                process.wait(timeout=60)
            session.forget_gateway()
            self._session = None
