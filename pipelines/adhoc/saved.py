"""Questions kept in files: `name.sql`, with the question as the first line.

    -- What was lost, by topic and cause?
    -- :topic  only this topic; all if not given = %
    SELECT … WHERE topic LIKE :topic

Lines of the head that begin with `-- :name` declare parameters, with what they mean and, behind
`=`, the value where none is given. A parameter without one must be given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from acktrail.errors import UsageError
from acktrail.nearest import did_you_mean

SHIPPED = Path(__file__).parents[1] / "queries"
_PARAMETER = re.compile(r"-- :(?P<name>\w+)\s+(?P<meaning>.*?)(?:\s+=\s?(?P<default>.*))?\s*")


@dataclass(frozen=True)
class Parameter:
    """What a question can be given."""

    name: str
    meaning: str
    default: str | None


@dataclass(frozen=True)
class SavedQuestion:
    """One file."""

    name: str
    question: str
    parameters: tuple[Parameter, ...]
    text: str
    path: Path

    def values(self, given: Mapping[str, str]) -> dict[str, str]:
        """A value for each parameter; UsageError for unknown ones, and for missing ones."""
        known = [p.name for p in self.parameters]
        for name in given:
            if name not in known:
                listed = f"It has: {', '.join(known)}." if known else "It has none."
                near = did_you_mean(name, known)
                raise UsageError(f"{self.name} has no parameter {name}.{near or ' ' + listed}")
        values = {p.name: given.get(p.name, p.default) for p in self.parameters}
        missing = [name for name, value in values.items() if value is None]
        if missing:
            raise UsageError(f"{self.name} needs a value: --param {missing[0]}=…")
        return {name: value for name, value in values.items() if value is not None}


def questions(directories: Sequence[Path] = ()) -> dict[str, SavedQuestion]:
    """All saved questions by name: those that are shipped, then those of *directories*.

    A question of a later directory replaces one of the same name.
    """
    found = {}
    for directory in (SHIPPED, *directories):
        if not directory.is_dir():
            raise UsageError(f"{directory} is not a directory: no saved questions are there.")
        for path in sorted(directory.glob("*.sql")):
            found[path.stem] = _read(path)
    return dict(sorted(found.items()))


def question_named(name: str, known: Mapping[str, SavedQuestion]) -> SavedQuestion:
    """The question called *name*; UsageError with similar names where there is none."""
    if name not in known:
        near = did_you_mean(name, known)
        raise UsageError(
            f"There is no saved question {name}.{near} `acktrail sql --list` lists them."
        )
    return known[name]


def _read(path: Path) -> SavedQuestion:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}.") from error
    first, _, rest = text.partition("\n")
    if not first.startswith("-- ") or not first[3:].strip():
        raise UsageError(f"{path}: the first line must be the question: -- What …?")
    parameters = []
    for line in rest.split("\n"):
        if not line.startswith("--"):
            break
        declared = _PARAMETER.fullmatch(line)
        if declared:
            parameters.append(Parameter(*declared.group("name", "meaning", "default")))
    return SavedQuestion(path.stem, first[3:].strip(), tuple(parameters), text, path)
