"""Post JSON with a time limit, trying again what may pass: refused, 408, 429, 5xx, time-outs."""

from __future__ import annotations

import http.client
import json
import random
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from acktrail.errors import AlertUndelivered

_PASSING = {408, 425, 429}
_MOST_WAIT_S = 10.0
_ANSWER = 1_000_000
"""Bytes of an answer that are read."""


@dataclass(frozen=True)
class Patience:
    """How long one request may take, and for how long a failing one is tried again."""

    timeout_s: float = 10.0
    give_up_s: float = 30.0


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A receiver that moved is a mistake in the settings: its token would follow elsewhere."""

    def redirect_request(self, *_args: Any, **_kwargs: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirects)


def post(
    url: str,
    body: Any,
    headers: Callable[[bytes], Mapping[str, str]],
    patience: Patience,
) -> bytes:
    """Post *body* to *url*: the answer's body; AlertUndelivered when it was not taken in time.

    *headers* are made again for each attempt, since a signature holds the time.
    """
    data = json.dumps(body, separators=(",", ":"), sort_keys=True).encode()
    ends = time.monotonic() + patience.give_up_s
    wait = 0.2
    while True:
        problem, passing, asked = _attempt(url, data, headers(data), patience.timeout_s)
        if isinstance(problem, bytes):
            return problem
        pause = min(asked or random.uniform(wait / 2, wait), _MOST_WAIT_S)
        if not passing or time.monotonic() + pause > ends:
            raise AlertUndelivered(f"{shown(url)} {problem}")
        time.sleep(pause)
        wait = min(wait * 2, _MOST_WAIT_S)


def shown(url: str) -> str:
    """The address without what may be secret: user, password, path and query."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    return f"{parts.scheme}://{host}:{parts.port}" if parts.port else f"{parts.scheme}://{host}"


def _attempt(
    url: str, data: bytes, headers: Mapping[str, str], timeout_s: float
) -> tuple[str | bytes, bool, float | None]:
    """What went wrong, whether it may pass, and the pause the server asked for; or the answer."""
    request = urllib.request.Request(
        url, data=data, headers={"Content-Type": "application/json", **headers}, method="POST"
    )
    try:
        with _OPENER.open(request, timeout=timeout_s) as answer:
            return answer.read(_ANSWER), False, None
    except urllib.error.HTTPError as error:
        said = _body(error)
        passing = error.code in _PASSING or error.code >= 500
        return (
            f"answered {error.code} {said}".rstrip(),
            passing,
            _asked(error.headers.get("Retry-After")),
        )
    except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
        reason = getattr(error, "reason", None) or error
        said = str(getattr(reason, "strerror", None) or reason) or type(error).__name__
        return f"did not answer: {said.lower()}", True, None


def _body(error: urllib.error.HTTPError) -> str:
    """The beginning of what a receiver answers when it refuses, if it comes."""
    try:
        return error.read(300).decode(errors="replace").strip()
    except (http.client.HTTPException, OSError):
        return ""


def _asked(retry_after: str | None) -> float | None:
    """Seconds asked for; the form with a date is left to our own pauses."""
    try:
        return max(0.0, float(retry_after or ""))
    except ValueError:
        return None
