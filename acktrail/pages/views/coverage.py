"""View 9: coverage. Which source gave evidence in which hour, and clocks that are wrong."""

from __future__ import annotations

from datetime import datetime, timedelta

from acktrail.answers.evidence import EvidenceSeen
from acktrail.answers.inquiry import Inquiry
from acktrail.answers.many import Row
from acktrail.answers.reliability import HourColumns
from acktrail.pages.html import Html, join, tag
from acktrail.pages.parts import (
    chart,
    details,
    empty,
    left_out,
    legend,
    row,
    section,
    several,
    table,
)
from acktrail.pages.svg import Cell, axis, band, few, lane, matrix, time_scale, time_ticks
from acktrail.pages.views.clients import hour_axis
from acktrail.pages.words import count

_WORDS = {"seen": "evidence", "partial": "some is known to be missing", "none": "no evidence"}


def coverage(asked: Inquiry, seen: EvidenceSeen, most: int, most_columns: int) -> Html:
    """Source by hour; hatched where nothing came."""
    title = "Coverage: what was seen"
    points = list(seen.unseen())
    unlisted = len(points) - most
    more_points = f"{unlisted:,} more not listed: see `acktrail agent status`."
    listed = join(
        several(points[:most]) if points else None, left_out(more_points) if unlisted > 0 else None
    )
    if not seen.hours:
        return section(
            "coverage",
            title,
            "No source gave evidence in this window.",
            listed,
            empty("`acktrail agent status` shows how sources stand."),
        )
    sources: dict[tuple[str, str, str], dict[str, Row]] = {}
    for one in seen.hours:
        sources.setdefault((one["kind"], one["source"], one["cluster"]), {})[one["hour"]] = one
    columns = HourColumns.over(asked.since, asked.until, most_columns)
    with_gaps = {place for place, hours in sources.items() if _has_gaps(hours, columns)}
    ordered = sorted(sources.items(), key=lambda item: (item[0] not in with_gaps, item[0]))
    rows = [
        row(
            join(source, " ", tag("span", kind, class_="muted")),
            *_drawn(asked, kind, source, hours, columns),
        )
        for (kind, source, _), hours in ordered[:most]
    ]
    more = len(ordered) - most
    lede = f"{count(len(ordered), 'source')}, {len(with_gaps):,} with gaps."
    return section(
        "coverage",
        title,
        lede,
        listed,
        chart("Evidence by source and hour", *rows, row("UTC", _axis(asked, columns)), kind="map"),
        legend(("seen", "evidence"), ("partial", "some is missing"), ("gap", "no evidence")),
        left_out(f"{count(more, 'source')} not drawn.") if more > 0 else None,
        _missing(seen),
        _clocks(seen),
    )


def _axis(asked: Inquiry, columns: HourColumns) -> Html:
    if few(len(columns.starts)):
        scale = time_scale(asked.since, asked.until)
        return axis(scale, time_ticks(scale), "Time, UTC")
    return hour_axis(columns)


def _kinds(hours: dict[str, Row], columns: HourColumns) -> list[str]:
    found = []
    for names in columns.names:
        known = [hours[name] for name in names if name in hours]
        rows = sum(one["rows"] or 0 for one in known)
        whole = len(known) == len(names) and not any(one["gap"] for one in known)
        found.append("none" if not rows else "seen" if whole else "partial")
    return found


def _has_gaps(hours: dict[str, Row], columns: HourColumns) -> bool:
    return any(kind != "seen" for kind in _kinds(hours, columns))


def _drawn(
    asked: Inquiry, kind: str, source: str, hours: dict[str, Row], columns: HourColumns
) -> tuple[Html, str]:
    if few(len(columns.starts)):
        return _spans(asked, kind, source, hours)
    kinds = _kinds(hours, columns)
    cells = [
        Cell(kind, "" if kind == "seen" else f"{start:%m-%d %H:%M}Z {_WORDS[kind]}")
        for start, kind in zip(columns.starts, kinds, strict=True)
    ]
    rows = sum(one["rows"] or 0 for one in hours.values())
    return matrix(f"{source}: {count(rows, 'row')}", cells), count(rows, "row")


def _spans(asked: Inquiry, kind: str, source: str, hours: dict[str, Row]) -> tuple[Html, str]:
    """A short window: from the first to the last evidence of each hour."""
    scale = time_scale(asked.since, asked.until)
    drawn = [band(scale, scale.low, scale.high, "gap", 0, 14)]
    for one in hours.values():
        if not one["rows"]:
            continue
        first, last = one["first_at"], one["last_at"]
        if kind == "logs" or first is None or last is None:  # lines are dated by their reading
            first = datetime.fromisoformat(f"{one['hour']}:00:00+00:00")
            last = first + timedelta(hours=1)
        begins, ends = first.timestamp(), last.timestamp()
        drawn.append(band(scale, begins, ends, "ground", 0, 14))
        drawn.append(band(scale, begins, ends, "partial" if one["gap"] else "seen", 5, 9))
    rows = sum(one["rows"] or 0 for one in hours.values())
    return lane(f"{source}: {count(rows, 'row')}", "", 14, *drawn), count(rows, "row")


def _missing(seen: EvidenceSeen) -> Html | None:
    if not seen.missing.rows:
        return None
    rows = [(r["hour"], r["source"], r["subject"], r["missing"]) for r in seen.missing.rows[:60]]
    more = seen.missing.of - len(rows)
    return details(
        f"Known gaps in the evidence: {seen.missing.of:,}",
        table("Missing evidence", ("Hour (UTC)", "Source", "Of", "What is missing"), rows),
        left_out(f"{more:,} more not listed: the table coverage has them.") if more else None,
        open_=True,
    )


def _clocks(seen: EvidenceSeen) -> Html:
    if not seen.clocks:
        text = "Clocks: no report has a time later than its receipt."
        return tag("p", text, class_="left-out")
    rows = [(r["cluster"], r["reporter"], f"{r['ahead_s']:,.1f} s") for r in seen.clocks]
    return details(
        "Clocks that are ahead",
        table("Clocks", ("Cluster", "Reporter", "Ahead, at least#"), rows),
        open_=True,
    )
