"""The kinds of values that settings take, each refused with what to write instead."""

from __future__ import annotations

import re
import zoneinfo
from functools import cache
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from acktrail.nearest import did_you_mean


def _not_bool(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("write a number")
    return value


Number = Annotated[float, BeforeValidator(_not_bool), Field(allow_inf_nan=False)]
Port = Annotated[int, BeforeValidator(_not_bool), Field(ge=0, le=65535)]
Count = Annotated[int, BeforeValidator(_not_bool)]
Text = Annotated[str, Field(min_length=1)]


@cache
def _zones() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones())


def known_zone(name: str) -> str:
    """*name*, where it is a time zone of this machine."""
    if name == "UTC" or name in _zones():
        return name
    if not _zones():
        raise ValueError("this machine has no time zone data: install tzdata")
    cities = {zone.rpartition("/")[2].lower(): zone for zone in sorted(_zones())}
    city = cities.get(name.rpartition("/")[2].replace(" ", "_").lower())
    near = f" Did you mean {city}?" if city else did_you_mean(name, _zones())
    raise ValueError(f"there is no time zone {name}.{near or ' Write for example Europe/Berlin.'}")


Zone = Annotated[str, AfterValidator(known_zone)]


def _absolute_glob(path: str) -> str:
    if not path.strip() or "\0" in path:
        raise ValueError("the path is empty" if not path.strip() else "the path has a NUL in it")
    if not path.startswith("/"):
        raise ValueError(
            "write an absolute path: an agent may be started in any directory"
            + (", and ~ is not replaced" if path.startswith("~") else "")
        )
    if re.search(r"\{[^/]*,[^/]*\}", path):
        raise ValueError("{a,b} does not match anything: list both paths")
    if re.search(r"\[[^\]/]*(/|\Z)", path):
        raise ValueError("the [ is never closed: write [[] for the character itself")
    return path


PathGlob = Annotated[str, AfterValidator(_absolute_glob)]
TopicName = Annotated[str, Field(max_length=249, pattern=r"^[A-Za-z0-9._-]+$")]


def _plain_address(address: str) -> str:
    """*address*, refused where it carries a password: addresses are printed, settings are not."""
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError as error:
        raise ValueError(f"not an address: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or re.search(r"\s", address):
        raise ValueError("not an http:// or https:// address")
    if port == 0:
        raise ValueError("not an address: the port is 0")
    if parts.username is not None or parts.password is not None:
        raise ValueError("credentials in the address: use the settings for them instead")
    return address.rstrip("/")


Address = Annotated[str, AfterValidator(_plain_address)]

_SERVER = re.compile(
    r"(?:(?:PLAINTEXT|SSL|SASL_PLAINTEXT|SASL_SSL)://)?"
    r"(?:[A-Za-z0-9._-]+|\[[0-9a-fA-F:.%]+\])(?::(?P<port>\d{1,5}))?"
)


def _servers(text: str) -> str:
    for server in text.split(","):
        found = _SERVER.fullmatch(server.strip())
        port = int(found["port"] or 9092) if found else 0
        if not 0 < port < 65536:
            raise ValueError(f"{server.strip()!r} is not host:port. Write host:port,host:port")
    return text


Servers = Annotated[str, AfterValidator(_servers)]


def _host_port(text: str) -> str:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or not 0 < int(port) < 65536 or re.search(r"\s|/", host):
        raise ValueError("write host:port, for example 127.0.0.1:9400")
    return text


HostPort = Annotated[str, AfterValidator(_host_port)]
