"""View 2: incidents. What was lost, why, what to do; and who did what when, in lanes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from acktrail.answers.lost import Lost
from acktrail.answers.many import Row
from acktrail.answers.partitions import Faults
from acktrail.links import CLIENT, GROUP, INCIDENT, TOPIC, anchor
from acktrail.pages.html import Child, Html, join, tag
from acktrail.pages.live_links import address
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
from acktrail.pages.svg import Scale, axis, band, described, lane, mark, time_scale, time_ticks
from acktrail.pages.words import LOST_WORDS, clock, count, moment, span

_HEIGHT = 26
_SPANS = {"under_min_isr": "under min.insync.replicas", "leaderless": "without a leader"}


@dataclass(frozen=True)
class Story:
    """One incident, with its timeline."""

    incident: Row
    events: Sequence[Row]
    faults: Faults
    cut: int = 0
    """Events that are not among them."""


def incidents(lost: Lost, stories: Mapping[str, Story], most_events: int) -> Html:
    """The card of each incident, the most silent and the largest first."""
    rows = lost.incidents.rows
    if not rows:
        return section(
            "incidents",
            "Incidents",
            "No incident in this window.",
            empty("An incident is the loss of messages with one cause, place and time."),
        )
    named = {one["incident"]: one for one in reversed(rows)}
    cards = [
        _card(one, stories.get(one["incident"]), most_events, named[one["incident"]] is one)
        for one in rows
    ]
    said = (
        f"{count(lost.incidents.of, 'incident')}, those without an error to the application first."
    )
    more = lost.incidents.left_out
    note = f"{count(more, 'more incident')} not shown: `acktrail losses` lists all."
    return section("incidents", "Incidents", said, *cards, left_out(note) if more else None)


_PARTS = re.compile(r" (?=(?:Cause|Fix|Proof): )")


def sentences(because: str) -> dict[str, str]:
    """The sentence of an incident by its parts: what, Cause, Fix, Proof."""
    found: dict[str, str] = {}
    for part in _PARTS.split(because or ""):
        name, colon, rest = part.partition(": ")
        if colon and name in ("Cause", "Fix", "Proof"):
            found.setdefault(name, rest)
        else:
            found["what"] = f"{found['what']} {part}" if "what" in found else part
    return found


def _card(one: Row, story: Story | None, most_events: int, first: bool) -> Html:
    said = sentences(one["because"])
    told = (
        badge("warn", "the application got an error")
        if one["told"]
        else badge("bad", "the application got no error")
    )
    # A loss that nobody was told of is worse than one that an error announced.
    names = [
        *(to(CLIENT, name) for name in list(one["client_ids"] or ())[:5]),
        to(TOPIC, one["topic"]),
        *([to(GROUP, one["group"])] if one["group"] else []),
    ]
    body: list[Child] = [
        tag("p", said.get("what") or "No sentence is kept for this incident.", class_="what"),
        tag(
            "dl",
            *(
                join(tag("dt", title), tag("dd", said[name]))
                for name, title in (("Cause", "Why"), ("Fix", "What to do"), ("Proof", "Proof"))
                if name in said
            ),
        ),
        tag("p", *_facts(one, told, names), class_="facts"),
    ]
    if story is not None:
        body += [_lanes(story), _decided(story), _timeline(story, most_events)]
    body.append(_commands(one))
    return tag(
        "article",
        tag(
            "h3",
            f"{count(one['ids'] or 0, 'message')} {LOST_WORDS.get(one['state'], one['state'])}",
            " ",
            tag(
                "a",
                one["incident"],
                href=address(INCIDENT, one["incident"]),
                class_="code name",
            ),
        ),
        *body,
        class_="card entity",
        id=anchor(INCIDENT, one["incident"]) if first else None,
    )


def _facts(one: Row, told: Html, names: Sequence[Html]) -> list[Child]:
    start, end = one["started_at"], one["ended_at"]
    when = moment(start)
    if start is not None and end is not None:
        when += f", for {span(end - start)}"
    listed: list[Child] = []
    for number, name in enumerate(names):
        listed += [", " if number else "", name]
    return [
        told,
        " ",
        tag("span", when),
        " · ",
        tag("span", *listed),
        " · ",
        tag("span", f"cause {one['cause']} ({one['confidence']})"),
    ]


def _commands(one: Row) -> Html:
    name = one["incident"]
    return tag(
        "p",
        "More: ",
        tag("code", f"acktrail explain {name}"),
        " · what to send again: ",
        tag("code", f"acktrail resend-list {name}"),
        class_="commands",
    )


def window_of(story: Story) -> tuple[datetime, datetime]:
    """The time that the lanes show: the loss, its evidence, and a little around."""
    start, end = _times_of(story.incident)
    proofs = [e["at"] for e in story.events if e["evidence"]]
    first, last = min([start, *proofs]), max([end, *proofs])
    around = max(timedelta(seconds=10), (last - first) / 3)
    return first - around, last + around


def _times_of(incident: Row) -> tuple[datetime, datetime]:
    """The first and the last loss of an incident that has a time."""
    start = incident["started_at"]
    return start, max(start, incident["ended_at"] or start)


def _lanes(story: Story) -> Html:
    if not story.events or story.incident["started_at"] is None:
        return empty("No event with a time is known around this loss.")
    since, until = window_of(story)
    scale = time_scale(since, until)
    shown = [e for e in story.events if e["at"] <= until and (e["until"] or e["at"]) >= since]
    by_who: dict[str, list[Row]] = {}
    for event in shown:
        by_who.setdefault(event["who"], []).append(event)
    order = sorted(by_who, key=lambda who: (_rank(who, story), who))
    kept = order[:12]
    clients = set(story.incident["client_ids"] or ())
    drawn = [_lane(who, by_who[who], story, scale, who in clients) for who in kept]
    ticks = row(f"{since:%Y-%m-%d}, UTC", axis(scale, time_ticks(scale), "Time, UTC"))
    more = len(order) - len(kept)
    return join(
        chart(f"Who did what from {moment(since)} to {moment(until)}", *drawn, ticks, kind="timed"),
        legend(
            ("lost", "messages lost here"),
            ("event", "events"),
            ("under_min_isr", "under min ISR"),
            ("leaderless", "no leader"),
        ),
        left_out(f"{count(more, 'lane')} not shown.") if more else None,
    )


def _rank(who: str, story: Story) -> int:
    if who in (story.incident["client_ids"] or ()):
        return 0
    return 1 if who == "cluster" else 2 if "broker" in who else 3


def _lane(who: str, events: Sequence[Row], story: Story, scale: Scale, ours: bool) -> Html:
    height = _HEIGHT
    drawn: list[Html] = []
    if ours or who == "cluster":
        for one in story.faults.spans:
            kind = one["kind"]
            when = f"{clock(one['begins'])} to {clock(one['ends'])}"
            title = f"{described(one['partitions'])} {_SPANS[kind]}, {when}"
            drawn.append(
                band(
                    scale,
                    one["begins"].timestamp(),
                    one["ends"].timestamp(),
                    kind,
                    0,
                    height,
                    title,
                )
            )
    if ours:
        start, end = _times_of(story.incident)
        title = f"messages lost, {clock(start)} to {clock(end)}"
        drawn.append(band(scale, start.timestamp(), end.timestamp(), "lost", 3, height - 6, title))
    last_star = -100.0
    for event in events:
        begins, ends = event["at"].timestamp(), (event["until"] or event["at"]).timestamp()
        title = f"{clock(event['at'])} {who}: {event['what']}"
        if ends > begins:
            drawn.append(band(scale, begins, ends, "event", height // 2 - 2, 4, title))
        if event["evidence"]:
            if scale.share(begins) - last_star < 2.2:  # beside the one before it: drawn as one
                continue
            last_star = scale.share(begins)
        drawn.append(
            mark(scale, begins, "star" if event["evidence"] else "dot", height // 2, title)
        )
    title = f"{who}: {count(sum(e['count'] for e in events), 'event')}"
    told = "; ".join(f"{clock(e['at'])} {e['what']}" for e in events[:5])
    stars = sum(1 for e in events if e["evidence"])
    value = f"{'★ ' if stars else ''}{sum(e['count'] for e in events):,}"
    return row(who, lane(title, told[:400], height, *drawn), value)


def _decided(story: Story) -> Html | None:
    """The evidence that decided the cause, in words."""
    grouped: dict[tuple[str, str], list[Row]] = {}
    for event in story.events:
        if event["evidence"]:
            same = re.sub(r"[0-9]+", "#", event["what"])
            grouped.setdefault((event["who"], same), []).append(event)
    if not grouped:
        return None
    kept = list(grouped.values())[:8]
    more = len(grouped) - len(kept)
    return tag(
        "div",
        tag("h4", "★ Evidence that decided the cause"),
        tag(
            "ol",
            *(
                tag(
                    "li",
                    clock(same[0]["at"]),
                    " ",
                    tag("strong", same[0]["who"]),
                    " ",
                    same[0]["what"],
                    _times(same),
                )
                for same in kept
            ),
        ),
        left_out(f"{more:,} more kinds are in the timeline.") if more > 0 else None,
        class_="decided",
    )


def _times(same: Sequence[Row]) -> str:
    times = sum(e["count"] for e in same)
    last = same[-1]["until"] or same[-1]["at"]
    return f", {times:,} times like this until {clock(last)}" if times > 1 else ""


def _timeline(story: Story, most: int) -> Html | None:
    if not story.events:
        return None
    rows = []
    for e in story.events[:most]:
        times = f" ({e['count']} times until {clock(e['until'])})" if e["count"] > 1 else ""
        rows.append((clock(e["at"]), e["who"], f"{e['what']}{times}", "★" if e["evidence"] else ""))
    more = max(0, len(story.events) - most) + story.cut
    note = f"{count(more, 'more event')} not shown: `acktrail explain` lists them."
    return details(
        f"Timeline: {count(len(story.events), 'event')}",
        table("Timeline", ("Time (UTC)", "Who", "What", "Evidence"), rows),
        left_out(note) if more else None,
    )
