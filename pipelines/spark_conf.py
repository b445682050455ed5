"""The settings of a session, as settings of Spark: pure, and the one place that decides them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from acktrail.errors import ConfigError
from acktrail.lake.s3_options import S3Options
from acktrail.lake.store import Store
from acktrail.settings.spark import FIXED, SparkSettings

ENVIRONMENT = "environment"
"""The directory below an executor's own in which Spark unpacks `spark.environment`."""

# With C1 alone Java keeps 48 MB for compiled code: Spark fills that, and then all is interpreted.
QUICK = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC -Xshare:auto"
_LONG = "-XX:+UseParallelGC"
# Java prints its own warnings where a user's answer goes; stderr is `spark_log.jvm_log`.
_QUIET = "-Xlog:disable -Xlog:all=warning:stderr -XX:+DisplayVMOutputToStderr"
_SMALL = {
    # A small run spends its time on compiling plans, not on rows: 148 s against 111 s for all jobs
    # on the demo's evidence. A long job gets Spark's defaults.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
_LOCAL = {
    "spark.sql.shuffle.partitions": "2",
    # What is few bytes can be much work (an audit is): its partitions stay as many as they are.
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
}
_REMOTE = {
    # As above: small partitions are put together only up to this size, not up to 1 MB.
    "spark.sql.adaptive.coalescePartitions.minPartitionSize": "64k",
    "spark.executorEnv.MALLOC_ARENA_MAX": "2",
}
_COMMON = {
    **FIXED,
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Nobody looks at them, and `acktrail watch` runs for weeks: a thousand plans are kept else.
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "200",
    "spark.sql.ui.retainedExecutions": "5",
    # Logs of our tables are short, and listed by the driver.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000",
    "spark.databricks.delta.snapshotPartitions": "2",
}
_S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem"
_S3 = {"spark.hadoop.fs.s3.impl": _S3A, "spark.hadoop.fs.s3a.impl": _S3A}
_JOINED = {
    # What a user gives is added to ours.
    "spark.jars": ",",
    "spark.archives": ",",
    "spark.sql.extensions": ",",
    "spark.driver.extraJavaOptions": " ",
}


@dataclass(frozen=True)
class DriverHost:
    """What the driver's host has: files, and the options of its Java."""

    python: str
    jars: tuple[str, ...] = ()
    java_options: str = ""
    archive_option: str = ""
    """Of the class-data-sharing archive, which makes a small run start sooner."""
    warehouse: str = "warehouse"


@dataclass(frozen=True)
class SessionPlan:
    """What a session is made with."""

    conf: Mapping[str, str]
    environment: Mapping[str, str] = field(default_factory=dict)
    """Of this process while the JVM starts. A value that the user has set stays."""
    forced: Mapping[str, str] = field(default_factory=dict, repr=False)
    """As *environment*, for what a setting decides. Credentials of the store are here."""
    private_conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    """As *conf*, for secrets. *conf* is on the command line of the JVM; these must not be."""


def render(
    settings: SparkSettings,
    host: DriverHost,
    s3: S3Options | None = None,
    *,
    long_job: bool = False,
) -> SessionPlan:
    """How to make a session by *settings* on *host*; *s3* are the options of a lake on S3."""
    local = settings.is_local
    long_job = long_job or not local
    ours = {
        **_COMMON,
        "spark.jars": ",".join(host.jars),
        "spark.driver.extraJavaOptions": _java_options(host, long_job),
        "spark.driver.memory": "4g" if long_job else "2g",
        "spark.sql.warehouse.dir": host.warehouse,
        **(_LOCAL if local else _REMOTE),
        **({} if long_job else _SMALL),
        **({"spark.driver.host": "127.0.0.1"} if settings.is_one_host else {}),
        **({**_S3, **s3.spark()} if s3 else {}),
    }
    secrets = s3.environment() if s3 else {}
    defaults = {"MALLOC_ARENA_MAX": "2", "PYSPARK_PYTHON": host.python}
    if settings.is_one_host:
        conf = _with_users(ours, _given(settings), settings.conf)
        return SessionPlan(conf, {**defaults, "SPARK_LOCAL_IP": "127.0.0.1"}, secrets)
    places = {"AWS_ENDPOINT_URL": s3.endpoint_url, "AWS_REGION": s3.region} if s3 else {}
    ours |= _of_executors({name: value for name, value in places.items() if value})
    conf = _with_users(ours, _given(settings), settings.conf)
    python = {"PYSPARK_PYTHON": f"./{ENVIRONMENT}/bin/python"} if settings.environment else {}
    return SessionPlan(conf, defaults, {**python, **secrets}, _of_executors(secrets))


def refuse_private_lake(settings: SparkSettings, store: Store) -> None:
    """ConfigError for a lake in a directory that executors on other hosts do not see."""
    if settings.is_one_host or settings.shared_lake or store.is_remote:
        return
    raise ConfigError(
        f"The lake {store.path} is a directory, and the Spark master {settings.master} starts "
        "executors on other hosts: each would write to its own disk, and the tables would name "
        "files that are not there. Use a lake on an object store, for example s3://bucket/lake; "
        "or, if every host has the same directory at this path (NFS, or all executors on this "
        "host), set `spark.shared_lake = true`; or run with --master 'local[*]'."
    )


def _of_executors(environment: Mapping[str, str]) -> dict[str, str]:
    return {f"spark.executorEnv.{name}": value for name, value in environment.items()}


def _java_options(host: DriverHost, long_job: bool) -> str:
    pace = _LONG if long_job else f"{QUICK} {host.archive_option}"
    return f"{host.java_options} {_QUIET} {pace}".strip()


def _given(settings: SparkSettings) -> dict[str, str]:
    """The settings that have a name of their own, by Spark's names; only those that are set."""
    named: dict[str, object] = {"spark.driver.memory": settings.driver_memory}
    if not settings.is_local:
        named |= {
            "spark.executor.instances": settings.executors,
            "spark.executor.cores": settings.executor_cores,
            "spark.executor.memory": settings.executor_memory,
        }
    if not settings.is_one_host:
        named |= {
            "spark.driver.host": settings.driver_host,
            "spark.driver.bindAddress": settings.driver_bind_address,
            "spark.driver.port": settings.driver_port,
            "spark.driver.blockManager.port": settings.block_manager_port,
            "spark.archives": f"{settings.environment}#{ENVIRONMENT}"
            if settings.environment
            else None,
        }
    if settings.master.startswith("spark://") and settings.executors is not None:
        # A standalone master gives out cores: it does not count executors.
        if settings.executor_cores is None:
            raise ConfigError(
                "`spark.executors` is set and `spark.executor_cores` is not. A standalone master "
                "starts one executor for each worker unless it is told how many cores one has: "
                "set both, or none."
            )
        named["spark.cores.max"] = settings.executors * settings.executor_cores
    return {key: str(value) for key, value in named.items() if value is not None}


def _with_users(
    ours: Mapping[str, str], given: Mapping[str, str], conf: Mapping[str, str]
) -> dict[str, str]:
    """*ours*, then the settings *given*, then *conf*: what a user says wins."""
    rendered = {**ours, **given}
    for key, value in conf.items():
        if key in _JOINED and rendered.get(key):
            rendered[key] = f"{rendered[key]}{_JOINED[key]}{value}"
        elif given.get(key, value) != value:
            raise ConfigError(
                f'`spark.conf."{key}"` is {value}, and another setting of `spark` makes it '
                f"{given[key]}. Remove one of them."
            )
        else:
            rendered[key] = value
    return rendered
