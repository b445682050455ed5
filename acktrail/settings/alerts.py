"""Settings of the alert receivers."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class AlertSettings(BaseModel):
    """Where alerts go."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    webhook_url: str | None = None
    timeout_s: float = 10.0
