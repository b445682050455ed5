"""A session after another in one process, and what Java says of itself meanwhile."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

MEGABYTE = 2**20
SESSIONS = """
import signal, sys
from pathlib import Path
from acktrail.settings.spark import SparkSettings
from pipelines import session, spark_conf, spark_log
ours = lambda *_: None
signal.signal(signal.SIGINT, ours)
spark_conf.QUICK += sys.argv[1]
spark_log.jvm_log = lambda: Path(sys.argv[2])
for number in sys.argv[3:]:
    spark = session.build(SparkSettings(master="local[1]"))
    print(spark.range(int(number)).count())
    assert signal.getsignal(signal.SIGINT) is ours, "^C is taken from a command that handles it"
    session.stop(spark)
"""


def answers(log: Path, *numbers: int, options: str = "") -> str:
    """What is printed; *log* is not the user's, which other sessions write at the same time."""
    done = subprocess.run(
        [sys.executable, "-c", SESSIONS, options, str(log), *map(str, numbers)],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return done.stdout


def test_a_session_that_was_stopped_is_no_hindrance_to_the_next(tmp_path):
    assert answers(tmp_path / "spark.log", 3, 4) == "3\n4\n"


def test_what_java_says_of_itself_is_in_its_log_and_not_among_the_answers(tmp_path):
    """It has two ways to say things: its own log, and what is older than that."""
    log = tmp_path / "spark.log"
    said = answers(log, 3, options=" -XX:+UseLargePages -XX:+PrintFlagsFinal")
    assert said == "3\n"
    assert "ReservedCodeCacheSize" in log.read_text()


def test_there_is_room_for_all_compiled_code(spark):
    """The 48 MB that C1 gets by itself are full within a demo; the compiler is off from then on."""
    pools = spark._jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    room = sum(p.getUsage().getMax() for p in pools if "Code" in p.getName())
    assert room >= 200 * MEGABYTE
