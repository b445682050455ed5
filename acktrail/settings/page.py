"""`docs/settings.md`, rendered from the settings model by `make docs`."""

from __future__ import annotations

import ast
import inspect
import json
import sys
from functools import cache
from typing import Any, get_args

from pydantic import BaseModel

from acktrail.settings.load import PREFIX
from acktrail.settings.model import AliasRule, Settings
from acktrail.settings.sources import SourceSettings

_HEAD = f"""\
# Settings

Made from `acktrail/settings` by `make docs`; a test fails when this page is stale.

The settings are in one TOML file: the one that `--config` or `{PREFIX}CONFIG` names, else
`acktrail.toml` in the working directory. Every key can also come from a variable or from the
command line; the later in this list weighs more:

| place | example |
| --- | --- |
| the file | `[lake]`, then `uri = "/srv/lake"` |
| a variable, with two underscores between section and key | `{PREFIX}LAKE__URI=/srv/lake` |
| `--set` | `--set lake.uri=/srv/lake` |

`acktrail init` writes a commented file. `acktrail doctor` tries everything in it. A key that does
not exist and a value that cannot be right are errors that say what to write instead. Secrets are
never printed.
"""
_COMMON = ("name", "cluster")
"""Keys that every source has, described once."""
_LONG = 60


def page() -> str:
    """The whole page."""
    parts = [_HEAD, _section("Top level", Settings, _top_level())]
    parts += [_section(f"`[{name}]`", model) for name, model in _sections().items()]
    parts.append(_sources())
    parts.append(_section("`[[aliases]]`", AliasRule))
    return "\n".join(parts)


def undocumented() -> list[str]:
    """The keys whose meaning is not written down."""
    models: list[type[BaseModel]] = [AliasRule, *source_kinds(), *_sections().values()]
    listed: list[tuple[type[BaseModel], str]] = [(Settings, key) for key in _top_level()]
    listed += [(model, key) for model in models for key in model.model_fields if key != "kind"]
    return [f"{model.__name__}.{key}" for model, key in listed if key not in _meanings(model)]


def _sections() -> dict[str, type[BaseModel]]:
    """The sections of the file with a model of their own."""
    kinds = {name: field.annotation for name, field in Settings.model_fields.items()}
    return {n: k for n, k in kinds.items() if isinstance(k, type) and issubclass(k, BaseModel)}


def source_kinds() -> tuple[type[BaseModel], ...]:
    """The model of each kind of source."""
    union, *_ = get_args(SourceSettings)
    return get_args(union)


def _top_level() -> list[str]:
    """Keys of the settings that are not a section with a table of its own."""
    sections = {"sources", "aliases", *_sections()}
    return [name for name in Settings.model_fields if name not in sections]


def _sources() -> str:
    kinds = source_kinds()
    rows = [f"| [`{kind_of(k)}`](#{kind_of(k)}) | {_first_line(k)} |" for k in kinds]
    lines = [
        "## `[[sources]]`",
        "",
        "One table for each source; `kind` says which keys it has ([more](agents.md)).",
        "",
        *("| kind | reads |", "| --- | --- |", *rows, ""),
        "Every source has:",
        "",
        *_table(kinds[0], _COMMON),
        "",
    ]
    for model in kinds:
        own = [key for key in model.model_fields if key not in (*_COMMON, "kind")]
        lines += [f"### {kind_of(model)}", "", _first_line(model), "", *_table(model, own), ""]
    return "\n".join(lines)


def kind_of(source: type[BaseModel]) -> str:
    """The `kind` of a source's model."""
    return str(get_args(source.model_fields["kind"].annotation)[0])


def _section(title: str, model: type[BaseModel], keys: list[str] | None = None) -> str:
    listed = list(model.model_fields) if keys is None else keys
    about = [] if model is Settings else [_text(inspect.getdoc(model) or ""), ""]
    return "\n".join([f"## {title}", "", *about, *_table(model, listed), ""])


def _first_line(model: type[BaseModel]) -> str:
    return _text(inspect.getdoc(model) or "").split("\n\n")[0]


def _table(model: type[BaseModel], keys: Any) -> list[str]:
    schema = model.model_json_schema()
    required, meanings = schema.get("required", ()), _meanings(model)
    rows = []
    for key in keys:
        found = schema["properties"][key]
        default = "required" if key in required else _default(found)
        rows.append(f"| `{key}` | {_kind(found)} | {default} | {meanings.get(key, '')} |")
    return ["| key | type | default | meaning |", "| --- | --- | --- | --- |", *rows]


def _kind(schema: dict[str, Any]) -> str:
    """The type of a key, as a person would say it."""
    if "anyOf" in schema:
        kinds = [_kind(one) for one in schema["anyOf"] if one.get("type") != "null"]
        return " or ".join(dict.fromkeys(kinds))
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("format") == "password":
        return "secret"
    simple = {"string": "text", "number": "number", "integer": "whole number", "boolean": "yes/no"}
    if schema["type"] in simple:
        return simple[schema["type"]]
    if schema["type"] == "array":
        return "list"
    inner = schema.get("additionalProperties", {})
    return "table of secrets" if inner.get("format") == "password" else "table"


def _default(schema: dict[str, Any]) -> str:
    value = schema.get("default")
    if value is None or value in ([], {}, ""):
        return ""
    said = json.dumps(int(value) if isinstance(value, float) and value.is_integer() else value)
    return f"`{said}`" if len(said) <= _LONG else "all"


@cache
def _meanings(model: type[BaseModel]) -> dict[str, str]:
    """The text under each field, of the class that says it last."""
    found: dict[str, str] = {}
    for one in reversed(model.__mro__):
        if issubclass(one, BaseModel) and one is not BaseModel:
            found |= _texts_under_fields(one)
    return found


def _texts_under_fields(model: type[BaseModel]) -> dict[str, str]:
    (tree,) = [
        node
        for node in ast.walk(_module(model.__module__))
        if isinstance(node, ast.ClassDef) and node.name == model.__name__
    ]
    found = {}
    for field, below in zip(tree.body, tree.body[1:], strict=False):
        said = below.value if isinstance(below, ast.Expr) else None
        if isinstance(field, ast.AnnAssign) and isinstance(said, ast.Constant):
            found[ast.unparse(field.target)] = _text(inspect.cleandoc(str(said.value)))
    return found


@cache
def _module(name: str) -> ast.Module:
    return ast.parse(inspect.getsource(sys.modules[name]))


def _text(doc: str) -> str:
    """One paragraph, with code where the docstring has emphasis."""
    said = " ".join(doc.split()).replace("|", "\\|")
    words = said.split("*")
    odd = [f"`{w}`" if i % 2 else w for i, w in enumerate(words)]
    return "".join(odd) if len(words) % 2 else said


if __name__ == "__main__":
    print(page(), end="")
