"""Settings of the alert receivers."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, model_validator

from acktrail.settings.values import Address, Number, Text

_Secret = Annotated[SecretStr, Field(min_length=1)]


def _several(value: Any) -> Any:
    """A text, as from an ACKTRAIL_* variable, is a list separated by commas."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


class AlertSettings(BaseModel):
    """Where alerts go. With no receiver set they are kept in the outbox and shown, not sent."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    alertmanager_urls: Annotated[tuple[Address, ...], BeforeValidator(_several)] = ()
    """Every instance of one Alertmanager cluster; one of them must accept an alert."""
    alertmanager_token: SecretStr | None = None
    """Sent as a bearer token; never printed."""
    webhook_url: Address | None = None
    """Every alert is posted here as JSON."""
    webhook_secret: SecretStr | None = None
    """Signs the webhook's body (HMAC-SHA256); never printed."""
    slack_token: _Secret | None = None
    """Token of a bot with the scope chat:write; never printed."""
    slack_channel: Text | None = None
    """Channel of the owners that `slack_by_owner` does not name."""
    slack_by_owner: dict[str, str] = Field(default_factory=dict)
    """Owner to channel."""
    slack_url: Address = "https://slack.com/api"
    """Address of the Slack API."""
    teams_url: _Secret | None = None
    """Address of a workflow's webhook; whoever has it may post, so it is never printed."""
    pagerduty_key: _Secret | None = None
    """Integration key of the Events API v2; never printed."""
    pagerduty_url: Address = "https://events.pagerduty.com/v2/enqueue"
    """Address of the Events API v2."""
    digest_s: Number = Field(default=86_400.0, gt=0)
    """How often Slack and Teams get the digest of tickets."""
    timeout_s: Number = Field(default=10.0, gt=0)
    """How long one request may take."""
    give_up_s: Number = Field(default=30.0, ge=0)
    """How long a receiver that fails is tried again before the alert is left in the outbox."""
    interval_s: Number = Field(default=300.0, gt=0)
    """How often `check` runs: an open alert ends by itself after three intervals of silence."""
    runbooks_url: Text = "docs/runbooks"
    """Where the runbook pages are served; <check>.md is added."""
    policy: Text | None = None
    """The YAML file with thresholds, owners and maintenance windows."""

    @model_validator(mode="after")
    def _of_use(self) -> AlertSettings:
        if self.alertmanager_token and not self.alertmanager_urls:
            raise ValueError("`alertmanager_token` is set and `alertmanager_urls` is not")
        if bool(self.slack_token) != bool(self.slack_channel):
            raise ValueError("`slack_token` and `slack_channel` belong together")
        if self.webhook_secret and not self.webhook_url:
            raise ValueError("`webhook_secret` is set and `webhook_url` is not")
        return self
