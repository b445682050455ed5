"""When a watch reads settings: once a client printed any, and every hour."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pytest

from acktrail.contracts.arrow import rows
from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.errors import LakeBusy
from acktrail.lake import Lake
from acktrail.operate.watch_steps import SettingsStep, step_of
from pipelines import runner
from pipelines.job import Options
from pipelines.silver.client_configs import JOB
from tests.unit.retries.retry_lines import NOON

MINUTE = timedelta(minutes=1)
BLOCK = "INFO ProducerConfig values: \n\tacks = -1\n\tretries = 2147483647\n"
VERSION = "INFO Kafka version: 4.3.1 (org.apache.kafka.common.utils.AppInfoParser)"
RETRY = "WARN Got error produce response with correlation id 7, retrying (3 attempts left)."


def printed(*texts: str) -> pa.Table:
    made = [
        {"cluster": "c", "source": "s", "file_id": "f", "position": i, "text": text,
         "truncated": False, "read_at": NOON, "day": "2026-01-31"}
        for i, text in enumerate(texts)
    ]  # fmt: skip
    return rows(LOG_RECORDS, made)


class Runs(list):
    """Stands for `runner.run`: whether each round of a watch came to run the job."""

    refuse = False

    def __call__(self, _job, _lake, _spark, as_of, _options):
        if self.refuse:
            raise LakeBusy("second")
        self.append(as_of)
        return type("Counts", (), {"nothing_new": False})


@pytest.fixture
def runs(monkeypatch) -> Runs:
    made = Runs()
    monkeypatch.setattr(runner, "run", made)
    return made


@pytest.fixture
def lake(tmp_path) -> Lake:
    made = Lake(tmp_path)
    made.append(LOG_RECORDS, printed(RETRY))
    return made


@pytest.fixture
def step(lake: Lake, runs: Runs) -> SettingsStep:
    made = step_of(JOB, lake, lambda: None, Options())
    assert isinstance(made, SettingsStep)
    assert made(NOON), "the first round reads what was there before it"
    runs.clear()
    return made


@pytest.mark.parametrize(
    ("case", "texts", "ran"),
    [
        ("nothing new", None, False),
        ("other lines", [RETRY, RETRY], False),
        ("a block among others", [RETRY, BLOCK, RETRY], True),
        ("a version", [VERSION], True),
    ],
)
def test_a_round_reads_settings_once_they_are_printed(lake, step, runs, case, texts, ran) -> None:
    if texts:
        lake.append(LOG_RECORDS, printed(*texts))
    assert step(NOON + MINUTE) is ran, case
    assert bool(runs) is ran, case
    assert not step(NOON + 2 * MINUTE), "and only once"


def test_an_hour_later_it_reads_whatever_there_is(lake, step, runs) -> None:
    lake.append(LOG_RECORDS, printed(RETRY))
    for minute in (1, 30, 59, 60, 61, 119, 120):
        step(NOON + minute * MINUTE)
    assert runs == [NOON + 60 * MINUTE, NOON + 120 * MINUTE]


def test_whoever_came_second_reads_them_in_the_next_round(lake, step, runs) -> None:
    lake.append(LOG_RECORDS, printed(BLOCK))
    runs.refuse = True
    with pytest.raises(LakeBusy):
        step(NOON + MINUTE)
    runs.refuse = False
    assert step(NOON + 2 * MINUTE)


def test_before_any_line_there_is_nothing_to_do(tmp_path, runs) -> None:
    assert not step_of(JOB, Lake(tmp_path / "empty"), lambda: None, Options())(NOON)
    assert runs == []
