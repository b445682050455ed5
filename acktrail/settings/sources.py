"""Settings of the sources an agent reads, one model per kind."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from acktrail.metrics.names import METRICS
from acktrail.nearest import did_you_mean
from acktrail.settings.values import Address, Count, Number, PathGlob, Text, TopicName, Zone


class _Source(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1, pattern=r"^[A-Za-z0-9._-]+$")
    """Unique, and never changed: the lake keeps the position of a source under its name."""
    cluster: Text | None = None
    """Overrides the top-level `cluster` for this source."""


class LogFilesSource(_Source):
    """Client or broker log files, by glob."""

    kind: Literal["log_files"]
    paths: tuple[PathGlob, ...] = Field(min_length=1)
    """Absolute paths; * and ? match within a name, ** any directories."""
    host: Text | None = None
    """Host named in the rows; the machine's own name where not set."""
    zone: Zone = "UTC"
    """Time zone of timestamps without a UTC offset."""
    rotated: bool = True
    """Also read rotated copies of a named file: app.log.1, app.log-20260131.gz ..."""
    idle_s: Number = Field(default=5.0, ge=0)
    """The last record of a file counts as complete when the file has not changed for this long."""
    torn_line_s: Number = Field(default=60.0, ge=0)
    """A last line without a line end is read when its file has not changed for this long."""


class LogTopicSource(_Source):
    """Log lines shipped to Kafka topics as JSON."""

    kind: Literal["log_topic"]
    topics: tuple[TopicName, ...] = Field(min_length=1)
    """The topics that the shipper writes to."""
    shape: Literal["filebeat", "vector", "fluent_bit"]
    """The shipper whose JSON it is."""
    zone: Zone = "UTC"
    """Time zone of timestamps without a UTC offset."""
    idle_s: Number = Field(default=5.0, ge=0)
    """A record counts as complete when its file has sent nothing for this long."""
    timeout_s: Number = Field(default=15.0, gt=0)
    """How long a broker may take to answer."""


class AuditTopicSource(_Source):
    """Reports of audited clients on an audit topic."""

    kind: Literal["audit_topic"]
    topics: tuple[TopicName, ...] = ("acktrail-reports",)
    """The topics that audited clients report to."""
    cluster_names: dict[str, Text] = Field(default_factory=dict)
    """Kafka's id of a cluster to its name here, where reports about other clusters come to the
    topic. Reports about the topic's own cluster need none."""
    timeout_s: Number = Field(default=15.0, gt=0)
    """How long a broker may take to answer."""


class _Http(_Source):
    """Settings of every source read over HTTP. TLS is verified unless switched off."""

    bearer_token: SecretStr | None = None
    """Sent with every request."""
    bearer_token_file: Text | None = None
    """Read again for every request, so that a rotated token is used."""
    username: Text | None = None
    """For basic authentication."""
    password: SecretStr | None = None
    """For basic authentication."""
    ca_file: Text | None = None
    """CA certificates for the server's certificate; those of the system if not set."""
    cert_file: Text | None = None
    """Certificate of this client, if the server asks for one."""
    key_file: Text | None = None
    """Private key of that certificate."""
    verify_tls: bool = True
    """Whether the certificate of the server has to be valid."""
    timeout_s: Number = Field(default=30.0, gt=0)
    """How long a request may take."""
    metrics: tuple[str, ...] = METRICS
    """Names of the metrics to read, e.g. record-error-total. Not set: all that acktrail uses."""

    @field_validator("metrics")
    @classmethod
    def _known_metrics(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if not names:
            raise ValueError("the list is empty; leave it out for all metrics")
        for name in names:
            if name not in METRICS:
                raise ValueError(f"there is no metric {name!r}.{did_you_mean(name, METRICS)}")
        return names

    @model_validator(mode="after")
    def _of_use(self) -> _Http:
        if self.password is not None and self.username is None:
            raise ValueError("`password` is set and `username` is not")
        if self.key_file is not None and self.cert_file is None:
            raise ValueError("`key_file` is set and `cert_file` is not")
        ways = [self.bearer_token, self.bearer_token_file, self.username]
        if sum(way is not None for way in ways) > 1:
            raise ValueError("set one of `bearer_token`, `bearer_token_file` and `username`")
        return self


class PrometheusSource(_Http):
    """Samples from a Prometheus server, or a server with its query API."""

    kind: Literal["prometheus"]
    url: Address
    """For example http://prometheus:9090."""
    match: dict[str, str] = Field(default_factory=dict)
    """Labels every series must have, e.g. {env = "prod"}; values must be equal."""

    @field_validator("match")
    @classmethod
    def _labels(cls, match: dict[str, str]) -> dict[str, str]:
        for label in match:
            if not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", label):
                raise ValueError(f"{label!r} is not the name of a label")
        return match

    interval_s: Number = Field(default=15.0, gt=0)
    """Seconds between two queries."""
    late_s: Number = Field(default=15.0, ge=0)
    """How long samples may take to arrive; nothing younger is read. A Prometheus server has them
    once a scrape has ended, after 10 s at most by default; remote storage may need longer."""
    window_s: Number = Field(default=3600.0, gt=0)
    """Longest range of one query; it is halved if the server refuses it as too large."""
    history_s: Number = Field(default=86_400.0, gt=0)
    """How far back the first read goes."""
    step_s: Count | None = Field(default=None, gt=0)
    """Not set: every raw sample. Set: values on a grid of this many seconds (a range query),
    for servers that hold downsampled data only."""


class ScrapeSource(_Http):
    """Metrics read directly from producers and brokers."""

    kind: Literal["scrape"]
    targets: tuple[Address, ...] = Field(min_length=1)
    """Full addresses, e.g. http://broker-1:7071/metrics or http://app-1:8778/jolokia."""
    format: Literal["text", "jolokia"] = "text"
    """`text`: the exposition of a JMX exporter or Micrometer. `jolokia`: its read requests."""
    timeout_s: Number = Field(default=10.0, gt=0)
    """How long a request may take."""
    interval_s: Number = Field(default=15.0, gt=0)
    """Seconds between two scrapes of a target."""


class VerifiableSource(_Source):
    """JSON lines of VerifiableProducer and VerifiableConsumer."""

    kind: Literal["verifiable"]
    paths: tuple[PathGlob, ...] = Field(min_length=1)
    """Absolute paths of the files, with * and ?."""
    group: str = ""
    """Consumer group of the consumers' files: their output does not contain it."""
    session_settings: dict[str, str] = Field(default_factory=dict)
    """Settings of the producers (acks, retries ...): their output does not contain them."""


class LibrdkafkaStatsSource(_Source):
    """Files with librdkafka's statistics: each `stats_cb` appends its JSON as one line."""

    kind: Literal["librdkafka_stats"]
    paths: tuple[PathGlob, ...] = Field(min_length=1)
    """Absolute paths; `*`, `?`, `[0-9]` and `**` match."""
    host: Text | None = None
    """Host of the clients; the machine's own name where not set."""
    rotated: bool = True
    """Also read rotated copies of a named file."""


class LogScanSource(_Source):
    """Reads audited topics independently, to find which ids are really in the log."""

    kind: Literal["log_scan"]
    topics: tuple[TopicName, ...] = Field(min_length=1)
    """The audited topics."""
    mode: Literal["whole", "suspicion"] = "suspicion"
    """`whole`: every record once. `suspicion`: the offset ranges around ids that were acked
    and that nobody has seen in the log."""
    settle_s: Number = Field(default=60.0, ge=0)
    """In suspicion mode: how long after its ack a missing id is looked for."""
    margin: Count = Field(default=100, ge=0)
    """In suspicion mode: records read on both sides of a suspected range."""
    interval_s: Number = Field(default=30.0, gt=0)
    """Seconds between two rounds."""
    max_records: Count = Field(default=50_000, gt=0)
    """Maximum number of records of one partition in one batch."""


class ClusterStateSource(_Source):
    """State of the cluster from its brokers: offsets, leaders, ISR, settings, group commits."""

    kind: Literal["cluster_state"]
    topics: tuple[TopicName, ...] = ()
    """Topic names; all but internal ones where empty."""
    groups: tuple[Text, ...] = ()
    """Consumer groups; all where empty."""
    interval_s: Number = Field(default=30.0, gt=0)
    """Seconds between two requests to the brokers."""
    timeout_s: Number = Field(default=15.0, gt=0)
    """How long a broker may take to answer."""


SourceSettings = Annotated[
    LogFilesSource
    | LogTopicSource
    | AuditTopicSource
    | PrometheusSource
    | ScrapeSource
    | VerifiableSource
    | LibrdkafkaStatsSource
    | LogScanSource
    | ClusterStateSource,
    Field(discriminator="kind"),
]
"""One source, told apart by `kind`."""
