"""What people expect of Spark SQL is answered: on the recorded incident, in one warm session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from acktrail.contracts.runs import RUNS
from acktrail.errors import UsageError
from acktrail.lake import Lake
from pipelines.adhoc.ask import Asker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A question, and its answer: the rows, or how many; null where the answer depends on the run.
QUESTIONS = json.loads((Path(__file__).parents[1] / "golden" / "questions.json").read_text())


def test_every_question_is_answered(spark: SparkSession, whole_lake: Lake) -> None:
    asker = Asker(spark, whole_lake)
    wrong = []
    now = whole_lake.read(RUNS, columns=["ended_at"])["ended_at"].to_pylist()[0]
    for text, wanted in QUESTIONS:
        try:
            found = asker.ask(text.replace("{now}", f"{now:%F %T.%f}")).rows
        except UsageError as error:
            wrong.append(f"{text}: {error}")
            continue
        rows = [list(row.values()) for row in found.to_pylist()]
        said = len(rows) if isinstance(wanted, int) else rows
        if not rows or (wanted is not None and said != wanted):
            wrong.append(f"{text}: {said}")
    assert len(QUESTIONS) >= 60
    assert not wrong
