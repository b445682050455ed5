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
from acktrail.errors import ConfigError
from acktrail.lake.store import Store
from acktrail.settings.spark import SparkSettings
from pipelines import environment, spark_errors
from pipelines.spark_conf import DriverHost, SessionPlan, refuse_private_lake, render
from pipelines.spark_log import jvm_writes_to_its_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def build(
    settings: SparkSettings | None = None, store: Store | None = None, *, long_job: bool = False
) -> SparkSession:
    """A session that reads and writes the lake at *store*, in UTC, with the UI off."""
    from pyspark.sql import SparkSession

    spark_errors.silence()
    # It is for `acktrail sql --connect` and notebooks; PySpark would make their kind of session.
    os.environ.pop("SPARK_REMOTE", None)
    java()  # a clear error now, rather than a gateway that never answers
    settings = _with_archive(settings or SparkSettings())
    if store is not None:
        refuse_private_lake(settings, store)
    s3 = store.s3 if store is not None and store.is_s3 else None
    host = _host(s3=s3 is not None, quick=settings.is_local and not long_job)
    made = render(settings, host, s3, long_job=long_job)
    conf = {"spark.master": settings.master, "spark.app.name": "acktrail", **made.conf}
    builder = SparkSession.builder
    for key, value in {**conf, **made.private_conf}.items():
        builder = builder.config(key, value)
    with _environment(made), jvm_writes_to_its_log(), _interrupts_as_before():
        if made.private_conf:
            _start_jvm(conf)
        return builder.getOrCreate()


def _start_jvm(conf: Mapping[str, str]) -> None:
    """Start the JVM with *conf* on its command line; what is set later is sent to it."""
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized(conf=SparkConf().setAll(list(conf.items())))


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


@contextlib.contextmanager
def _environment(made: SessionPlan) -> Iterator[None]:
    """The environment of *made* while the JVM starts, which inherits it; then as it was."""
    unset = {name: value for name, value in made.environment.items() if name not in os.environ}
    changed = {**unset, **made.forced}
    before = {name: os.environ.get(name) for name in changed}
    os.environ.update(changed)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _interrupts_as_before() -> Iterator[None]:
    """PySpark takes ^C for itself: a command that ends in good order on ^C gets it back."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        main = threading.current_thread() is threading.main_thread()
        if main and callable(before) and before is not signal.default_int_handler:
            signal.signal(signal.SIGINT, before)


def _host(*, s3: bool, quick: bool) -> DriverHost:
    return DriverHost(
        python=sys.executable,
        jars=_jars(s3),
        java_options=_logging(),
        archive_option=_archive_option() if quick else "",
        warehouse=str(cache_directory() / "warehouse"),
    )


def _with_archive(settings: SparkSettings) -> SparkSettings:
    """*settings*, where a path of the environment's archive is absolute; ConfigError without it."""
    archive = settings.environment
    if archive is None or settings.is_one_host or "://" in archive:
        return settings
    path = Path(archive).absolute()
    if not path.is_file():
        raise ConfigError(
            f"`spark.environment` names {path}, which does not exist. Make it: acktrail pack {path}"
        )
    environment.refuse_other(path)
    return settings.model_copy(update={"environment": str(path)})


def _jars(s3: bool) -> tuple[str, ...]:
    sets = ("delta", "s3a") if s3 else ("delta",)
    return tuple(sorted(str(jar) for name in sets for jar in resolve(name).glob("*.jar")))


def _logging() -> str:
    return f"-Dlog4j2.configurationFile=file:{Path(__file__).with_name('log4j2.properties')}"


def archive_file() -> Path:
    """Where the class-data-sharing archive of this Java and of these very jars is kept.

    Java takes an archive only with the jars it was made from, by their order, sizes and times: an
    environment made again at the same place needs one of its own.
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
