"""Which settings of the application's client are used, and which are reported: by allow-lists."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any

_INHERITED = ("bootstrap.servers", "metadata.broker.list", "client.dns.lookup")
_INHERITED_PREFIXES = ("security.", "sasl.", "ssl.", "ssl_")

_NAMES = {
    # Name in the report: names in librdkafka, the first that is set counts.
    "acks": ("acks", "request.required.acks"),
    "retries": ("retries", "message.send.max.retries"),
    "message.timeout.ms": ("message.timeout.ms", "delivery.timeout.ms"),
    "request.timeout.ms": ("request.timeout.ms",),
    "linger.ms": ("linger.ms", "queue.buffering.max.ms"),
    "enable.idempotence": ("enable.idempotence",),
    "max.in.flight": ("max.in.flight", "max.in.flight.requests.per.connection"),
    "transactional.id": ("transactional.id",),
    "compression.type": ("compression.type", "compression.codec"),
    "partitioner": ("partitioner",),
    "group.id": ("group.id",),
    "auto.offset.reset": ("auto.offset.reset",),
    "enable.auto.commit": ("enable.auto.commit",),
    "enable.auto.offset.store": ("enable.auto.offset.store",),
    "isolation.level": ("isolation.level",),
    "partition.assignment.strategy": ("partition.assignment.strategy",),
    "group.instance.id": ("group.instance.id",),
}
_PRODUCER_DEFAULTS = {
    "acks": "all",
    "retries": "2147483647",
    "message.timeout.ms": "300000",
    "request.timeout.ms": "30000",
    "linger.ms": "5",
    "enable.idempotence": "false",
    "max.in.flight": "1000000",
}


def inherited(conf: Mapping[str, Any]) -> dict[str, Any]:
    """What the reporter's producer takes from *conf*: where the cluster is, and access to it."""
    return {
        name: value
        for name, value in conf.items()
        if name in _INHERITED or name.startswith(_INHERITED_PREFIXES)
    }


def reported(conf: Mapping[str, Any], host: str, *, producer: bool) -> dict[str, str]:
    """What reports say of the client; nothing that may be secret is in the list of names."""
    found = {
        "client_id": _text(conf.get("client.id", "rdkafka")),
        "host": host or socket.gethostname(),
    }
    defaults = _PRODUCER_DEFAULTS if producer else {}
    for name, spelt in _NAMES.items():
        given = next((conf[key] for key in spelt if conf.get(key) is not None), None)
        if given is not None:
            found[name] = _text(given)
        elif name in defaults:
            found[name] = defaults[name]
    if found.get("acks") == "-1":
        found["acks"] = "all"
    if producer and "transactional.id" in found:
        found["enable.idempotence"] = "true"
    if producer and found["enable.idempotence"] == "true":
        found["acks"] = "all"
        if found["max.in.flight"] == _PRODUCER_DEFAULTS["max.in.flight"]:
            found["max.in.flight"] = "5"
    return found


def number(conf: Mapping[str, Any], names: tuple[str, ...], default: int) -> int:
    """A setting that is a number; its default where it is none."""
    for name in names:
        try:
            return int(conf[name])
        except (KeyError, TypeError, ValueError):
            continue
    return default


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
