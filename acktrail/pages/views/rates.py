"""View 3: rates of failed and retried records, with the faults of partitions. Gaps stay gaps."""

from __future__ import annotations

from collections.abc import Sequence

from acktrail.answers.inquiry import Inquiry
from acktrail.answers.partitions import Faults
from acktrail.answers.rates import RateChart, RateSeries
from acktrail.links import CLIENT
from acktrail.pages.html import Child, Html, join, tag
from acktrail.pages.parts import chart, details, empty, left_out, legend, row, section, table, to
from acktrail.pages.svg import (
    LineStep,
    Scale,
    axis,
    band,
    described,
    lane,
    rule,
    step_line,
    time_scale,
    time_ticks,
)
from acktrail.pages.words import clock, count, moment
from acktrail.pages.words import rate as per_second

_HEIGHT = 40
_TITLES = {
    "record-error-total": ("Failed for good", "records a second that a producer gave up"),
    "record-retry-total": ("Retried", "records a second that a producer sent again"),
    "failed-produce-requests-total": (
        "Failed produce requests",
        "requests a second that a broker failed",
    ),
}


def rates(asked: Inquiry, found: Sequence[RateChart], faults: Faults) -> Html:
    """A chart per metric, one row per client or broker, over one axis of time."""
    title = "Rates, with faults"
    moving = [rate for rate in found if rate.series]
    measured = [rate for rate in found if rate.series or rate.flat]
    if not measured:
        return section(
            "rates",
            title,
            "No metrics of producers or brokers in this window.",
            empty("Rates come from metrics: docs/agents.md shows how to collect them."),
            _faults_chart(asked, faults),
            _fault_table(faults),
        )
    peak = max((s.peak for rate in moving for s in rate.series), default=0.0)
    lede = (
        f"The highest rate was {per_second(peak)}. Lines are changes of leader and cut logs."
        if moving
        else "Nothing failed and nothing was retried, where it was measured."
    )
    charts = [_chart(asked, rate, faults) for rate in measured]
    return section(
        "rates",
        title,
        lede,
        *charts,
        legend(
            ("gap", "no evidence"),
            ("under_min_isr", "under min ISR"),
            ("leaderless", "no leader"),
            ("election", "change of leader"),
            ("truncation", "log cut"),
        ),
        _fault_table(faults),
        _table(moving),
    )


def _chart(asked: Inquiry, rate: RateChart, faults: Faults) -> Html:
    title, what = _TITLES[rate.metric]
    scale = time_scale(asked.since, asked.until)
    drawn = [_series(scale, rate, series, faults) for series in rate.series]
    flat = f"{count(rate.flat, 'series', 'series')} measured at 0 throughout." if rate.flat else ""
    more = (
        f"{count(rate.left_out, 'lower series', 'lower series')} not shown."
        if rate.left_out
        else ""
    )
    axes = [row("UTC", axis(scale, time_ticks(scale), "Time, UTC"))] if drawn else []
    return tag(
        "figure",
        tag("figcaption", tag("strong", title), " ", what),
        chart(f"{title}: {what}", _faults_row(scale, faults), *drawn, *axes, kind="timed")
        if drawn
        else None,
        tag("p", f"{flat} {more}".strip(), class_="left-out") if flat or more else None,
    )


def _series(scale: Scale, rate: RateChart, series: RateSeries, faults: Faults) -> Html:
    steps = [LineStep(p.begins, p.ends, p.low, p.high) for p in series.points]
    gaps = list(series.gaps)
    if steps[0].begins > scale.low:
        gaps.insert(0, (scale.low, steps[0].begins))
    if steps[-1].ends < scale.high:
        gaps.append((steps[-1].ends, scale.high))
    drawn: list[Child] = [band(scale, a, b, "gap", 0, _HEIGHT, "no evidence") for a, b in gaps]
    drawn.append(step_line(scale, steps, series.peak, _HEIGHT))
    drawn += rules(scale, faults, _HEIGHT)
    broker = rate.metric == "failed-produce-requests-total"
    label = f"broker {series.name}" if broker else to(CLIENT, series.name)
    title = f"{'broker ' if broker else ''}{series.name}: highest {per_second(series.peak)}"
    told = f"{count(len(steps), 'step')}, {count(len(gaps), 'gap')} without evidence"
    return row(
        label,
        lane(title, told, _HEIGHT, *drawn, data_t0=scale.low, data_t1=scale.high),
        join("max ", per_second(series.peak)),
    )


def shades(scale: Scale, faults: Faults, height: int) -> list[Html]:
    """The spans in which partitions had no leader or too few replicas."""
    words = {"under_min_isr": "under min.insync.replicas", "leaderless": "without a leader"}
    return [
        band(
            scale,
            one["begins"].timestamp(),
            one["ends"].timestamp(),
            one["kind"],
            0,
            height,
            f"{described(one['partitions'])} {words[one['kind']]}, "
            f"{clock(one['begins'])} to {clock(one['ends'])}",
        )
        for one in faults.spans
    ]


def rules(scale: Scale, faults: Faults, height: int) -> list[Html]:
    """Changes of leader and cut logs; of those at one place in the drawing, one line."""
    places: dict[tuple[int, str], list[str]] = {}
    values: dict[tuple[int, str], float] = {}
    for one in faults.marks:
        value = one["at"].timestamp()
        if not scale.low <= value <= scale.high:
            continue
        key = (round(scale.share(value) * 4), one["kind"])
        values.setdefault(key, value)
        places.setdefault(key, []).append(f"{clock(one['at'])} {one['what']}")
    return [
        rule(scale, values[key], key[1], height, described(said, 4)) for key, said in places.items()
    ]


def _faults_row(scale: Scale, faults: Faults) -> Html | None:
    """What went wrong with partitions, above the rates."""
    if not faults.marks and not faults.spans:
        return None
    drawn = [
        *shades(scale, faults, 16),
        *(band(scale, a, b, "gap", 0, 16, "no answer of the cluster") for a, b in faults.gaps),
        *rules(scale, faults, 16),
    ]
    spans, events = count(len(faults.spans), "span"), count(len(faults.marks), "event")
    title = f"Faults of partitions: {spans}, {events}"
    return row(tag("span", "partitions", class_="muted"), lane(title, "", 16, *drawn), "")


def _faults_chart(asked: Inquiry, faults: Faults) -> Html | None:
    if not faults.marks and not faults.spans:
        return None
    scale = time_scale(asked.since, asked.until)
    return chart(
        "Faults of partitions",
        _faults_row(scale, faults),
        row("UTC", axis(scale, time_ticks(scale), "Time, UTC")),
        kind="timed",
    )


def _fault_table(faults: Faults) -> Html | None:
    if not faults.marks and not faults.spans:
        return None
    words = {"under_min_isr": "under min.insync.replicas", "leaderless": "without a leader"}
    rows = [
        (
            moment(s["begins"]),
            f"{described(s['partitions'])} {words[s['kind']]} until {clock(s['ends'])}",
        )
        for s in faults.spans[:60]
    ]
    rows += [(moment(m["at"]), m["what"]) for m in faults.marks[:60]]
    more = max(0, len(faults.spans) - 60) + max(0, len(faults.marks) - 60) + faults.left_out
    spans, events = count(len(faults.spans), "span"), count(len(faults.marks), "event")
    return details(
        f"Faults of partitions: {spans}, {events}",
        table("Faults of partitions", ("Time (UTC)", "What"), sorted(rows)),
        left_out(f"{count(more, 'more fault')} not shown.") if more else None,
    )


def _table(found: Sequence[RateChart]) -> Html | None:
    rows = [
        (
            _TITLES[rate.metric][0],
            s.name,
            per_second(s.peak),
            f"{len(s.points):,}",
            f"{len(s.gaps):,}",
        )
        for rate in found
        for s in rate.series
    ]
    if not rows:
        return None
    columns = ("Rate", "Client or broker", "Highest#", "Points#", "Gaps#")
    return details("The rates as a table", table("Rates", columns, rows))
