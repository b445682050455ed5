"""What is wrong with settings, a line each: the key, the value unless secret, what to write."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args, get_origin

from pydantic import BaseModel, SecretStr, ValidationError

from acktrail.nearest import did_you_mean, nearest, suggestion

_SAID = {
    "missing": "it is required",
    "bool_parsing": "write true or false",
    "bool_type": "write true or false",
    "float_parsing": "write a number",
    "float_type": "write a number",
    "int_parsing": "write a whole number",
    "int_type": "write a whole number",
    "int_from_float": "write a whole number",
    "finite_number": "write a number",
    "string_type": "write a text in quotes",
    "tuple_type": "write a list: [...]",
    "dict_type": "write a section or a table: { key = value }",
    "model_type": "write a section or a table: { key = value }",
    "model_attributes_type": "write a section or a table: { key = value }",
    "string_too_short": "it is empty",
    "too_short": "it is empty",
}
_PASSED_ON = ("client", "secrets", "secret_files", "storage_options", "storage_option_files")
"""Sections whose values may be secrets, wherever they were meant to stand."""


def problem_lines(error: ValidationError, model: type[BaseModel]) -> list[str]:
    """One line for each problem of *error*, which *model* has raised."""
    lines = []
    problems = error.errors(include_url=False)
    for problem in problems:
        loc = problem["loc"]
        deeper = any(p["loc"][: len(loc)] == loc and len(p["loc"]) > len(loc) for p in problems)
        if problem["type"] == "too_short" and deeper:
            continue  # the list is called empty because what it holds is wrong
        path, owner, secret = _walk(model, loc)
        kind = problem["type"]
        if kind == "extra_forbidden":
            known = _keys(owner) if owner else ()
            lines.append(
                f"{path}: there is no such setting.{_near(path, str(loc[-1]), known, model)}"
            )
            continue
        said = _SAID.get(kind) or problem["msg"].removeprefix("Value error, ")
        if kind in ("union_tag_invalid", "union_tag_not_found"):
            path, said = f"{path}.kind", _wrong_kind(problem)
        if kind == "string_pattern_mismatch":
            said = f"it must match {problem['ctx']['pattern']}"
        shown = "" if secret else _shown(problem["input"])
        if kind in ("missing", "union_tag_invalid", "union_tag_not_found"):
            shown = ""
        lines.append(f"{path}{shown}: {said}")
    return lines


def _wrong_kind(problem: Any) -> str:
    known = [tag.strip("'") for tag in str(problem["ctx"].get("expected_tags", "")).split(", ")]
    tag = problem["ctx"].get("tag")
    if tag is None:
        return "it is required: what kind of source it is"
    near = did_you_mean(str(tag), known) or f" Kinds: {', '.join(known)}."
    return f"there is no kind {tag!r}.{near}"


def _near(path: str, key: str, known: Sequence[str], model: type[BaseModel]) -> str:
    """Near names in the same section; for a key at the top, also the keys of all sections."""
    if "." in path:
        return did_you_mean(key, known)
    dotted = list(_dotted(model))
    meant = [name for name in dotted if name.replace(".", "_") == key]
    return suggestion(meant or nearest(key, known) or nearest(key, dotted))


def _dotted(model: type[BaseModel]) -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield name
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from (f"{name}.{key}" for key in _keys(inner))


def _keys(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def _shown(value: Any) -> str:
    """` = 'value'` for plain values without an @, which may stand before a host's name."""
    if not isinstance(value, str | int | float) or "@" in str(value):
        return ""
    return f" = {str(value)[:80]!r}" if isinstance(value, str) else f" = {str(value).lower()}"


def _walk(
    model: type[BaseModel], loc: Sequence[int | str]
) -> tuple[str, type[BaseModel] | None, bool]:
    """The dotted path of *loc*, the model its last key belongs to, and whether it is a secret."""
    path: list[str] = []
    owner: type[BaseModel] | None = model
    here: Any = model
    secret = False
    for part in loc:
        tagged = _tagged(here, part)
        if tagged is not None:
            here = owner = tagged  # the kind of a source, which is not part of its address
            continue
        if part == "[key]":  # the key of a table is wrong, not its value
            path[-1] = f'"{path[-1]}"'
            secret = True
            continue
        path.append(str(part))
        owner = here if isinstance(here, type) and issubclass(here, BaseModel) else None
        secret = secret or part in _PASSED_ON
        here = _inside(here, part)
        secret = secret or _mentions(here, SecretStr)
    return ".".join(path) or "the settings", owner, secret


def _inside(kind: Any, part: int | str) -> Any:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        for name, field in kind.model_fields.items():
            if part in (name, field.alias):
                return field.annotation
        return None
    origin = get_origin(kind)
    if origin in (tuple, list):
        return get_args(kind)[0]
    if origin in (dict, Mapping):
        return get_args(kind)[1]
    return None


def _plain(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is typing.Annotated else kind


def _tagged(kind: Any, part: int | str) -> type[BaseModel] | None:
    """The member of a union of models whose `kind` is *part*."""
    union = _plain(kind)
    if get_origin(union) not in (typing.Union, types.UnionType):
        return None
    for member in get_args(union):
        fields = getattr(member, "model_fields", {})
        if "kind" in fields and part in get_args(fields["kind"].annotation):
            return typing.cast("type[BaseModel]", member)
    return None


def _mentions(kind: Any, wanted: type) -> bool:
    return kind is wanted or any(_mentions(inner, wanted) for inner in get_args(kind))
