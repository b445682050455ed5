"""The recorded incident, as the laws use it."""

from __future__ import annotations

from acktrail.cli.demo import incident, recorded_until
from pipelines.registry import JOBS

FOLDED = tuple(job for job in JOBS if job.shape != "diff")
"""The jobs that a rebuild reproduces."""
INCIDENT = incident()
AS_OF = recorded_until(INCIDENT)
