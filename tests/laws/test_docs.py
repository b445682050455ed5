"""The pages are true: links resolve, commands and settings exist, the demo's output is as shown."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
import pytest
from click.testing import CliRunner, Result
from pydantic import ValidationError

from acktrail.cli import main
from acktrail.lake import Lake
from acktrail.settings.model import Settings
from pipelines import runner
from pipelines.registry import JOBS
from pipelines.schedule import run_all
from tests.laws.incident import AS_OF

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    page
    for pattern in ("*.md", "docs/**/*.md", "clients/*/*.md", "deploy/**/*.md")
    for page in ROOT.glob(pattern)
    if page.name != "CHANGELOG.md"
)
"""The changelog names what once was."""


class Block(NamedTuple):
    """A block of code in a page."""

    page: str
    line: int
    language: str
    text: str


def blocks() -> Iterator[Block]:
    """Every block of code of every page."""
    for page in PAGES:
        text = page.read_text()
        for found in re.finditer(r"^( *)```(\w*)\n(.*?)^\1```", text, re.MULTILINE | re.DOTALL):
            line = text[: found.start()].count("\n") + 1
            yield Block(str(page.relative_to(ROOT)), line, found[2], found[3])


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    found = set()
    without_code = re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for title in re.findall(r"^#+ (.*)$", without_code, re.MULTILINE):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title).replace("`", "")
        found.add(re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-"))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        if not there.exists() or (
            anchor and there.suffix == ".md" and anchor not in anchors(there)
        ):
            broken.append(target)
    assert not broken


def commands() -> Iterator[tuple[str, list[str]]]:
    """Where a command stands, and its words without `acktrail`."""
    for block in blocks():
        if block.language not in ("", "sh", "console", "bash"):
            continue
        lines = block.text.replace("\\\n", " ").splitlines()
        for number, line in enumerate(lines):
            if re.match(r"\s*(\$ )?(\S*/)?acktrail [a-z]", line):
                words = _words(lines[number:])
                yield f"{block.page}:{block.line}", words[words.index("acktrail") + 1 :]


def _words(lines: list[str]) -> list[str]:
    """The words of the command that begins in the first line; quoted text may go on below."""
    for end in range(1, len(lines) + 1):
        lexer = shlex.shlex("\n".join(lines[:end]), posix=True, punctuation_chars="|;<>")
        lexer.whitespace_split = True
        try:
            words = list(lexer)
        except ValueError:
            continue
        cut = next((n for n, w in enumerate(words) if w in ("|", ";", "<", ">", "&&")), len(words))
        return [re.sub(r".*/acktrail$", "acktrail", word) for word in words[:cut]]
    raise AssertionError(f"a quotation is not closed: {lines[0]}")


def test_every_command_and_option_exists() -> None:
    seen, wrong = 0, []
    for place, words in commands():
        command: click.Command = main
        rest = list(words)
        while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
            name = rest.pop(0)
            inner = command.get_command(click.Context(command), name)
            if inner is None:
                wrong.append(f"{place}: there is no command {' '.join(words)}")
                break
            command = inner
        else:
            known = {o for p in command.params for o in (*p.opts, *p.secondary_opts)} | {"--help"}
            given = {word.partition("=")[0] for word in rest if re.match(r"--?[a-z]", word)}
            wrong += [f"{place}: {' '.join(words)}: no option {o}" for o in sorted(given - known)]
        seen += 1
    assert not wrong
    assert seen > 60


def test_every_setting_exists() -> None:
    seen, wrong = 0, []
    for block in blocks():
        if block.language != "toml":
            continue
        try:
            Settings.model_validate(tomllib.loads(block.text.replace("…", "...")))
        except tomllib.TOMLDecodeError as error:
            wrong.append(f"{block.page}:{block.line}: {error}")
        except ValidationError as error:
            strange = [e for e in error.errors() if e["type"] == "extra_forbidden"]
            wrong += [f"{block.page}:{block.line}: {e['loc']}" for e in strange]
        seen += 1
    assert not wrong
    assert seen > 10


ON_DEMO = r"--lake \./demo-lake|demo/incident|sql --list"
SERVERS = ("serve", "ui", "exporter")
"""They do not end by themselves; their own tests start them."""


def shown_answers() -> Iterator[tuple[str, list[str], str]]:
    """Commands on the demo's lake, each with the output that a page shows."""
    for block in blocks():
        if block.language:
            continue
        asked, shown = None, []
        for line in [*block.text.splitlines(), "$ "]:
            if re.match(r"\s*\$ |\d\. [A-Z]", line):
                if asked is not None:
                    yield f"{block.page}:{block.line}", asked, "\n".join(shown)
                on_demo = re.match(rf"\s*\$ acktrail ([^…]*(?:{ON_DEMO})[^…]*)$", line)
                asked, shown = (shlex.split(on_demo[1]) if on_demo else None), []
                if asked and asked[0] in SERVERS:
                    asked = None
            elif asked is not None:
                shown.append(line)


@pytest.fixture(scope="module")
def demo_lake(
    whole_lake: Lake, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Lake:
    """The lake that `acktrail demo` makes."""
    there = tmp_path_factory.mktemp("demo") / "lake"
    shutil.copytree(whole_lake.uri, there)
    lake = Lake(there)
    run_all(JOBS, lambda job: runner.run(job, lake, lambda: spark, AS_OF))
    return lake


@pytest.mark.parametrize(
    ("place", "words", "shown"),
    list(shown_answers()),
    ids=lambda v: v if isinstance(v, str) and ":" in v and "\n" not in v else "",
)
def test_the_demo_answers_as_the_pages_show(
    place: str, words: list[str], shown: str, demo_lake: Lake
) -> None:
    asked = [word.replace("./demo-lake", demo_lake.uri) for word in words]
    asked = [str(ROOT / word) if "demo/incident" in word else word for word in asked]
    done = ask(asked)
    parts = [re.escape(" ".join(part.split())) for part in shown.split("…")]
    pattern = r"\s*" + r".*?".join(r"\s*" + part + r"\s*" for part in parts)
    said = [" ".join(text.split()) for text in (done.stdout, done.stdout + done.stderr)]
    assert any(re.fullmatch(pattern, text, re.DOTALL) for text in said), f"{place}: {said[1]}"


def ask(words: list[str]) -> Result | subprocess.CompletedProcess[str]:
    """Run a command: `sql` in a process of its own, for it ends the Spark session of the tests."""
    if words[0] != "sql":
        return CliRunner().invoke(main, words, catch_exceptions=False)
    asked = [sys.executable, "-m", "acktrail", *words]
    return subprocess.run(asked, capture_output=True, text=True, check=False, timeout=300)
