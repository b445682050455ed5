"""Views 5 and 6: the accounts from sent to delivered, and the offsets that were lost."""

from __future__ import annotations

from collections.abc import Sequence

from acktrail.answers.losses import STATES
from acktrail.answers.lost import Ledger
from acktrail.answers.many import Row
from acktrail.answers.strips import Strip
from acktrail.contracts.vocabulary import State
from acktrail.links import GROUP, TOPIC, anchor
from acktrail.pages.html import Child, Html, join, tag
from acktrail.pages.parts import chart, details, empty, left_out, legend, row, section, table, to
from acktrail.pages.svg import Scale, axis, band, lane, number_ticks, rule
from acktrail.pages.words import LOST_WORDS, count, place

_HEIGHT = 22
_OPEN = {State.PENDING.value, State.INCONCLUSIVE.value}
_FINE = {State.NOT_OWED.value, State.ABORTED.value}


def ledger(found: Ledger, most: int) -> Html:
    """The waterfall of all audited messages, and a line for each topic and group."""
    title = "Ledger: from sent to delivered"
    log = found.log
    if not found.rows or not log["sent"]:
        return section(
            "ledger",
            title,
            "No message of this window is audited, so nothing is accounted for.",
            empty("docs/audit_your_application.md shows how to audit an application."),
            _topics(found, most) if found.rows else None,
        )
    scale = Scale(0, log["sent"])
    rows = [_step(scale, "sent", "by audited producers", log["sent"], 0, log["sent"], "sent")]
    level = log["sent"]
    for state in STATES:
        number = log[state]
        if state == State.DELIVERED.value or not number:
            continue
        kind = "open" if state in _OPEN else "fuse-over" if state in _FINE else "lost"
        words = LOST_WORDS.get(state, state)
        rows.append(
            _step(scale, state.replace("_", " "), words, -number, level - number, level, kind)
        )
        level -= number
    rows.append(
        _step(
            scale,
            "delivered",
            "in the log, read there",
            log["delivered"],
            0,
            log["delivered"],
            "seen",
        )
    )
    rows.append(
        _step(
            scale,
            "residual",
            "sent minus all of the above; must be 0",
            log["residual"],
            0,
            abs(log["residual"]),
            "lost",
        )
    )
    share = log["delivered"] / log["sent"] * 100
    shown = "100" if log["delivered"] == log["sent"] else f"{min(share, 99.99):.2f}"
    lede = f"{log['delivered']:,} of {log['sent']:,} messages are in the log ({shown} %)."
    return section(
        "ledger",
        title,
        lede,
        chart("Messages from sent to delivered", *rows, kind="waterfall"),
        _beside(log),
        _topics(found, most),
    )


def _step(scale: Scale, name: str, words: str, number: int, low: int, high: int, kind: str) -> Html:
    drawn = (
        [band(scale, low, high, kind, 5, _HEIGHT - 10, f"{name}: {number:,}")] if high > low else []
    )
    shown = f"{number:+,}" if number < 0 else f"{number:,}"
    label = join(name, " ", tag("span", words, class_="muted words"))
    return row(label, lane(f"{name}: {number:,}", words, _HEIGHT, *drawn), shown)


def _beside(log: Row) -> Html | None:
    found = [
        f"{log[name]:,} {words}"
        for name, words in (
            ("duplicates", "records more than one per message"),
            ("redelivered", "records read again"),
            ("out_of_order", "steps back in order"),
        )
        if log[name]
    ]
    return tag("p", "Beside these: ", "; ".join(found), ".", class_="left-out") if found else None


def _topics(found: Ledger, most: int) -> Html:
    rows = []
    ids = []
    used: set[str] = set()
    for one in found.rows[:most]:
        undecided = (one["pending"] or 0) + (one["inconclusive"] or 0)
        rows.append(
            (
                to(TOPIC, one["topic"]),
                to(GROUP, one["group"]) if one["group"] else "the log itself",
                f"{one['sent'] or 0:,}",
                f"{one['delivered'] or 0:,}",
                f"{one['lost']:,}",
                f"{undecided:,}",
                f"{one['duplicates'] or 0:,}",
                f"{one['residual'] or 0:,}",
            )
        )
        name = anchor(TOPIC, one["topic"])
        ids.append("" if name in used else name)
        used.add(name)
    columns = (
        "Topic",
        "For",
        "Sent#",
        "Delivered#",
        "Lost#",
        "Undecided#",
        "Duplicates#",
        "Residual#",
    )
    more = len(found.rows) - len(rows)
    return join(
        tag("h3", "By topic and group"),
        table("Accounts by topic and group, those with losses first", columns, rows, ids),
        left_out(f"{count(more, 'more account')} not shown: `acktrail ledger` lists all.")
        if more
        else None,
    )


def strips(found: Sequence[Strip], more: int) -> Html:
    """A strip of offsets for each partition that lost some."""
    title = "Offsets that were lost"
    if not found:
        return section(
            "offsets",
            title,
            "No acknowledged offset of this window is known to be lost.",
            empty("Drawn for partitions of which audited offsets are gone."),
        )
    parts: list[Child] = []
    for one in found:
        scale, zoomed = _zoomed(one)
        drawn: list[Html] = []
        if one.acked is not None:
            first, last = one.acked
            drawn.append(
                band(scale, first, last + 1, "acked", 6, 14, f"acknowledged: {first:,} to {last:,}")
            )
        for first, last, state in one.lost:
            words = f"{LOST_WORDS.get(state, state)}: {first:,} to {last:,}"
            drawn.append(band(scale, first, last + 1, "lost", 2, 22, words))
        for cut in one.cuts:
            if scale.low <= cut <= scale.high:
                drawn.append(rule(scale, cut, "truncation", 26, f"a log was cut to {cut:,}"))
        name = place(one.topic, one.partition)
        ranges = ", ".join(f"{a:,} to {b:,}" for a, b, _ in one.lost[:5])
        parts.append(
            row(
                join(to(TOPIC, one.topic), f"-{one.partition}"),
                lane(f"{name}: lost {ranges}", zoomed, 26, *drawn),
                f"{one.count:,} lost",
            )
        )
        parts.append(row(zoomed, axis(scale, number_ticks(scale), "Offsets")))
    rows = [
        (
            one.topic,
            one.partition,
            f"{first:,}",
            f"{last:,}",
            f"{last - first + 1:,}",
            LOST_WORDS.get(state, state),
        )
        for one in found
        for first, last, state in one.lost[:20]
    ]
    hidden = sum(max(0, len(one.lost) - 20) for one in found)
    note = f"{count(more, 'partition or range', 'partitions or ranges')} not drawn; "
    return section(
        "offsets",
        title,
        f"{count(sum(o.count for o in found), 'message')} with a known offset.",
        chart("Offsets by partition", *parts, kind="strips"),
        legend(("acked", "acknowledged"), ("lost", "lost"), ("truncation", "a log was cut here")),
        details(
            "The ranges as a table",
            table(
                "Lost offsets",
                ("Topic", "Partition#", "First#", "Last#", "Offsets#", "What became of them"),
                rows,
            ),
        ),
        left_out(f"{note}{count(hidden, 'range')} not in the table: `acktrail losses --ranges`.")
        if more or hidden
        else None,
    )


def _zoomed(one: Strip) -> tuple[Scale, str]:
    """The offsets to draw: the whole log where its loss can be seen in it, else around the loss."""
    first = min(a for a, _, _ in one.lost)
    last = max(b for _, b, _ in one.lost)
    low, high = one.acked if one.acked is not None else (first, last)
    low, high = min(low, first), max(high, last) + 1
    width = last - first + 1
    if width * 50 >= high - low:
        return Scale(low, high), "offsets"
    around = width * 3
    return Scale(max(low, first - around), min(high, last + around)), f"of {low:,} to {high - 1:,}"
