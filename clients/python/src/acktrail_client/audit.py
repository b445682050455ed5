"""Where reports go, and how much they may cost: what an application sets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

DEFAULT_TOPIC = "acktrail-reports"
_NEVER = re.compile(r"__.*|connect-offsets")


@dataclass(frozen=True)
class Audit:
    """How clients are audited.

    The cluster and the access to it are taken from the audited client. With *bootstrap_servers* the
    audit topic is on another cluster, and nothing is taken: *conf* has what access needs.
    """

    topic: str = DEFAULT_TOPIC
    bootstrap_servers: str | None = None
    conf: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Settings of the reporter's own producer, for example `security.protocol`."""
    host: str = ""
    """This machine in reports, by the name that its logs and metrics have; its own if empty."""
    exclude: str = ""
    """A regular expression: topics that match it as a whole are not audited."""
    interval_s: float = 10.0
    """How often reports are made, heartbeats included."""
    memory_bytes: int = 16 * 1024 * 1024
    """Most memory for evidence that could not be sent yet."""
    close_s: float = 1.0
    """How much longer `close()` may take for the last report."""

    def __post_init__(self) -> None:
        try:
            re.compile(self.exclude)
        except re.error as error:
            said = f"exclude={self.exclude!r} is not a regular expression: {error}"
            raise ValueError(said) from None

    def audits(self, topic: str) -> bool:
        """Whether messages of *topic* are audited."""
        if topic == self.topic or _NEVER.fullmatch(topic):
            return False
        return not self.exclude or re.fullmatch(self.exclude, topic) is None
