"""The reporters of this process: one for each audit target, shared by all clients that have it."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Mapping
from typing import Any

from acktrail_client.audit import Audit
from acktrail_client.reporter import Reporter
from acktrail_client.settings import inherited

_lock = threading.Lock()
_reporters: dict[str, Reporter] = {}


def reporter_for(audit: Audit, conf: Mapping[str, Any]) -> Reporter:
    """The reporter for the audit of a client with the settings *conf*."""
    access = audit.conf if audit.bootstrap_servers else {**inherited(conf), **audit.conf}
    target = repr((audit.topic, audit.bootstrap_servers, sorted(map(repr, access.items()))))
    with _lock:
        found = _reporters.get(target)
        if found is None:
            found = _reporters[target] = Reporter(audit, conf)
        return found


def problems() -> dict[str, int]:
    """What went wrong with the audit in this process, and how often."""
    found: dict[str, int] = {}
    for reporter in list(_reporters.values()):
        for kind, count in list(reporter.problems.items()):
            found[kind] = found.get(kind, 0) + count
    return found


def _at_exit() -> None:
    for reporter in list(_reporters.values()):
        reporter.last_reports()


def _in_child() -> None:
    """A forked child has none of the threads, and does not report under its parent's sessions."""
    global _lock  # noqa: PLW0603 - the parent may have held it
    _lock = threading.Lock()
    for reporter in _reporters.values():
        reporter.orphan()
    _reporters.clear()


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
