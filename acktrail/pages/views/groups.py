"""View 8: groups. How far behind, where the log begins, and when retention overtakes."""

from __future__ import annotations

from collections.abc import Sequence

from acktrail.answers.readers import Reader
from acktrail.links import GROUP, anchor
from acktrail.pages.html import Child, Html, join, tag
from acktrail.pages.parts import (
    badge,
    chart,
    details,
    empty,
    left_out,
    legend,
    row,
    section,
    table,
    to,
)
from acktrail.pages.svg import Scale, band, lane, rule
from acktrail.pages.words import count, moment, place, span


def groups(found: Sequence[Reader], most: int, most_rows: int) -> Html:
    """One strip per group and partition: from the log's start to its end, with the commit."""
    title = "Consumer groups"
    if not found:
        return section(
            "groups",
            title,
            "No commit of a group is known in this window.",
            empty("Commits come from a source `cluster_state`: docs/agents.md."),
        )
    behind = [r for r in found if r.behind]
    danger = [r for r in found if r.overtaken or r.overtaken_at is not None]
    said = f"{len(behind):,} of {count(len(found), 'assigned partition')} behind"
    end = f"; retention overtakes {len(danger):,}." if danger else "; retention overtakes none."
    shown = found[:most]
    used: set[str] = set()
    rows = [_strip(one, used) for one in shown]
    more = len(found) - len(shown)
    return section(
        "groups",
        title,
        said + end,
        chart("How far groups have come", *rows, kind="strips"),
        legend(("seen", "read"), ("open", "not read yet"), ("commit", "the group's commit")),
        left_out(f"{count(more, 'partition')} further ahead not drawn.") if more else None,
        details(
            "The groups as a table",
            _table(found[:most_rows]),
            left_out(f"{len(found) - most_rows:,} more not listed.")
            if len(found) > most_rows
            else None,
        ),
    )


def _strip(one: Reader, used: set[str]) -> Html:
    start = one.log_start if one.log_start is not None else 0
    end = one.log_end if one.log_end is not None else one.committed
    scale = Scale(start, max(end, one.committed, start + 1))
    drawn = [
        band(scale, start, one.committed, "seen", 7, 8, f"read: {start:,} to {one.committed:,}")
    ]
    if end > one.committed:
        drawn.append(
            band(scale, one.committed, end, "open", 7, 8, f"not read: {one.committed:,} to {end:,}")
        )
    drawn.append(rule(scale, one.committed, "commit", 22, f"commit {one.committed:,}"))
    title = f"{one.group} on {place(one.topic, one.partition)}: {_behind(one)}"
    name = anchor(GROUP, one.group)
    first = name not in used
    used.add(name)
    where = tag("span", place(one.topic, one.partition), class_="muted")
    label = join(to(GROUP, one.group), " ", where)
    return row(label, lane(title, "", 22, *drawn), _end(one), name if first else None)


def _behind(one: Reader) -> str:
    if one.behind is None:
        return "end of the log not known"
    if not one.behind:
        return "at the end"
    late = "" if one.late is None else f", at most {span(one.late)} late"
    return f"{count(one.behind, 'message')} behind{late}"


def _end(one: Reader) -> Child:
    if one.overtaken:
        return badge("bad", "overtaken by retention")
    if one.overtaken_at is not None:
        return badge("warn", f"overtaken {moment(one.overtaken_at)}")
    return _behind(one)


def _table(found: Sequence[Reader]) -> Html:
    rows = [
        (
            r.group,
            r.topic,
            r.partition,
            r.state,
            f"{r.committed:,}",
            _number(r.log_start),
            _number(r.log_end),
            _number(r.behind),
            "" if r.late is None else f"≤ {span(r.late)}",
            "already" if r.overtaken else "" if r.overtaken_at is None else moment(r.overtaken_at),
        )
        for r in found
    ]
    columns = (
        "Group",
        "Topic",
        "Partition#",
        "State",
        "Commit#",
        "Log start#",
        "Log end#",
        "Behind#",
        "Late#",
        "Overtaken by retention",
    )
    return table("Consumer groups", columns, rows)


def _number(value: int | None) -> str:
    return "not known" if value is None else f"{value:,}"
