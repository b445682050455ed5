"""`docs/tables.md`, rendered from the contracts by `make docs`."""

from __future__ import annotations

from acktrail.contracts import TABLES, Column, Table

_HEAD = """\
# The tables of the lake

Made from `acktrail/contracts` by `make docs`; a test fails when this page is stale. Any Delta
reader can read them. Times are UTC with microseconds; units are in the names. `structs` is a list
of structs; a field of each struct is written `column[].field`.
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
        f"kept {table.retention_days} days.",
        "",
        "| column | kind | required | meaning |",
        "| --- | --- | --- | --- |",
    ]
    for c in table.columns:
        lines.append(_line(c.name, c))
        lines += [_line(f"{c.name}[].{field.name}", field) for field in c.fields]
    return "\n".join([*lines, ""])


def _line(name: str, column: Column) -> str:
    listed = ", ".join(f"`{v.value}`" for v in column.values or ())
    values = f" One of {listed}." if listed else ""
    required = "yes" if column.required else ""
    return f"| `{name}` | {column.kind} | {required} | {column.doc}{values} |"


if __name__ == "__main__":
    print(page(), end="")
