"""The one place that makes a Spark session.

JVM start-up is most of a small run, so a class-data-sharing archive made once at set-up is used
when it is there and valid, with the C1 compiler and the serial collector. A run with much to read
(`runner.is_long`) asks for the full compiler instead.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from acktrail.artifacts import cache_directory, java, resolve
from pipelines import spark_errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# With C1 alone Java keeps 48 MB for compiled code: Spark fills that, and then all is interpreted.
_QUICK = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC -Xshare:auto"
_LONG = "-XX:+UseParallelGC"
# Java prints its own warnings where a user's answer goes; stderr is `jvm_log`.
_QUIET = "-Xlog:disable -Xlog:all=warning:stderr -XX:+DisplayVMOutputToStderr"
_SMALL = {
    # A small run spends its time on compiling plans, not on rows: 148 s against 111 s for all jobs
    # on the demo's evidence. A long job gets Spark's defaults.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}


def build(
    master: str = "local[*]", conf: Mapping[str, str] | None = None, *, long_job: bool = False
) -> SparkSession:
    """A session that reads and writes the lake, in UTC, with the UI off."""
    from pyspark.sql import SparkSession

    spark_errors.silence()
    java()  # a clear error now, rather than a gateway that never answers
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("MALLOC_ARENA_MAX", "2")  # freed memory goes back, whoever took it
    builder = SparkSession.builder.master(master).appName("acktrail")
    pace = {} if long_job else _SMALL
    for key, value in {**_settings(long_job), **pace, **(conf or {})}.items():
        builder = builder.config(key, value)
    with _jvm_talks_to_a_file(), _interrupts_as_before():
        return builder.getOrCreate()


def stop(session: SparkSession) -> None:
    """Stop the session and wait for its JVM to be gone."""
    gateway = session.sparkContext._gateway
    session.stop()
    process = getattr(gateway, "proc", None)
    if gateway is None or process is None:
        return
    gateway.shutdown()
    process.stdin.close()
    process.wait(timeout=120)
    forget_gateway()


def forget_gateway() -> None:
    """PySpark keeps the gateway of a dead JVM, and would use it for the next session."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession as Session

    SparkContext._active_spark_context = None
    SparkContext._gateway = None
    SparkContext._jvm = None
    Session._instantiatedSession = None


def jvm_log() -> Path:
    """Where the JVM's own chatter goes; errors that matter come back as exceptions."""
    return cache_directory() / "spark.log"


@contextlib.contextmanager
def _jvm_talks_to_a_file() -> Iterator[None]:
    """While this lasts, a started process inherits a log file as its stderr, for its whole life."""
    jvm_log().parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    kept = os.dup(2)
    log = os.open(jvm_log(), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_TRUNC, 0o644)
    try:
        os.dup2(log, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(log)


@contextlib.contextmanager
def _interrupts_as_before() -> Iterator[None]:
    """PySpark takes ^C for itself: a command that ends in good order on ^C gets it back."""
    before = signal.getsignal(signal.SIGINT)
    yield
    main = threading.current_thread() is threading.main_thread()
    if main and callable(before) and before is not signal.default_int_handler:
        signal.signal(signal.SIGINT, before)


def _settings(long_job: bool) -> dict[str, str]:
    jars = sorted(str(jar) for jar in resolve("delta").glob("*.jar"))
    return {
        "spark.jars": ",".join(jars),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.driver.extraJavaOptions": f"{_logging()} {_QUIET} "
        + (_LONG if long_job else f"{_QUICK} {_archive_option()}"),
        "spark.driver.memory": "4g" if long_job else "2g",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Nobody looks at them, and `acktrail watch` runs for weeks: a thousand plans are kept else.
        "spark.ui.retainedJobs": "20",
        "spark.ui.retainedStages": "20",
        "spark.ui.retainedTasks": "200",
        "spark.sql.ui.retainedExecutions": "5",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.shuffle.partitions": "2",
        # What is few bytes can be much work (an audit is): its partitions stay as many as they are.
        "spark.sql.adaptive.coalescePartitions.enabled": "false",
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.databricks.delta.properties.defaults.enableDeletionVectors": "false",
        # A partition value is the text the contract says, whatever it looks like.
        "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
        "spark.sql.warehouse.dir": str(cache_directory() / "warehouse"),
    }


def _logging() -> str:
    return f"-Dlog4j2.configurationFile=file:{Path(__file__).with_name('log4j2.properties')}"


def archive_file() -> Path:
    """Where the class-data-sharing archive of this Java and of these very jars is kept.

    Java takes an archive only with the jars it was made from, by their order, sizes and times: an
    environment made anew at the same place needs one of its own.
    """
    import pyspark

    version = subprocess.run(
        [java(), "-version"], capture_output=True, text=True, check=False
    ).stderr
    jars = Path(pyspark.__file__).with_name("jars")
    return _archive_of(version, jars)


def _archive_of(java_version: str, jars: Path) -> Path:
    files = [(jar.name, jar.stat().st_size, int(jar.stat().st_mtime)) for jar in os.scandir(jars)]
    name = f"{_short(str(jars))}-{_short(f'{java_version}{files}')}"
    return cache_directory() / f"spark-{name}.jsa"


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _archive_option() -> str:
    archive = archive_file()
    making = os.environ.get("ACKTRAIL_MAKE_ARCHIVE")
    if making:
        return f"-XX:ArchiveClassesAtExit={making}"
    return f"-XX:SharedArchiveFile={archive}" if archive.is_file() else ""


def make_archive() -> Path:
    """Make the archive by one small run in a process of its own; keep an existing one."""
    archive = archive_file()
    if archive.is_file():
        return archive
    archive.parent.mkdir(parents=True, exist_ok=True)
    unfinished = archive.with_suffix(".unfinished")
    subprocess.run(
        [sys.executable, "-m", "pipelines.warm"],
        env={**os.environ, "ACKTRAIL_MAKE_ARCHIVE": str(unfinished)},
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    if unfinished.is_file():
        unfinished.replace(archive)
        _remove_older(archive)
    return archive


def _remove_older(archive: Path) -> None:
    """Those of jars that stood at the same place before: 190 MB each, and of no use."""
    place, _, _ = archive.name.rpartition("-")
    for other in archive.parent.glob(f"{place}-*.jsa"):
        if other != archive:
            other.unlink(missing_ok=True)
