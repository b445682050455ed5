"""The settings: one frozen model, unknown keys refused, secrets hidden.

Only commands build Settings; everything below receives the values it needs, not the whole.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from acktrail.settings.alerts import AlertSettings
from acktrail.settings.sources import SourceSettings


class Strict(BaseModel):
    """Frozen, and refuses keys it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class LakeSettings(Strict):
    """Where the tables are."""

    uri: str | None = None
    storage_options: dict[str, SecretStr] = Field(default_factory=dict)
    """Passed to the object store; never printed."""


class KafkaSettings(Strict):
    """How to reach the cluster. *client* is passed through to librdkafka."""

    bootstrap_servers: str | None = None
    client: dict[str, str] = Field(default_factory=dict)
    """For example {"security.protocol" = "SASL_SSL", "sasl.username" = "audit"}."""
    secrets: dict[str, SecretStr] = Field(default_factory=dict)
    """As *client*, for values that must never be printed, such as sasl.password."""
    secret_files: dict[str, str] = Field(default_factory=dict)
    """As *secrets*, each read from a file."""


class AgentSettings(Strict):
    """The ingest loop."""

    flush_s: float = Field(default=30.0, gt=0)
    flush_mb: float = Field(default=64.0, gt=0)
    metrics_address: str | None = None
    """host:port for the agent's own /metrics; none if not set."""


class SparkSettings(Strict):
    """The Spark session of the jobs."""

    master: str = "local[*]"
    conf: dict[str, str] = Field(default_factory=dict)


class AliasRule(Strict):
    """A rule that names the host of a log file or a metrics target.

    *match* is a regular expression over the value of *field*; the names may use its groups.
    """

    field: str
    match: str
    host: str | None = None
    client_id: str | None = None


class Settings(Strict):
    """Everything a user can set, from one TOML file and ACKTRAIL_* variables."""

    cluster: str = "default"
    lake: LakeSettings = LakeSettings()
    kafka: KafkaSettings = KafkaSettings()
    agent: AgentSettings = AgentSettings()
    spark: SparkSettings = SparkSettings()
    sources: tuple[SourceSettings, ...] = ()
    aliases: tuple[AliasRule, ...] = ()
    inventory: dict[str, dict[str, str | int | float]] = Field(default_factory=dict)
    """Client id (or a pattern such as "batch-*") to the settings of producers that print none."""
    alerts: AlertSettings = AlertSettings()
