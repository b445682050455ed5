"""Configuration blocks: the settings a client really runs with, and the guarantee they give.

A Java client prints all its settings at its start. What it prints is not always what it does:

* before 2.5 the block shows the values before the idempotent producer overrides them (KAFKA-8928);
* 3.0.0 and 3.1.0 print enable.idempotence = true though it is off unless the user asked for it
  (KAFKA-13598), which the block does not tell;
* from 3.0.1 on retries=0, acks other than all, or more than five requests in flight switch
  idempotence off (4.x refuses the last).
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Literal

from acktrail.kafka_defaults import RETRIES

Guarantee = Literal["none", "at_most_once", "at_least_once", "exactly_once_per_partition"]
_MAX_IN_FLIGHT = 5

# common/config/AbstractConfig.java, logAll: "ProducerConfig values: " and a line "\tkey = value"
# for each setting, sorted; the stock layout ends it with a line that holds only " (logger)".
_TITLE = re.compile(r"\b(Producer|Consumer)Config values:")
_SETTING = re.compile(r"[ \t]{0,40}([a-z][\w.-]{0,120}) = ?(.{0,4000})")
_INLINE = re.compile(r"values: ?\{([^{}]{1,20000})\}")
_SECRET = re.compile(
    r"password|secret|jaas|token|credential|user\.info|keystore\.key|private|api\.key"
)
HIDDEN = "[hidden]"


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    """What a producer runs with. None where neither the block nor a default tells."""

    acks: str | None
    retries: int | None
    delivery_timeout_ms: int | None
    request_timeout_ms: int | None
    linger_ms: int | None
    max_block_ms: int | None
    retry_backoff_ms: int | None
    retry_backoff_max_ms: int | None
    max_in_flight: int | None
    idempotent: bool | None
    """Whether idempotence is really on; None where the block cannot tell."""
    guarantee: Guarantee | None
    ordered: bool | None
    """Whether a retry keeps the order within a partition."""
    overridden: dict[str, str]
    """Settings that differ from the version's defaults."""


def read_block(lines: str) -> tuple[str, dict[str, str]] | None:
    """The kind of a block and its settings, secrets hidden; None if it is not a client's."""
    title = _TITLE.search(lines)
    if title is None:
        return None
    settings: dict[str, str] = {}
    inline = _INLINE.match(lines, title.end() - len("values:"))
    if inline is not None:
        pairs = [part.partition("=") for part in inline.group(1).split(",")]
        found = [(name.strip(), value.strip()) for name, _, value in pairs if name.strip()]
    else:
        found = []
        for line in lines[title.end() :].split("\n")[:600]:
            setting = _SETTING.match(line)
            if setting is not None:
                found.append((setting.group(1), setting.group(2).strip()))
    for name, value in found:
        settings[name] = HIDDEN if _SECRET.search(name) is not None and value != "null" else value
    kind = "config_block" if title.group(1) == "Producer" else "consumer_config_block"
    return kind, settings


def producer_settings(settings: dict[str, str], version: str | None = None) -> ProducerSettings:
    """The effective settings of a producer of *version*; inferred from the block where unknown."""
    since = _parse(version) if version is not None else _version_of(settings)
    defaults = defaults_of(since)
    effective = {**defaults, **{k: v for k, v in settings.items() if v != "null"}}
    acks = _acks(effective.get("acks"))
    retries = _integer(effective.get("retries"))
    in_flight = _integer(effective.get("max.in.flight.requests.per.connection"))
    idempotent = _idempotent(effective, acks, retries, in_flight, since)
    if idempotent and since < (2, 5):  # printed before they were overridden
        acks, retries = "all", retries or RETRIES
    request = _integer(effective.get("request.timeout.ms"))
    linger = _integer(effective.get("linger.ms"))
    delivery = _integer(effective.get("delivery.timeout.ms"))
    if delivery is not None and request is not None and linger is not None:
        delivery = max(delivery, linger + request)  # KafkaProducer raises it, with a warning
    return ProducerSettings(
        acks=acks,
        retries=retries,
        delivery_timeout_ms=delivery,
        request_timeout_ms=request,
        linger_ms=linger,
        max_block_ms=_integer(effective.get("max.block.ms")),
        retry_backoff_ms=_integer(effective.get("retry.backoff.ms")),
        retry_backoff_max_ms=_integer(effective.get("retry.backoff.max.ms")),
        max_in_flight=in_flight,
        idempotent=idempotent,
        guarantee=guarantee(acks, retries, idempotent),
        ordered=_ordered(retries, in_flight, idempotent),
        overridden={
            name: settings[name]
            for name, default in defaults.items()
            if name in settings and not _same(name, settings[name], default)
        },
    )


def guarantee(acks: str | None, retries: int | None, idempotent: bool | None) -> Guarantee | None:
    """What the settings promise for records the producer did not report as failed.

    With acks=1 an acknowledged record goes with its leader, and a retry may double one: no promise.
    """
    if idempotent:
        return "exactly_once_per_partition"
    if acks == "0" or retries == 0:
        return "at_most_once"
    if acks is None or retries is None:
        return None
    return "at_least_once" if acks == "all" else "none"


def _ordered(retries: int | None, in_flight: int | None, idempotent: bool | None) -> bool | None:
    if idempotent or retries == 0 or in_flight == 1:
        return True
    if retries is None or in_flight is None or idempotent is None:
        return None
    return False


def _idempotent(
    effective: dict[str, str],
    acks: str | None,
    retries: int | None,
    in_flight: int | None,
    since: tuple[int, ...],
) -> bool | None:
    if since < (0, 11):
        return False
    asked = effective.get("enable.idempotence") == "true"
    transactional = effective.get("transactional.id") not in (None, "", "null")
    if since < (3, 0):
        return asked or transactional
    if transactional or not asked:
        return asked
    if acks != "all" or retries == 0 or (in_flight is not None and in_flight > _MAX_IN_FLIGHT):
        return False
    if since[:3] in ((3, 0, 0), (3, 1, 0)):
        return None
    return True


@lru_cache(maxsize=1)
def _table() -> list[tuple[tuple[int, ...], dict[str, str]]]:
    text = files(__package__).joinpath("producer_defaults.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    return [
        (_parse(row["since"]), {k: v for k, v in row.items() if v and k != "since"}) for row in rows
    ]


def defaults_of(version: tuple[int, ...]) -> dict[str, str]:
    """The defaults of a producer of *version*."""
    table = _table()
    chosen = table[0][1]
    for since, defaults in table:
        if version >= since:
            chosen = defaults
    return chosen


def _version_of(settings: dict[str, str]) -> tuple[int, ...]:
    """The newest version whose settings the block all names; the newest of all if it has few."""
    table = _table()
    if len(settings) < 20:
        return table[-1][0]
    best = table[0][0]
    for since, defaults in table:
        if all(name in settings for name in defaults):
            best = since
    return best


def _parse(version: str) -> tuple[int, ...]:
    numbers = tuple(int(part) for part in re.findall(r"\d{1,6}", version)[:3])
    return numbers or _table()[-1][0]


def _acks(value: str | None) -> str | None:
    return "all" if value in ("-1", "all") else value


def _integer(value: str | None) -> int | None:
    return int(value) if value is not None and re.fullmatch(r"-?\d{1,18}", value) else None


def _same(name: str, value: str, default: str) -> bool:
    return _acks(value) == _acks(default) if name == "acks" else value == default
