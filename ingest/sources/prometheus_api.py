"""Ask a Prometheus server, strictly: whole answers or an error.

prometheus-api-client does the talking; this wrapper adds what it leaves open. Label values are
escaped, every request has a timeout, ranges are split without overlap or gap, and an answer that
is marked as partial, cut short or not JSON is an error: short data never looks whole.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from acktrail.errors import ConfigError, PartialResponse, RangeTooLarge, SourceUnavailable
from ingest.http_access import HttpAccess, why

MAX_POINTS = 11_000
"""Points per series that a server answers to one range query."""

_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*\Z")
_RETRIED = (429, 500, 502, 503, 504)
_TOO_LARGE = ("too many samples", "exceeded maximum resolution", "too many points", "too many data")


@dataclass(frozen=True)
class Series:
    """One series: its labels (the name among them) and its samples in order of time."""

    labels: Mapping[str, str]
    samples: tuple[tuple[int, float], ...]
    """(epoch milliseconds, value)."""


def selector(name_regex: str, match: Mapping[str, str]) -> str:
    """A selector of all series whose name matches *name_regex* and that have the labels *match*.

    Values are taken literally, whatever characters they hold.
    """
    parts = [f"__name__=~{quoted(name_regex)}"]
    for label, value in sorted(match.items()):
        if not _LABEL.match(label):
            raise ConfigError(f"{label!r} is not a label name. Change `match` of the source.")
        parts.append(f"{label}={quoted(value)}")
    return "{" + ",".join(parts) + "}"


def quoted(text: str) -> str:
    """*text* as a PromQL string: no character of it can end the string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    escaped = escaped.replace("\r", "\\r").replace("\0", "\\x00")
    return f'"{escaped}"'


def grid(start_ms: int, end_ms: int, step_ms: int) -> Iterator[tuple[int, int]]:
    """Inclusive pieces of the grid points in (start, end], each of fewer than MAX_POINTS points.

    Points are the multiples of the step, so that any split of a range gives the same points.
    """
    first = (start_ms // step_ms + 1) * step_ms
    last = end_ms // step_ms * step_ms
    while first <= last:
        until = min(last, first + (MAX_POINTS - 2) * step_ms)
        yield first, until
        first = until + step_ms


class Prometheus:
    """One server, or anything that speaks the same query API (Thanos, Mimir, VictoriaMetrics)."""

    def __init__(self, url: str, access: HttpAccess) -> None:
        from prometheus_api_client.prometheus_connect import PrometheusConnect
        from urllib3.util.retry import Retry

        self.url = url
        self._access = access
        session = access.session()
        session.hooks["response"].append(_refuse_partial)
        retry = Retry(
            total=3,
            read=1,
            backoff_factor=0.2,
            status_forcelist=_RETRIED,
            raise_on_status=False,
            respect_retry_after_header=False,
        )
        timeout: Any = access.timeout_s
        self._connect = PrometheusConnect(url=url, session=session, retry=retry, timeout=timeout)

    def raw(self, selector: str, start_ms: int, end_ms: int) -> list[Series]:
        """Every stored sample with start < time <= end."""
        if end_ms <= start_ms:
            return []
        # Servers before 3.0 include the left end of a range and later ones do not: what lies
        # on or before the start is cut off here.
        found = self._ask(
            lambda: self._connect.custom_query(
                f"{selector}[{end_ms - start_ms}ms]", params={"time": f"{end_ms / 1000:.3f}"}
            )
        )
        return [_series(item, start_ms, end_ms) for item in found]

    def on_grid(self, query: str, start_ms: int, end_ms: int, step_s: int) -> list[Series]:
        """The values at multiples of the step in (start, end], by range queries."""
        joined: dict[str, tuple[Mapping[str, str], list[tuple[int, float]]]] = {}
        for first, last in grid(start_ms, end_ms, step_s * 1000):
            found = self._ask(
                lambda first=first, last=last: self._connect.custom_query_range(
                    query, _time(first), _time(last), str(step_s)
                )
            )
            for item in found:
                series = _series(item, start_ms, end_ms)
                key = json.dumps(series.labels, sort_keys=True)
                joined.setdefault(key, (series.labels, []))[1].extend(series.samples)
        return [Series(labels, tuple(samples)) for labels, samples in joined.values()]

    def close(self) -> None:
        """Let go of the connections."""
        self._connect.close()

    def _ask(self, request: Any) -> list[dict[str, Any]]:
        import requests
        from prometheus_api_client.exceptions import PrometheusApiClientException

        try:
            self._connect.headers = self._access.headers()
            answer = request()
        except requests.exceptions.SSLError as error:
            raise ConfigError(
                f"No connection to Prometheus at {self.url}: {why(error)}. "
                "Set `ca_file` to the authority that signed its certificate."
            ) from None
        except (requests.JSONDecodeError, KeyError, TypeError):
            raise SourceUnavailable(
                f"{self.url} does not answer as Prometheus does: the answer is not whole JSON of "
                "its API. Check `url` of the source."
            ) from None
        except requests.RequestException as error:
            raise SourceUnavailable(
                f"No answer from Prometheus at {self.url}: {why(error)}. "
                "Check `url` of the source, and that the server runs."
            ) from None
        except PrometheusApiClientException as error:
            raise _explained(self.url, str(error)) from None
        if not isinstance(answer, list):
            raise SourceUnavailable(f"{self.url}: the answer has no list of series.")
        return answer


def _time(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def _series(item: Mapping[str, Any], after_ms: int, until_ms: int) -> Series:
    try:
        pairs = [(round(float(at) * 1000), float(value)) for at, value in item["values"]]
        labels = {str(k): str(v) for k, v in item["metric"].items()}
    except (KeyError, TypeError, ValueError) as error:
        raise SourceUnavailable(f"a series in the answer cannot be read: {error!r}") from None
    return Series(labels, tuple((at, value) for at, value in pairs if after_ms < at <= until_ms))


def _refuse_partial(response: Any, *_args: Any, **_kwargs: Any) -> None:
    """A response hook: an answer that admits to be incomplete is an error.

    Thanos and Mimir list `warnings`, VictoriaMetrics sets `isPartial`.
    """
    body = response.content
    if response.status_code != 200 or not (b'"warnings"' in body or b'"isPartial"' in body):
        return
    try:
        answer = response.json()
    except ValueError:
        return  # not JSON: reported as such by the caller
    if not isinstance(answer, dict):
        return
    warnings = answer.get("warnings") or []
    if warnings or answer.get("isPartial"):
        said = "; ".join(str(w) for w in warnings)[:500] or "isPartial"
        raise PartialResponse(
            f"{response.url.split('?')[0]}: the answer is partial ({said}). Nothing of it is used; "
            "the range will be asked for again."
        )


def _explained(url: str, text: str) -> Exception:
    """Our error for the one error class of the client library, by what the server said."""
    status = re.match(r"HTTP Status Code (\d+) \((.*)\)\Z", text, re.DOTALL)
    code, said = (int(status.group(1)), _message(status.group(2))) if status else (0, text[:200])
    answered = f"{url} answered HTTP {code}{f' ({said})' if said else ''}."
    if any(sign in text for sign in _TOO_LARGE):
        return RangeTooLarge(f"The range is too large for the server: {answered}")
    if code in (401, 403):
        return ConfigError(
            f"{url} refuses our credentials (HTTP {code}). Set `bearer_token_file`, or `username` "
            "and `password`, of the source."
        )
    if code in (400, 404, 405):
        return ConfigError(f"{answered} Set `url` of the source to the root of a Prometheus API.")
    return SourceUnavailable(answered)


def _message(body: str) -> str:
    """The server's own message in *body*, a bytes literal of its answer; short, one line."""
    try:
        text = ast.literal_eval(body).decode("utf-8", "replace")
    except (ValueError, SyntaxError, AttributeError):
        text = body
    try:
        text = str(json.loads(text)["error"])
    except (ValueError, KeyError, TypeError):
        text = re.sub(r"<[^>]*>", " ", text)  # a page of a proxy
    return " ".join(text.split())[:120]
