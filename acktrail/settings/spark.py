"""Settings of the Spark session, and which settings of Spark they do not give away."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from acktrail.settings.values import Count, Text

_LOCAL = re.compile(r"local(\[(\*|[1-9]\d*)(,\d+)?\])?")
_LOCAL_CLUSTER = re.compile(r"local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]")
_REMOTE = re.compile(r"yarn|spark://\S+:\d+(,\S+:\d+)*|k8s://\S+")


def known_master(text: str) -> str:
    """*text*, where it is a master of Spark."""
    if not any(kind.fullmatch(text) for kind in (_LOCAL, _LOCAL_CLUSTER, _REMOTE)):
        raise ValueError("write local[*], local[2], spark://host:7077, yarn or k8s://...")
    return text


FIXED = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.properties.defaults.enableDeletionVectors": "false",
}
"""What the tables depend on: with another value rows are wrong, or other readers cannot read."""

_ELSEWHERE = {
    "spark.master": "set `spark.master`",
    "spark.submit.deployMode": "the driver is this process: deploy mode `cluster` is not possible",
    "spark.pyspark.python": "set `spark.environment`, or PYSPARK_PYTHON in the environment",
}
_SECRET = re.compile(r"(?i)(secret|password|passphrase|token|secret[._]?key|access[._]?key)$")


def _not_ours(key: str) -> str:
    if not re.fullmatch(r"spark\.\S+", key):
        raise ValueError(r"it must match ^spark\.\S+$")
    if key in _ELSEWHERE:
        raise ValueError(_ELSEWHERE[key])
    if key in FIXED:
        raise ValueError(f"it is always {FIXED[key]}: the lake's tables depend on it")
    if _SECRET.search(key):
        raise ValueError(
            "settings of Spark are on the command line of its JVM, where every user of the host "
            "can read them. Put secrets of the store into `lake.storage_options`, others into "
            "spark-defaults.conf of SPARK_CONF_DIR"
        )
    return key


def _memory(text: str) -> str:
    if not re.fullmatch(r"[1-9]\d*[mgt]", text):
        raise ValueError("write a size with its unit: 512m, 4g")
    return text


def _archive(text: str) -> str:
    if "#" in text:
        raise ValueError("write the archive alone, without #name")
    return text


SparkMaster = Annotated[str, AfterValidator(known_master)]
SparkKey = Annotated[str, AfterValidator(_not_ours)]
Archive = Annotated[Text, AfterValidator(_archive)]
Memory = Annotated[str, AfterValidator(_memory)]
Host = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:-]+$")]
Port = Annotated[Count, Field(gt=0, lt=65536)]


class SparkSettings(BaseModel):
    """The Spark session of the jobs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    master: SparkMaster = "local[*]"
    """local[*], spark://host:7077, yarn or k8s://...."""
    driver_host: Host | None = None
    """The address of this host that executors on other hosts connect to. Not set: Spark's choice,
    the address of this host's name."""
    driver_bind_address: Host | None = None
    """The address that the driver listens on, where that is another one (a container, NAT)."""
    driver_port: Port | None = None
    """The port that executors connect to. Not set: any free one."""
    block_manager_port: Port | None = None
    """The port from which executors fetch the driver's data. Not set: any free one."""
    executors: Count | None = Field(default=None, gt=0)
    """How many executors. Not set: as many as the cluster gives."""
    executor_cores: Count | None = Field(default=None, gt=0)
    """Cores of each executor. Not set: Spark's choice."""
    executor_memory: Memory | None = None
    """Memory of each executor, e.g. 4g. Not set: Spark's choice."""
    driver_memory: Memory | None = None
    """Memory of the driver, e.g. 4g. Not set: 2g for a small run, 4g for a long one."""
    environment: Archive | None = None
    """The archive that `acktrail pack` made: a path of this host, or a URI that executors can read.
    Not set: executors have this very Python environment at the same path."""
    shared_lake: bool = False
    """`lake.uri` is a directory, and every executor sees the same one at the same path."""
    conf: dict[SparkKey, str] = Field(default_factory=dict)
    """Any other setting of Spark."""

    @property
    def is_local(self) -> bool:
        """The tasks run in this process's own JVM."""
        return _LOCAL.fullmatch(self.master) is not None

    @property
    def is_one_host(self) -> bool:
        """Every executor is on this host, and sees its files: also those of `local-cluster`."""
        return self.is_local or _LOCAL_CLUSTER.fullmatch(self.master) is not None
