"""A session after another, in one process."""

from __future__ import annotations

import subprocess
import sys

TWICE = """
from pipelines import session
for number in (3, 4):
    spark = session.build("local[1]")
    print(spark.range(number).count())
    session.stop(spark)
"""


def test_a_session_that_was_stopped_is_no_hindrance_to_the_next():
    done = subprocess.run(
        [sys.executable, "-c", TWICE], capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stdout.split() == ["3", "4"]
