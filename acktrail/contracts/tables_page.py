"""`docs/tables.md`, rendered from the contracts by `make docs`."""

from __future__ import annotations

from acktrail.contracts import TABLES, Table

_HEAD = """\
# The tables of the lake

Made from `acktrail/contracts` by `make docs`; a test fails when this page is stale. Any Delta
reader can read them. Times are UTC with microseconds; units are in the names.
"""


def page() -> str:
    """The whole page."""
    parts = [_HEAD, _index(), *(_section(table) for table in TABLES)]
    return "\n".join(parts)


def _index() -> str:
    rows = [f"| {t.layer} | [`{t.name}`](#{t.name}) | {t.doc} |" for t in TABLES]
    return "\n".join(["| layer | table | one row is |", "| --- | --- | --- |", *rows, ""])


def _section(table: Table) -> str:
    lines = [
        f"## {table.name}",
        "",
        table.doc,
        "",
        f"Layer {table.layer}; grain {', '.join(f'`{g}`' for g in table.grain)}; "
        f"partition {', '.join(f'`{p}`' for p in table.partition) or 'none'}; "
        f"written by {table.writer}; kept {table.retention_days} days.",
        "",
        "| column | kind | required | meaning |",
        "| --- | --- | --- | --- |",
    ]
    for c in table.columns:
        values = f" One of {', '.join(f'`{v.value}`' for v in c.values)}." if c.values else ""
        required = "yes" if c.required else ""
        lines.append(f"| `{c.name}` | {c.kind} | {required} | {c.doc}{values} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    print(page(), end="")
