"""The rules for writers that meet, on an object store: the cases and the law of a disk."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import HealthCheck, given, settings

from acktrail.lake import Lake
from tests.integration.s3_server import KEY_ID, SECRET, make_bucket, s3_server
from tests.unit.lake.test_conflicts import CASES
from tests.unit.lake.test_receipts import CASES as RECEIPTS
from tests.worlds.conflicts import Meeting, steps
from tests.worlds.receipts import Receivers, stories

_number = itertools.count()


@pytest.fixture(scope="module")
def options():
    with s3_server() as address:
        make_bucket(address, "bucket")
        yield {
            "endpoint_url": address,
            "access_key_id": KEY_ID,
            "secret_access_key": SECRET,
            "region": "us-east-1",
        }


def a_lake(options: dict[str, str]) -> Lake:
    return Lake(f"s3://bucket/lake-{next(_number)}", options)


@pytest.mark.parametrize("case", CASES)
def test_a_table_of_conflicts(case, options):
    story, refused = CASES[case]
    meeting = Meeting(a_lake(options))
    meeting.play(story)
    assert meeting.outcomes["refused"] == refused


@settings(
    max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps)
def test_any_meeting_of_writers_gives_the_rows_of_the_model(options, story):
    Meeting(a_lake(options)).play(story)


@pytest.mark.parametrize("case", RECEIPTS)
def test_a_table_of_receipts(case, options):
    Receivers(a_lake(options)).play(RECEIPTS[case])


@settings(
    max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(stories)
def test_whoever_commits_later_has_later_receipts(options, story):
    Receivers(a_lake(options)).play(story)
