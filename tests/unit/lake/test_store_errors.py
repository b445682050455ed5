"""Every error of a store has one meaning: worth another try, or something to set right.

The texts in `store_errors.json` are those of delta-rs, Arrow and Spark's S3A, as they raised them
for answers of S3, wrong ports, wrong certificates, silence and cut connections.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.errors import LakeDamaged, LakeInaccessible, SourceUnavailable
from acktrail.lake.damage import explained
from acktrail.lake.store_errors import KINDS, error_kind, store_error, uncaught_store_error

PLACE = "s3://bucket/lake/bronze/log_records"
CASES = json.loads(Path(__file__).with_name("store_errors.json").read_text("utf-8"))
AGAIN = {"throttled", "slow upload", "server error", "name", "refused", "slow", "cut", "unknown"}


@pytest.mark.parametrize("case", CASES, ids=[f"{c['case']}-{c['engine']}" for c in CASES])
def test_each_error_is_known_and_never_damage(case):
    assert error_kind(case["text"]) == case["kind"]
    error = explained(LOG_RECORDS, PLACE, OSError(case["text"]))
    wanted = SourceUnavailable if case["kind"] in AGAIN else LakeInaccessible
    assert type(error) is wanted
    said = str(error)
    assert said.startswith(PLACE)
    assert not any(sign in said for sign in ("\n", "\x1b", "↳", "backup"))
    assert len(said) < 800


SPARK = [case for case in CASES if case["engine"] == "spark"]


@pytest.mark.parametrize("case", SPARK, ids=[case["case"] for case in SPARK])
def test_an_error_of_spark_that_is_the_stores(case):
    trace = "\n\tat org.apache.hadoop.fs.s3a.S3AUtils.translateException(S3AUtils.java:270)"
    error = uncaught_store_error(case["text"] + trace)
    assert isinstance(error, SourceUnavailable if case["kind"] in AGAIN else LakeInaccessible)


def test_other_errors_of_spark_are_not_the_stores():
    assert uncaught_store_error("Futures timed out after [100 seconds]") is None


def test_every_kind_but_two_was_seen():
    assert set(KINDS) - {case["kind"] for case in CASES} <= {"unknown", "no credentials"}


def test_the_words_of_the_store_are_repeated_without_its_markup():
    text = "Generic S3 error\n  ↳ 403\n  ↳ <Error><Code>AccessDenied</Code><Message>No.</Message>"
    assert str(store_error(PLACE, text)).endswith("(AccessDenied: No.)")


@pytest.mark.parametrize(
    "text",
    [
        "Invalid JSON in log record, version=3",
        "Parquet magic bytes not found in footer.",
        "Object at location a/b.parquet not found",
    ],
)
def test_what_is_wrong_inside_the_lake_is_still_damage(text):
    assert error_kind(text) is None
    assert isinstance(explained(LOG_RECORDS, PLACE, OSError(text)), LakeDamaged)
