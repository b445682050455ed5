"""Damage a table at random: it recovers, or refuses naming the file and the remedy."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

from acktrail.contracts.arrow import columns
from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.errors import LakeDamaged
from acktrail.lake import Lake, Position

SOAK = bool(os.environ.get("ACKTRAIL_SOAK"))
DAMAGES = 500 if SOAK else 60
COMMITS, ROWS = 9, 4


def batch(number: int):
    """The rows of one commit: those of a source that stands at *number*."""
    same = {
        **{"cluster": "c", "source": "s", "file_id": "f", "truncated": False},
        **{"read_at": 1_800_000_000_000_000, "day": "2026-01-31"},
    }
    numbers = [number * ROWS + n for n in range(ROWS)]
    return columns(
        LOG_RECORDS, ROWS, same, {"position": numbers, "text": [str(n) for n in numbers]}
    )


def advance(lake: Lake) -> None:
    """What an agent does: ask the lake where it was, read on from there, to the end."""
    at = lake.position(LOG_RECORDS, "app")
    for number in range(at or 0, COMMITS + 2):
        lake.append(LOG_RECORDS, batch(number), [Position("app", at, number + 1)], note="{}")
        at = number + 1


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("sound")
    lake, at = Lake(folder / "lake"), None
    for number in range(COMMITS):
        lake.append(LOG_RECORDS, batch(number), [Position("app", at, number + 1)], note="{}")
        at = number + 1
        if number == 4:
            lake.open(LOG_RECORDS).create_checkpoint()
    return folder / "lake"


def _truncate(chance: random.Random, file: Path, _all: list[Path]) -> None:
    os.truncate(file, chance.randrange(file.stat().st_size))


def _truncate_at_line(chance: random.Random, file: Path, _all: list[Path]) -> None:
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[: chance.randrange(len(lines))]))


def _remove(_chance: random.Random, file: Path, _all: list[Path]) -> None:
    file.unlink()


def _overwrite(chance: random.Random, file: Path, _all: list[Path]) -> None:
    content = bytearray(file.read_bytes())
    at = chance.randrange(len(content))
    content[at : at + 16] = chance.randbytes(16)
    file.write_bytes(bytes(content))


def _replace_by_another(chance: random.Random, file: Path, others: list[Path]) -> None:
    alike = [other for other in others if other.suffix == file.suffix and other != file]
    if alike:
        file.write_bytes(chance.choice(alike).read_bytes())
    else:
        file.unlink()


DAMAGE_TO_LOG = (_truncate, _truncate_at_line, _remove, _overwrite, _replace_by_another)
DAMAGE_TO_DATA = (_truncate, _remove)


@pytest.mark.parametrize("seed", range(DAMAGES))
def test_damage_is_survived_or_named(sound, tmp_path, seed):
    chance = random.Random(seed)
    folder = tmp_path / "lake"
    shutil.copytree(sound, folder)
    log = sorted((folder / "bronze/log_records/_delta_log").iterdir())
    data = sorted((folder / "bronze/log_records").rglob("part-*.parquet"))
    in_log = chance.random() < 0.75
    files = [file for file in (log if in_log else data) if file.is_file()]
    file = chance.choice(files)
    damage = chance.choice(DAMAGE_TO_LOG if in_log else DAMAGE_TO_DATA)
    damage(chance, file, files)
    try:
        lake = Lake(folder)
        advance(lake)
        found = Lake(folder).read(LOG_RECORDS).column("text").to_pylist()
    except LakeDamaged as error:
        said = str(error)
        assert str(folder) in said, "the file is named"
        assert "Restore" in said or "Move" in said, "the remedy is named"
        return
    wanted = sorted(str(n) for n in range((COMMITS + 2) * ROWS))
    assert sorted(found) == wanted, f"{damage.__name__} of {file.name} was not noticed"


def test_the_remedy_for_the_newest_entry_works(sound, tmp_path):
    folder = tmp_path / "lake"
    shutil.copytree(sound, folder)
    newest = max((folder / "bronze/log_records/_delta_log").glob("*.json"))
    _truncate_at_line(random.Random(1), newest, [])
    with pytest.raises(LakeDamaged, match="Move this file away"):
        advance(Lake(folder))
    newest.unlink()
    advance(Lake(folder))
    found = Lake(folder).read(LOG_RECORDS).column("text").to_pylist()
    assert sorted(found) == sorted(str(n) for n in range((COMMITS + 2) * ROWS))
