"""Jolokia's answers as samples, named as the default export of a JMX exporter names them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any

from acktrail.metrics.names import jmx_name, mbeans, read_name
from ingest.sources.exposition import Exposition, Sample

_KEY = re.compile(r'(?:^|,)([^=,"]+)=("(?:[^"\\]|\\.)*"|[^,]*)')
_UNQUOTED = re.compile(r"\\(.)", re.DOTALL)


def read_requests(wanted: Collection[str]) -> list[dict[str, str]]:
    """The bulk request for the *wanted* canonical metrics."""
    return [{"type": "read", "mbean": name} for name in mbeans(wanted)]


def read_answers(answers: Any, wanted: Collection[str]) -> tuple[Exposition, list[str]]:
    """The samples in a bulk answer, and what went wrong in it.

    A bean that does not exist (404) is not an error: many are made at their first event.
    """
    if not isinstance(answers, list):
        raise ValueError("the answer to a list of requests is not a list")
    samples: dict[Sample, None] = {}
    errors: list[str] = []
    other = 0
    for answer in answers:
        status = answer.get("status") if isinstance(answer, dict) else None
        if status not in (200, 404):
            errors.append(f"status {status}: {str(answer)[:200]}")
        if status != 200:
            continue
        for sample in _samples(answer):
            meaning = read_name(sample.metric, dict(sample.labels))
            if meaning is not None and meaning.name in wanted:
                samples[sample] = None
            else:
                other += 1
    return Exposition(tuple(samples), other, 0), errors


def _samples(answer: dict[str, Any]) -> Iterator[Sample]:
    request = answer.get("request") or {}
    name, value = str(request.get("mbean", "")), answer.get("value")
    if not isinstance(value, dict):
        yield from _attributes(name, {str(request.get("attribute", "")): value})
    elif "*" in name or "?" in name:
        for bean, attributes in value.items():
            if isinstance(attributes, dict):
                yield from _attributes(bean, attributes)
    else:
        yield from _attributes(name, value)


def _attributes(bean: str, attributes: dict[str, Any]) -> Iterator[Sample]:
    domain, keys = object_name(bean)
    kind = keys.pop("type", "")
    labels = tuple(sorted((re.sub(r"\W", "_", key), text) for key, text in keys.items()))
    for attribute, value in attributes.items():
        number = _number(value)
        if number is not None:
            yield Sample(jmx_name(domain, kind, attribute), labels, number)


def object_name(text: str) -> tuple[str, dict[str, str]]:
    """Domain and keys of a JMX object name; quoted values without their quotes."""
    domain, _, rest = text.partition(":")
    keys = {}
    for key, value in _KEY.findall(rest):
        quoted = len(value) >= 2 and value.startswith('"')
        keys[key] = _UNQUOTED.sub(_unescaped, value[1:-1]) if quoted else value
    return domain, keys


def _unescaped(match: re.Match[str]) -> str:
    return "\n" if match.group(1) == "n" else match.group(1)


def _number(value: Any) -> float | None:
    """A number, or a text that is one (Jolokia gives "NaN"); None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except ValueError:
        return None
