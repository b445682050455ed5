"""Servers asked over HTTP: Prometheus, scrape targets, Alertmanager, other receivers."""

from __future__ import annotations

import socket
import ssl
import time
from typing import Any
from urllib.parse import urlsplit

from acktrail.errors import SourceUnavailable
from acktrail.operate.probes.clocks import clock_of
from acktrail.operate.probes.row import FAILED, OK, WARNING, Clock, Probe, Row, counted
from acktrail.settings.alerts import AlertSettings
from acktrail.settings.sources import PrometheusSource, ScrapeSource

TIMEOUT_S = 5.0
_WINDOW_MS = 5 * 60 * 1000


def prometheus_probe(settings: PrometheusSource) -> Probe:
    """Ask for five minutes of the metrics that the source reads."""
    what = f"source {settings.name}"
    return Probe(what, lambda: _prometheus(what, _quick(settings)))


def _prometheus(what: str, settings: PrometheusSource) -> list[Row | Clock]:
    from acktrail.metrics.names import name_pattern
    from ingest.http_access import HttpAccess
    from ingest.sources.prometheus_api import Prometheus, selector

    access = HttpAccess.of(settings)
    server = Prometheus(settings.url, access)
    try:
        now = int((time.time() - settings.late_s) * 1000)
        wanted = selector(name_pattern(settings.metrics), settings.match)
        found = server.raw(wanted, now - _WINDOW_MS, now)
    finally:
        server.close()
    clock = _clock(settings.url, access)
    if not found:
        said = (
            f"{settings.url} answers, and has none of our metrics in the last 5 minutes. Does it "
            "scrape the producers and brokers? Is `match` right? See docs/agents.md, Prometheus."
        )
        return [Row(what, WARNING, said), *clock]
    return [Row(what, OK, f"{settings.url}: {len(found)} series in the last 5 minutes"), *clock]


def scrape_probe(settings: ScrapeSource) -> Probe:
    """One round over all targets, as the agent does it; nothing is written."""
    what = f"source {settings.name}"
    return Probe(what, lambda: _scrape(what, _quick(settings)))


def _scrape(what: str, settings: ScrapeSource) -> list[Row | Clock]:
    from ingest.http_access import HttpAccess
    from ingest.registry import SourceContext, build_source

    source = build_source(settings, SourceContext("doctor"))
    samples = sum(batch.rows.num_rows for batch in source.poll(TIMEOUT_S))
    notes = source.health().notes
    if notes:
        state = FAILED if any(note.startswith("No metrics from") for note in notes) else WARNING
        return [Row(what, state, " ".join(notes))]
    access = HttpAccess.of(settings)
    clocks = [each for target in settings.targets for each in _clock(target, access)]
    return [
        Row(what, OK, f"{counted(len(settings.targets), 'target')}, {samples} samples"),
        *clocks,
    ]


def _quick(settings: Any) -> Any:
    return settings.model_copy(update={"timeout_s": min(settings.timeout_s, TIMEOUT_S)})


def _clock(url: str, access: Any) -> list[Row | Clock]:
    """The server's time; none where it does not say."""
    import requests

    asked = time.time()
    try:
        with access.session() as session:
            answer = session.get(url, headers=access.headers(), timeout=TIMEOUT_S, stream=True)
            answer.close()
    except requests.RequestException:
        return []
    return clock_of(urlsplit(url).netloc, answer.headers, asked)


def receiver_probes(settings: AlertSettings) -> list[Probe]:
    """Every receiver; no alert is sent."""
    probes = [
        Probe(f"alertmanager {url}", lambda url=url: _alertmanager(url, settings))  # type: ignore[misc]
        for url in settings.alertmanager_urls
    ]
    teams = settings.teams_url.get_secret_value() if settings.teams_url else None
    asked = {
        "webhook": ("webhook_url", settings.webhook_url),
        "slack": ("slack_url", settings.slack_url if settings.slack_token else None),
        "teams": ("teams_url", teams),
        "pagerduty": ("pagerduty_url", settings.pagerduty_url if settings.pagerduty_key else None),
    }
    probes += [
        Probe(name, lambda name=name, key=key, url=url: _reached(name, key, url))  # type: ignore[misc]
        for name, (key, url) in asked.items()
        if url
    ]
    if not probes:
        said = (
            "no receiver: alerts stay in the outbox. Set `alerts.alertmanager_urls`, a webhook, "
            "Slack, Teams or PagerDuty"
        )
        probes.append(Probe("alerts", lambda: [Row("alerts", WARNING, said)]))
    return probes


def _alertmanager(url: str, settings: AlertSettings) -> list[Row | Clock]:
    import requests

    from ingest.http_access import HttpAccess, why

    what = f"alertmanager {url}"
    token = settings.alertmanager_token
    access = HttpAccess(bearer_token=token.get_secret_value() if token else None)
    asked = time.time()
    try:
        with access.session() as session:
            answer = session.get(
                f"{url}/api/v2/status", headers=access.headers(), timeout=TIMEOUT_S
            )
    except requests.RequestException as error:
        raise SourceUnavailable(
            f"does not answer: {why(error)}. Alerts would stay in the outbox. Check "
            "`alerts.alertmanager_urls`, and that it runs."
        ) from None
    if answer.status_code != 200:
        said = f"answers HTTP {answer.status_code}. Is it an Alertmanager? Is the token right?"
        return [Row(what, FAILED, said)]
    try:
        about = answer.json()
        version, state = about["versionInfo"]["version"], about["cluster"]["status"]
    except (ValueError, KeyError, TypeError):
        return [Row(what, FAILED, "answers, but not as an Alertmanager does")]
    clocks = clock_of(urlsplit(url).netloc, answer.headers, asked)
    return [Row(what, OK, f"version {version}, cluster {state}"), *clocks]


def _reached(name: str, key: str, url: str) -> list[Row | Clock]:
    """A connection, with TLS where it is asked for; not a byte of HTTP, so nobody is alerted."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        with socket.create_connection((host, port), TIMEOUT_S) as plain:
            if parts.scheme == "https":
                ssl.create_default_context().wrap_socket(plain, server_hostname=host).close()
    except OSError as error:
        raise SourceUnavailable(
            f"{host}:{port} cannot be reached: {error.strerror or error}. Check "
            f"`alerts.{key}`, and that the receiver runs."
        ) from None
    return [Row(name, OK, f"{host}:{port} is reachable; `acktrail alerts test` sends one")]
