"""A Spark cluster that the settings name: its master, the lake and the environment of executors."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from urllib.parse import urlsplit

from acktrail.errors import SourceUnavailable
from acktrail.lake.store import Store
from acktrail.operate.probes.row import OK, WARNING, Clock, Probe, Row
from acktrail.settings.spark import SparkSettings

_WHAT = "spark master"
_TIMEOUT_S = 5.0


def cluster_probes(spark: SparkSettings, store: Store | None) -> list[Probe]:
    """Nothing to ask for a local master."""
    return [] if spark.is_one_host else [Probe(_WHAT, lambda: _look(spark, store))]


def _look(spark: SparkSettings, store: Store | None) -> list[Row | Clock]:
    from pipelines import environment
    from pipelines.spark_conf import refuse_private_lake

    if store is not None:
        refuse_private_lake(spark, store)
    archive = spark.environment
    if archive is not None and "://" not in archive:
        environment.refuse_other(Path(archive))
    if spark.master == "yarn":
        if not os.environ.get("HADOOP_CONF_DIR") and not os.environ.get("YARN_CONF_DIR"):
            remark = "yarn: HADOOP_CONF_DIR is not set, so that Spark does not know the cluster"
            return [Row(_WHAT, WARNING, remark)]
        return [Row(_WHAT, OK, "yarn: not asked; its configuration is named by HADOOP_CONF_DIR")]
    return [Row(_WHAT, OK, f"{_reachable(spark.master)} takes connections")]


def _reachable(master: str) -> str:
    """The first host of *master* that takes a connection; SourceUnavailable if none does."""
    refusals = []
    for host, port in _addresses(master):
        try:
            socket.create_connection((host, port), _TIMEOUT_S).close()
        except OSError as error:
            refusals.append(f"{host}:{port}: {error.strerror or error}")
        else:
            return f"{host}:{port}"
    raise SourceUnavailable(
        f"{master} cannot be reached ({'; '.join(refusals)}). Is the master running, and the "
        "address right? See `spark.master`."
    )


def _addresses(master: str) -> list[tuple[str, int]]:
    if master.startswith("spark://"):
        pairs = [part.rpartition(":") for part in master.removeprefix("spark://").split(",")]
        return [(host, int(port)) for host, _, port in pairs]
    url = urlsplit(master.removeprefix("k8s://"))
    plain = url if url.hostname else urlsplit(f"https://{master.removeprefix('k8s://')}")
    return [(plain.hostname or "", plain.port or (80 if plain.scheme == "http" else 443))]
