"""The page that takes an application to a verdict: its own blocks, against a real cluster."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "audit_your_application.md").read_text(encoding="utf-8")


def shown() -> list[str]:
    """The text of every block without a language, in order."""
    found, kind = [], None
    for line in PAGE.splitlines():
        if line.startswith("```"):
            kind = line[3:] if kind is None else None
            if kind == "":
                found.append("")
        elif kind == "":
            found[-1] += f"{line}\n"
    return found


def commands() -> list[tuple[str, list[str]]]:
    """Every command of the page, in order, with the output it shows."""
    found: list[tuple[str, list[str]]] = []
    for block in shown():
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif found:
                found[-1][1].append(line)
    return found


def write_files(folder: Path, servers: str) -> None:
    named = re.findall(r"^`(\S+)`:\n\n```\w+\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    ours = [one for one in named if not one[0].endswith(".properties")]  # those are Java's
    assert [name for name, _ in ours] == ["shop.py", "billing.py", "acktrail.toml"]
    for name, text in ours:
        (folder / name).write_text(text.replace("kafka:9092", servers))


def run(line: str, folder: Path, nodes) -> str:
    words = shlex.split(line.replace("kafka:9092", nodes.direct))
    program = {
        "acktrail": [sys.executable, "-m", "acktrail"],
        "python": [sys.executable],
        "kafka-topics": [
            *(nodes.java, "-cp", f"{nodes.jars}/*"),
            "org.apache.kafka.tools.TopicCommand",
        ],
    }[words[0]]
    path = f"{ROOT}:{ROOT / 'clients/python/src'}"
    done = subprocess.run(
        [*program, *words[1:]],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def matches(shown: str, said: str) -> bool:
    """Whether a line is as the page shows it; `…` stands for anything."""
    parts = [re.escape(part) for part in " ".join(shown.split()).split("…")]
    return re.fullmatch(".*".join(parts), " ".join(said.split())) is not None


def test_the_page_takes_an_application_to_a_verdict(nodes, tmp_path):
    write_files(tmp_path, nodes.direct)
    tried = []
    for line, wanted in commands():
        if line.startswith("pip "):
            continue  # tests/integration/test_wheel.py
        said = run(line, tmp_path, nodes)
        tried.append(line.split()[0])
        if wanted:
            told = [text for text in said.splitlines() if text]
            assert len(told) == len(wanted), said
            assert all(map(matches, wanted, told)), said
    assert tried.count("acktrail") == 5
    assert {"python", "kafka-topics"} <= set(tried)
