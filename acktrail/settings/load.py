"""Build the settings: --set weighs most, then ACKTRAIL_* variables, then the file."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from acktrail.errors import ConfigError
from acktrail.settings.kafka_client import client_problems
from acktrail.settings.model import Settings
from acktrail.settings.problems import problem_lines

PREFIX = "ACKTRAIL_"
FILE_VARIABLE = "ACKTRAIL_CONFIG"
DEFAULT_FILE = "acktrail.toml"
_NOT_SETTINGS = {
    FILE_VARIABLE,
    "ACKTRAIL_CACHE",
    "ACKTRAIL_SQL_HISTORY",
    "ACKTRAIL_STACK_TRACE",
    # Read by the DAGs, beside this command.
    "ACKTRAIL_COMMAND",
    "ACKTRAIL_MASTER",
    "ACKTRAIL_AGENT_ONCE",
    "ACKTRAIL_DATA_DOCS",
    # Read by set-up and by tests.
    "ACKTRAIL_MAKE_ARCHIVE",
    "ACKTRAIL_CRASH_AT",
    "ACKTRAIL_SOAK",
    # Read by the lab.
    "ACKTRAIL_LAB_DIR",
    "ACKTRAIL_LAB_CLIENT_LEVEL",
}


@dataclass(frozen=True)
class Loaded:
    """The settings, and where each place was looked for: a missing one can say so."""

    settings: Settings
    file: Path
    file_found: bool
    given: Mapping[str, Any]
    environment: Mapping[str, str]

    def require(self, key: str) -> Any:
        """The value at dotted *key*, or ConfigError listing every place that was tried."""
        value: Any = self.settings
        for part in key.split("."):
            value = getattr(value, part)
        if value is None:
            raise ConfigError(self._places(key))
        return value

    def _places(self, key: str) -> str:
        variable = PREFIX + key.upper().replace(".", "__")
        section, _, leaf = key.rpartition(".")
        if not self.file_found:
            in_file = "not found"
        elif section:
            in_file = f"read; it has no {leaf} under [{section}]"
        else:
            in_file = f"read; it has no {leaf}"
        return (
            f"`{key}` is not set. Looked in:\n"
            f"  1. --set {key}=...   not given\n"
            f"  2. {variable}   not set\n"
            f"  3. {self.file}   {in_file}"
        )


def load(
    file: str | Path | None = None,
    given: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> Loaded:
    """Settings from *given* (`key=value`), the *environment* and *file*, in that order."""
    env = dict(os.environ if environment is None else environment)
    named = file or env.get(FILE_VARIABLE)
    path = Path(named) if named else Path(DEFAULT_FILE)
    if named and not path.is_file():
        raise ConfigError(f"The settings file {path} does not exist. Name another with --config.")
    merged = _read_file(path) if path.is_file() else {}
    for variable, value in sorted(env.items()):
        if variable.startswith(PREFIX) and variable not in _NOT_SETTINGS:
            _put(merged, variable[len(PREFIX) :].lower().split("__"), value, variable)
    chosen = dict(_pair(text) for text in given)
    for key, value in chosen.items():
        _put(merged, key.split("."), value, f"--set {key}")
    where = f"The settings ({path}, ACKTRAIL_*, --set) are wrong:"
    return Loaded(checked(merged, where), path, path.is_file(), chosen, env)


def checked(tree: Mapping[str, Any], heading: str) -> Settings:
    """The settings that *tree* holds; ConfigError with *heading* and a line for each problem."""
    try:
        settings = Settings.model_validate(tree)
    except ValidationError as error:
        raise _wrong(heading, problem_lines(error, Settings)) from None
    refused = list(client_problems(settings.kafka))
    if refused:
        raise _wrong(heading, refused)
    return settings


def _read_file(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise ConfigError(f"--set takes key=value, not {text!r}. Example: --set lake.uri=./lake")
    return key, value


def _put(tree: dict[str, Any], keys: Sequence[str], value: str, origin: str) -> None:
    for key in keys[:-1]:
        inner = tree.setdefault(key, {})
        if not isinstance(inner, dict):
            raise ConfigError(f"{origin}: {key} is a value, not a section.")
        tree = inner
    tree[keys[-1]] = value


def _wrong(heading: str, lines: Sequence[str]) -> ConfigError:
    return ConfigError("\n".join([heading, *(f"  {line}" for line in lines)]))
