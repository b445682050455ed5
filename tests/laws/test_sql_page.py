"""The recipes of docs/sql.md give the same answer in every engine that is on PyPI."""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path
from typing import Any

from acktrail.lake import Lake
from pipelines.adhoc import saved
from tests.laws.incident import INCIDENT

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "sql.md").read_text()
TRUTH = json.loads((INCIDENT / "truth/truth.json").read_text())["sums"]


def test_the_recipes_of_other_readers_find_what_was_lost(whole_lake: Lake) -> None:
    recipes = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    lost = {
        (each["topic"], each["lost_after_ack"] + each["lost_told"] + each["lost_silent"])
        for each in TRUTH.values()
    }
    wanted = {(topic, messages) for topic, messages in lost if messages}
    assert len(recipes) == 3
    for recipe in recipes:
        names: dict[str, Any] = {"LAKE": whole_lake.uri}
        with contextlib.redirect_stdout(io.StringIO()):
            exec(recipe, names)
        found = names["lost"]
        if hasattr(found, "fetchall"):
            rows = {(topic, messages) for topic, _, messages in found.fetchall()}
        elif hasattr(found, "rows"):
            rows = {(topic, messages) for topic, _, messages in found.rows()}
        else:
            rows = {(topic, messages) for (topic, _), messages in found.items()}
        assert rows == wanted, recipe


def test_the_page_lists_every_saved_question() -> None:
    for name, question in saved.questions().items():
        assert re.search(rf"^{name} +{re.escape(question.question)}$", PAGE, re.MULTILINE), name
