"""The lake's tables as external tables of the session's catalog, which is kept in memory.

Tables of the catalog can be read as of a version or a time; views of data frames cannot.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from acktrail.contracts import TABLES, Table
from acktrail.contracts.runs import ALERTS, CHECK_RESULTS
from acktrail.lake import Lake
from acktrail.policy.renamed import RENAMED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BY_NAME = {table.name: table for table in TABLES}
STORED = "_as_stored"
"""Behind the name of a table whose rows may have former names of checks: the rows as they are."""
_NAMES_CHECKS = {table.name for table in (ALERTS, CHECK_RESULTS)}
NAMES = frozenset([*BY_NAME, *(name + STORED for name in _NAMES_CHECKS)])
"""What can be read."""

_registered: WeakKeyDictionary[SparkSession, dict[str, str]] = WeakKeyDictionary()
"""What each session has in its catalog, and where it is."""


def table_named(name: str) -> Table | None:
    """The table that *name* reads, with or without `_as_stored`."""
    return BY_NAME.get(name.removesuffix(STORED) if name in NAMES else name)


def register(session: SparkSession, lake: Lake, names: Iterable[str]) -> list[str]:
    """Make the tables *names* of *lake* known to the session, as far as they exist; those that do.

    A table that is known from another lake is replaced.
    """
    known = _registered.setdefault(session, {})
    made = []
    for name in sorted({name.removesuffix(STORED) for name in names} & BY_NAME.keys()):
        table = BY_NAME[name]
        path = lake.path(table)
        if "://" not in path:  # the catalog would look for it below its own directory
            path = str(Path(path).absolute())
        exists = lake.is_made(table)
        if known.get(name) != path or not exists:
            _forget(session, name)
            known.pop(name, None)
        if exists and name not in known:
            _declare(session, table, path)
            known[name] = path
        made += [name] if exists else []
    return made


def _declare(session: SparkSession, table: Table, path: str) -> None:
    quoted = path.replace("\\", "\\\\").replace("'", "\\'")
    stored = table.name + STORED if table.name in _NAMES_CHECKS else table.name
    session.sql(f"CREATE TABLE `{stored}` USING delta LOCATION '{quoted}'")
    if stored != table.name:
        session.sql(_view(session, table, stored))


def _view(session: SparkSession, table: Table, stored: str) -> str:
    """A view of *stored* with the current names of checks."""
    names = session.table(f"`{stored}`").columns
    renamed = ", ".join(f"'{former}', '{now}'" for former, now in RENAMED.items())
    shown = [
        f"coalesce(element_at(map({renamed}), `check`), `check`) AS `check`"
        if name == "check"
        else f"`{name}`"
        for name in names
    ]
    docs = {column.name: column.doc for column in table.columns}
    columns = ", ".join(f"`{n}` COMMENT '{_text(docs.get(n, ''))}'" for n in names)
    return (
        f"CREATE VIEW `{table.name}` ({columns}) COMMENT '{_text(table.doc)}' AS "
        f"SELECT {', '.join(shown)} FROM `{stored}`"
    )


def _text(doc: str) -> str:
    return doc.replace("\\", "\\\\").replace("'", "\\'")


def _forget(session: SparkSession, name: str) -> None:
    if name in _NAMES_CHECKS:
        session.sql(f"DROP VIEW IF EXISTS `{name}`")
        name += STORED
    session.sql(f"DROP TABLE IF EXISTS `{name}`")
