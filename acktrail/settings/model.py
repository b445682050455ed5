"""The settings: one frozen model, unknown keys refused, secrets hidden.

Only commands build Settings; everything below receives the values it needs, not the whole.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, model_validator

from acktrail.settings.alerts import AlertSettings
from acktrail.settings.pages import ReportSettings, UiSettings
from acktrail.settings.sources import SourceSettings
from acktrail.settings.spark import SparkSettings
from acktrail.settings.values import HostPort, Number, Servers, Text


class Strict(BaseModel):
    """Frozen, and refuses keys it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class LakeSettings(Strict):
    """Where the tables are."""

    uri: Text | None = None
    """A directory, or s3://bucket/prefix."""
    storage_options: dict[str, SecretStr] = Field(default_factory=dict)
    """How the object store is reached, docs/stores.md; never printed."""
    storage_option_files: dict[str, Text] = Field(default_factory=dict)
    """As *storage_options*, each read from a file when a command starts."""


class KafkaSettings(Strict):
    """How to reach the cluster. *client* is passed through to librdkafka."""

    bootstrap_servers: Servers | None = None
    """host:port,host:port of some brokers."""
    client: dict[str, str] = Field(default_factory=dict)
    """For example {"security.protocol" = "SASL_SSL", "sasl.username" = "audit"}."""
    secrets: dict[str, SecretStr] = Field(default_factory=dict)
    """As *client*, for values that must never be printed, such as sasl.password."""
    secret_files: dict[str, Text] = Field(default_factory=dict)
    """As *secrets*, each read from a file."""


class AgentSettings(Strict):
    """The ingest loop."""

    flush_s: Number = Field(default=30.0, gt=0)
    """Rows wait at most this long for a commit."""
    flush_mb: Number = Field(default=64.0, gt=0)
    """Rows of this size are committed at once."""
    metrics_address: HostPort | None = None
    """host:port for the agent's own /metrics; none if not set."""


_NAMES = ("host", "client_id", "broker")
"""What an alias rule can give."""


def _text_of_number(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


class AliasRule(Strict):
    """A rule that sets the host, client id or broker of a log file, a target or an audit session.

    *match* is a regular expression over the value of *field*; the names may use its groups. An
    empty *broker* means that no id is read from the target's name.
    """

    field: str = Field(min_length=1)
    """The matched field: `client_id`, `host` or `source`; `path` (logs), `instance` or a label
    (metrics), `session` (audits)."""
    match: str
    """A regular expression over the value of the field."""
    host: str | None = None
    r"""The host; \1 is the first group of `match`."""
    client_id: str | None = None
    """The client id."""
    broker: Annotated[str | None, BeforeValidator(_text_of_number)] = None
    """The id of the broker; empty for none."""

    @model_validator(mode="after")
    def _can_be_followed(self) -> AliasRule:
        try:
            regex = re.compile(self.match)
        except re.error as error:
            raise ValueError(f"`match` is not a regular expression: {error}") from None
        given = {n: t for n in _NAMES if (t := getattr(self, n)) is not None}
        if not given:
            raise ValueError(f"the rule names nothing: give {', '.join(_NAMES[:-1])} or broker")
        for name, template in given.items():
            try:
                regex.sub(template, "")  # reads the template, whether or not anything matches
            except (re.error, IndexError) as error:
                raise ValueError(
                    f"`{name}` cannot be made from `match`: {error}. It may use the groups of "
                    r"`match`, as \1 or \g<name>; in TOML put both in single quotes"
                ) from None
        if self.broker and "\\" not in self.broker and not self.broker.isdigit():
            raise ValueError(r"`broker` is a number, or a group of `match` such as \1")
        return self


class Settings(Strict):
    """Everything a user can set, from one TOML file and ACKTRAIL_* variables."""

    cluster: Text = "default"
    """Name of the Kafka cluster in every row and alert."""
    lake: LakeSettings = LakeSettings()
    kafka: KafkaSettings = KafkaSettings()
    agent: AgentSettings = AgentSettings()
    spark: SparkSettings = SparkSettings()
    sources: tuple[SourceSettings, ...] = ()
    aliases: tuple[AliasRule, ...] = ()
    inventory: dict[str, dict[str, str | int | float]] = Field(default_factory=dict)
    """Client id (or a pattern such as "batch-*") to the settings of producers that print none."""
    alerts: AlertSettings = AlertSettings()
    report: ReportSettings = ReportSettings()
    ui: UiSettings = UiSettings()

    @model_validator(mode="after")
    def _names_are_unique(self) -> Settings:
        names = [source.name for source in self.sources]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(
                f"sources: two have the name {', '.join(twice)}. Positions are kept by the name: "
                "give each another one"
            )
        return self
