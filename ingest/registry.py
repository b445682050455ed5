"""Kinds of sources, and where each is built: a list you can read."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from acktrail.errors import ConfigError
from acktrail.settings.model import KafkaSettings
from acktrail.settings.sources import SourceSettings
from ingest.source import Source

BUILDERS: dict[str, str] = {
    # kind in the settings: module with `build(settings, context) -> Source`.
    "log_files": "ingest.sources.log_files",
    "prometheus": "ingest.sources.prometheus",
    "scrape": "ingest.sources.scrape",
    "verifiable": "ingest.sources.verifiable",
    "librdkafka_stats": "ingest.sources.librdkafka_stats",
    "log_scan": "ingest.sources.log_scan",
    "cluster_state": "ingest.sources.cluster_state",
    "log_topic": "ingest.sources.log_topic",
    "audit_topic": "ingest.sources.audit_topic",
}

NATIVE = ("log_scan", "cluster_state", "log_topic", "audit_topic")
"""Kinds that call librdkafka: an agent runs each in a process of its own."""


@dataclass(frozen=True)
class SourceContext:
    """What a source is given beside its own settings."""

    cluster: str
    """Name of the cluster for this source's rows: its own setting, or the top-level one."""
    kafka: KafkaSettings = field(default_factory=KafkaSettings)
    once: bool = False
    """Read what is there and end, as a scheduler asks: the last record waits for no successor."""


def build_source(settings: SourceSettings, context: SourceContext) -> Source:
    """The source that *settings* describe, in this process; its module is imported only now.

    Enough for a probe (`open`, `health`, `close`); what runs for long takes *hosted_source*.
    """
    module = BUILDERS.get(settings.kind)
    if module is None:
        raise ConfigError(
            f"The source {settings.name} has kind {settings.kind}, which no agent can read. "
            f"Known kinds: {', '.join(BUILDERS)}."
        )
    build = cast(
        "Callable[[SourceSettings, SourceContext], Source]", importlib.import_module(module).build
    )
    return build(settings, context)


def hosted_source(settings: SourceSettings, context: SourceContext) -> Source:
    """As *build_source*; a source that calls native code runs in a process of its own.

    It is built here too, and dropped, so that wrong settings are refused before anything starts.
    """
    from ingest.agent.isolated import IsolatedSource

    source = build_source(settings, context)
    return IsolatedSource(settings, context) if settings.kind in NATIVE else source
