"""Log files: what the globs match, whether it can be read, and whether its times fit its zone."""

from __future__ import annotations

import glob
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from acktrail.lake.directory_access import user_name
from acktrail.operate.probes.row import FAILED, OK, WARNING, Clock, Probe, Row, counted
from acktrail.settings.sources import LibrdkafkaStatsSource, LogFilesSource, VerifiableSource

_TAIL = 65_536
_STATISTICS_TAIL = 4 * 1024 * 1024
_APART_S = 120.0
"""A last line written this long before or after the file changed has a wrong zone or clock."""


Files = LogFilesSource | LibrdkafkaStatsSource | VerifiableSource


def files_probe(settings: Files) -> Probe:
    """The files of one source."""
    what = f"source {settings.name}"
    return Probe(what, lambda: _look(what, settings))


def _look(what: str, settings: Files) -> list[Row | Clock]:
    from ingest.files.rotation import expand

    rotated = not isinstance(settings, VerifiableSource) and settings.rotated
    found = expand(settings.paths, rotated)
    closed = [path for path in found if not os.access(path, os.R_OK, effective_ids=True)]
    if closed:
        owner = user_name(os.stat(closed[0]).st_uid)
        remark = (
            f"{len(closed)} of {len(found)} files cannot be read by user "
            f"{user_name(os.geteuid())}, for example {closed[0]} (owner {owner}). "
            "Add it to the group of the files."
        )
        return [Row(what, FAILED, remark)]
    unmatched = [p for p in settings.paths if not expand([p], rotated)]
    if unmatched:
        others = f" The other paths match {counted(len(found), 'file')}." if found else ""
        return [Row(what, WARNING, _why_nothing(unmatched[0]) + others)]
    if isinstance(settings, LogFilesSource):
        newest = max(found, key=os.path.getmtime)
        apart = _zone_trouble(newest, settings.zone)
        if apart:
            return [Row(what, WARNING, apart)]
    if isinstance(settings, LibrdkafkaStatsSource):
        without = [path for path in found if not _has_statistics(path)]
        if without:
            remark = (
                f"{len(without)} of {counted(len(found), 'file')} without a document of "
                f"librdkafka's statistics in the last lines, for example {without[0]}. Set "
                "statistics.interval.ms and a stats_cb that writes each document as one line."
            )
            return [Row(what, WARNING, remark)]
    return [Row(what, OK, f"{counted(len(found), 'file')}, all readable")]


def _why_nothing(pattern: str) -> str:
    """Why *pattern* matches no file: the first directory that is missing or closed."""
    place = Path("/")
    for part in Path(pattern).parts[1:-1]:
        if glob.has_magic(part):
            break
        if not os.access(place, os.X_OK, effective_ids=True):
            return (
                f"{pattern} matches no file: user {user_name(os.geteuid())} may not enter {place}."
            )
        if not (place / part).is_dir():
            return f"{pattern} matches no file: there is no directory {place / part}."
        place /= part
    return f"{pattern} matches no file in {place}."


def _zone_trouble(path: str, zone: str) -> str:
    """What is odd about the last time in *path*, read in *zone*; empty for nothing."""
    from acktrail.logs.times import instant, read_timestamp

    changed = os.path.getmtime(path)
    for line in reversed(_last_lines(path)):
        stamp = read_timestamp(line[:200])
        at = instant(stamp, zone)
        if stamp is None or at is None:
            continue
        ahead = at.timestamp() - changed
        if abs(ahead) <= _APART_S:
            return ""
        shown = datetime.fromtimestamp(changed, UTC)
        said = (
            f"the last line of {path} has the time {stamp} (zone {zone}), {_span(ahead)} the file "
            f"was changed ({shown:%Y-%m-%dT%H:%M:%SZ})."
        )
        offset = _fitting_offset(stamp, zone, ahead)
        if offset:
            said += f" Times in it fit {offset}, not {zone}: set `zone` of the source."
        else:
            said += " Does the clock of the machine that writes it go right?"
        return said
    return ""


def _fitting_offset(stamp: str, zone: str, ahead_s: float) -> str:
    """The offset in which *stamp* fits, as UTC+02:00; empty where another zone explains nothing."""
    from acktrail.logs.times import instant

    read, other = instant(stamp, zone), instant(stamp, "Pacific/Kiritimati")
    halves = round(ahead_s / 1800)
    if read is None or read == other or abs(ahead_s - halves * 1800) > _APART_S:
        return ""  # it carries an offset of its own, or is not half hours away
    own = read.astimezone(ZoneInfo(zone)).utcoffset() or timedelta()
    minutes = round(own.total_seconds() / 60) + halves * 30
    if abs(minutes) > 14 * 60:
        return ""
    return f"UTC{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"


def _span(ahead_s: float) -> str:
    minutes = round(abs(ahead_s) / 60)
    span = f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"
    return f"{span} {'after' if ahead_s > 0 else 'before'}"


def _has_statistics(path: str) -> bool:
    """Whether *path* ends with statistics, as far as its last lines show; an archive has them."""
    from acktrail.metrics.librdkafka import is_statistics
    from ingest.sources.librdkafka_stats import document_of

    if path.endswith(".gz"):
        return True
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, size - _STATISTICS_TAIL))
        lines = file.read().splitlines()
    if size > _STATISTICS_TAIL and len(lines) < 3:
        return True  # documents longer than what was looked at
    return any(is_statistics(document_of(line)) for line in lines)


def _last_lines(path: str) -> list[str]:
    if path.endswith(".gz"):
        return []
    with open(path, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
        return file.read().decode("utf-8", "replace").splitlines()
