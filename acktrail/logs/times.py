"""Timestamps as logs print them: read to ISO form, and to an instant where a zone is known.

A log4j `%d` has no zone, so the ISO form has none either: whoever knows the zone of the source
gives it when an instant is needed. A time without a date is not a timestamp.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_MONTHS = {
    name: number
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), 1
    )
}
# 2024-05-01 12:00:10,420   2024-05-01T12:00:10.420+09:00   2026-06-23 :: 12:59:39.201
_ISO = re.compile(
    r"(?<!\d)(?P<year>(?:19|20)\d\d)(?P<sep>[-/.])(?P<month>\d\d)(?P=sep)(?P<day>\d\d)"
    r"(?:[T_]|,? ?(?:::)? {0,2})(?P<clock>\d\d:\d\d:\d\d)(?P<fraction>[.,:]\d{1,9})?"
    r"(?P<zone>Z|\ ?[+-]\d\d:?\d\d(?!\d))?"
)
_GAP = re.compile(r"\]? {1,2}(?:\S{1,60}: )?[\[(]?")
# 20240501 12:00:10.420
_COMPACT = re.compile(
    r"(?<!\d)(?P<year>20\d\d)(?P<month>\d\d)(?P<day>\d\d)[T -](?P<clock>\d\d:\d\d:\d\d)"
    r"(?P<fraction>[.,]\d{1,9})?(?P<zone>Z|[+-]\d\d:?\d\d)?"
)
# 20/03/24 11:27:49 (Spark and Hadoop print the year first)
_SHORT_YEAR = re.compile(
    r"(?<![\d/])(?P<year>\d\d)/(?P<month>\d\d)/(?P<day>\d\d) (?P<clock>\d\d:\d\d:\d\d)"
    r"(?P<fraction>[.,]\d{1,9})?"
)
# 31-01-2025 10:00:00.123, 31.01.2025 10:00, 01/31/2025, 1:47:52 AM
_DAY_FIRST = re.compile(
    r"(?<!\d)(?P<one>\d\d?)(?P<sep>[-/.])(?P<two>\d\d?)(?P=sep)(?P<year>20\d\d),? {1,2}"
    r"(?P<clock>\d\d?:\d\d:\d\d)(?P<fraction>[.,]\d{1,9})? ?(?P<half>[AP]M)?"
)
# 01 May 2024 12:00:10,420   01-May-2024 12:00:10.420   01/May/2024:12:00:10 +0900
_NAMED = re.compile(
    r"(?<!\d)(?P<day>\d\d?)[-/ ](?P<name>[A-Za-z]{3})[a-z]{0,6}[-/ ](?P<year>20\d\d)[ :T]"
    r"(?P<clock>\d\d:\d\d:\d\d)(?P<fraction>[.,]\d{1,9})?(?P<zone>\ ?[+-]\d\d:?\d\d)?"
)
# Mar 28, 2018 3:14:15 PM (java.util.logging), Mar 28, 2018 @ 15:14:15.003 (Kibana)
_NAME_FIRST = re.compile(
    r"\b(?P<name>[A-Z][a-z]{2})[a-z]{0,6}\.? (?P<day>\d\d?),? (?P<year>20\d\d),? (?:@ )?"
    r"(?P<clock>\d\d?:\d\d:\d\d)(?P<fraction>[.,]\d{1,9})? ?(?P<half>[AP]M)?"
)
# W260131 07:00:00.5 (CockroachDB), [W 260131 07:00:00 (Tornado)
_LETTER_FIRST = re.compile(
    r"\A[\s>\[]{0,8}[DIWEF] ?(?P<year>\d\d)(?P<month>\d\d)(?P<day>\d\d) (?P<clock>\d\d:\d\d:\d\d)"
    r"(?P<fraction>\.\d{1,9})?"
)
_EPOCH = re.compile(r"\s{0,8}(1\d{9})\.(\d{3})\d{0,6}\s")
# [WARN] [01/31/2026 07:00:00.123] [thread] (Akka)
_AKKA = re.compile(
    r"\[\w{4,7}\] \[(?P<month>\d\d)/(?P<day>\d\d)/(?P<year>20\d\d) "
    r"(?P<clock>\d\d:\d\d:\d\d)(?P<fraction>\.\d{3})\] \["
)


def read_timestamp(text: str) -> str | None:
    """The first full timestamp in *text* (a line's head), in ISO form."""
    found = _ISO.search(text)
    if found is not None:
        # A wrapper's time, and right behind it the program's own, which counts.
        found = _ISO.match(text, _behind(text, found.end())) or found
        return _iso(found, found["year"], found["month"], found["day"], found["zone"])
    if "/" in text or "-" in text or "." in text or " " in text:
        return _read_rarer(text)
    return None


def _behind(text: str, end: int) -> int:
    gap = _GAP.match(text, end)
    return end if gap is None else gap.end()


def _read_rarer(text: str) -> str | None:
    for expression in (_SHORT_YEAR, _COMPACT, _NAMED, _NAME_FIRST, _LETTER_FIRST, _AKKA):
        found = expression.search(text)
        if found is not None:
            return _dated(found)
    epoch = _EPOCH.match(text)
    if epoch is not None:
        return from_epoch(int(epoch.group(1)), int(epoch.group(2)))
    return _day_first(text)


def _dated(found: re.Match[str]) -> str | None:
    named = found.groupdict()
    month = named["month"] if "month" in named else _MONTHS.get(found["name"].lower())
    year = found["year"] if len(found["year"]) == 4 else "20" + found["year"]
    return None if month is None else _iso(found, year, month, found["day"], named.get("zone"))


def _day_first(text: str) -> str | None:
    found = _DAY_FIRST.search(text)
    if found is not None:
        one, two = int(found["one"]), int(found["two"])
        if two > 12 >= one:
            return _iso(found, found["year"], one, two)
        if one > 12 or found["sep"] != "/":
            return _iso(found, found["year"], two, one)
    return None


def _iso(
    found: re.Match[str], year: str, month: str | int, day: str | int, zone: str | None = None
) -> str | None:
    clock = found["clock"]
    half = found.groupdict().get("half")
    hour = int(clock[:-6])
    if half is not None:
        hour = hour % 12 + (12 if half == "PM" else 0)
    fraction = found["fraction"]
    zone = "" if zone is None else zone.strip()
    date = f"{year}-{int(month):02d}-{int(day):02d}"
    if not (1 <= int(month) <= 12 and 1 <= int(day) <= 31 and hour <= 24):
        return None
    return f"{date}T{hour:02d}{clock[-6:]}{'.' + fraction[1:] if fraction else ''}{zone}"


def from_epoch(seconds: int, millis: int | None = None) -> str | None:
    """An instant since 1970 in ISO form, as UTC; None outside the years people log in."""
    if not 0 < seconds < 4_102_444_800:
        return None
    moment = datetime.fromtimestamp(seconds, UTC)
    fraction = "" if millis is None else f".{millis:03d}"
    return moment.strftime("%Y-%m-%dT%H:%M:%S") + fraction + "Z"


_INSTANT = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(Z|([+-])(\d\d):?(\d\d))?\Z"
)


def instant(ts: str | None, zone: str | None = None) -> datetime | None:
    """The instant meant by *ts*; one without an offset is in *zone* (UTC where none is given).

    In the hour that a zone has twice, the earlier one is meant.
    """
    found = None if ts is None else _INSTANT.match(ts)
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(found.group(i)) for i in range(1, 7))
    micros = int((found.group(7) or "0").ljust(6, "0")[:6])
    try:
        moment = datetime(year, month, day, hour, minute, second, micros)
        if found.group(8) is None:
            return moment.replace(tzinfo=_zone(zone)).astimezone(UTC)
        if found.group(8) == "Z":
            return moment.replace(tzinfo=UTC)
        offset = timedelta(hours=int(found.group(10)), minutes=int(found.group(11)))
        offset = -offset if found.group(9) == "-" else offset
        return moment.replace(tzinfo=timezone(offset)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


@lru_cache(maxsize=256)
def _zone(name: str | None) -> ZoneInfo | timezone:
    if not name:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC
