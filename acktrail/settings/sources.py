"""Settings of the sources an agent reads, one model per kind."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class _Source(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1, pattern=r"^[A-Za-z0-9._-]+$")
    cluster: str | None = None
    """Overrides the top-level cluster for what this source says."""


class LogFilesSource(_Source):
    """Client or broker log files, by glob."""

    kind: Literal["log_files"]
    paths: tuple[str, ...] = Field(min_length=1)
    host: str | None = None
    """Host named in the rows; the machine's own name where not set."""
    zone: str = "UTC"
    """Time zone of timestamps that carry no offset."""


SourceSettings = LogFilesSource
"""A union by `kind` as kinds are added."""
