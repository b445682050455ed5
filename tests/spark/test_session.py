"""A session after another, in one process."""

from __future__ import annotations

import subprocess
import sys

MEGABYTE = 2**20
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


def test_there_is_room_for_all_compiled_code(spark):
    """The 48 MB that C1 gets by itself are full within a demo; the compiler is off from then on."""
    pools = spark._jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    room = sum(p.getUsage().getMax() for p in pools if "Code" in p.getName())
    assert room >= 200 * MEGABYTE
