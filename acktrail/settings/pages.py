"""Settings of the report and the live page."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from acktrail.settings.values import Address, Port, Text


class ReportSettings(BaseModel):
    """Where people open the report."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: Address | None = None
    """Where the file of `acktrail report` is served: alerts then link to it."""


class UiSettings(BaseModel):
    """The live page."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    host: Text = "127.0.0.1"
    """Address that `acktrail ui` listens on; on any but loopback it asks for a token."""
    port: Port = 8087
    """Port that it listens on; 0 for any that is free."""
    token: SecretStr | None = Field(default=None, min_length=16)
    """What every request then needs. Where it is not set and *host* is not loopback, one is made
    for the run and printed with its address."""
