"""Who was told what, when: the Alertmanager asked once a second."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from lab.processes import now_ms
from lab.warning import alerts


@dataclass
class Page:
    """One alert, from the first to the last time it was active."""

    fingerprint: str
    severity: str
    owner: str
    fault: str
    first_ms: int
    last_ms: int
    times: int = 1
    """How often it became active."""
    texts: list[dict[str, str]] = field(default_factory=list)
    """Its annotations, each time they had changed."""
    starts_at: str = ""
    cluster: str = ""

    @property
    def began_ms(self) -> int:
        """Its `startsAt`."""
        return int(datetime.fromisoformat(self.starts_at).timestamp() * 1000)

    def said(self, name: str) -> str:
        """All that the annotation *name* ever said."""
        return " ".join(text.get(name, "") for text in self.texts)


class Pager:
    """Keeps every alert that was ever active."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, name="pager")
        self._found: dict[str, Page] = {}
        self._active: frozenset[str] = frozenset()

    def __enter__(self) -> Pager:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        self._thread.join(10)

    def since(self, at_ms: int, severity: str = "page") -> list[Page]:
        """Alerts that were active after *at_ms*."""
        found = [p for p in dict(self._found).values() if p.severity == severity]
        return sorted((p for p in found if p.last_ms >= at_ms), key=lambda p: p.first_ms)

    def active(self, severity: str = "page") -> list[Page]:
        """Those that are active now."""
        now = self._active
        return [p for p in self.since(0, severity) if p.fingerprint in now]

    def _look(self) -> None:
        while not self._stop.wait(1):
            now, active = now_ms(), set()
            for alert in alerts(self._url):
                self._take(alert, now)
                active.add(alert["labels"]["fingerprint"])
            self._active = frozenset(active)

    def _take(self, alert: dict[str, Any], now: int) -> None:
        labels, text = alert["labels"], alert["annotations"]
        name = labels["fingerprint"]
        page = self._found.get(name)
        if page is None:
            page = Page(name, labels["severity"], labels["owner"], labels["fault"], now, now)
            page.starts_at, page.cluster = alert["startsAt"], labels["cluster"]
        elif name not in self._active:
            page.times += 1
        page.last_ms = now
        if not page.texts or page.texts[-1] != text:
            page.texts.append(text)
        self._found[name] = page


def wait_quiet(pager: Pager, seconds: float, within: float) -> None:
    """Until no page has been active for *seconds*."""
    deadline = time.monotonic() + within
    quiet_since = time.monotonic()
    while time.monotonic() - quiet_since < seconds:
        active = pager.active()
        if active:
            quiet_since = time.monotonic()
        assert time.monotonic() < deadline, [p.texts[-1].get("summary") for p in active]
        time.sleep(1)
