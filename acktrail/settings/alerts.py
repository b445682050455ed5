"""Settings of the alert receivers."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr


def _several(value: Any) -> Any:
    """A text, as from an ACKTRAIL_* variable, is a list separated by commas."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


Address = Annotated[str, Field(pattern=r"^https?://[^\s/]+")]


class AlertSettings(BaseModel):
    """Where alerts go. With no receiver set they are kept in the outbox and shown, not sent."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    alertmanager_urls: Annotated[tuple[Address, ...], BeforeValidator(_several)] = ()
    """Every instance of one Alertmanager cluster; an alert is delivered once one has taken it."""
    alertmanager_token: SecretStr | None = None
    """Sent as a bearer token; never printed."""
    webhook_url: Address | None = None
    webhook_secret: SecretStr | None = None
    """Signs the webhook's body (HMAC-SHA256); never printed."""
    timeout_s: float = Field(default=10.0, gt=0)
    """How long one request may take."""
    give_up_s: float = Field(default=30.0, ge=0)
    """How long a receiver that fails is tried again before the alert is left in the outbox."""
    interval_s: float = Field(default=300.0, gt=0)
    """How often `check` runs: an open alert ends by itself after three intervals of silence."""
    runbooks_url: str = "docs/runbooks"
    """Where the runbook pages are served; <check>.md is added."""
    policy: str | None = None
    """The YAML file with thresholds, owners and maintenance windows."""
