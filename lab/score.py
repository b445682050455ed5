"""What the pipeline says of a run, compared with the truth about every message.

Recall is per id, the cause per range of lost ids. Pending and inconclusive count as not found.
Ids that no evidence could show (a killed producer's last, unreported ones) are counted apart.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Score:
    """One scenario's score."""

    name: str
    sent: int = 0
    lost: int = 0
    found: int = 0
    false_losses: int = 0
    unknowable: int = 0
    pending: int = 0
    inconclusive: int = 0
    ranges: int = 0
    cause_right: int = 0
    duplicates: int = 0
    duplicates_found: int = 0
    out_of_order: int = 0
    out_of_order_found: int = 0
    ghosts: int = 0
    ghosts_found: int = 0
    residual: int = 0
    unavailable_s: float | None = None
    warning_lead_s: float | None = None
    """From the moment its lines first made a budget critical to the first loss that was told."""
    false_exhausted: int = 0
    """Budgets called exhausted though no message was lost."""
    wrong_causes: Mapping[str, int] = field(default_factory=dict)
    """Expected and given cause, with the number of ranges."""


def score(evidence: Path, losses: Sequence[Row], accounts: Sequence[Row]) -> Score:
    """Compare rows of `loss_events` and `delivery_ledger` of one run with its truth."""
    scenario = json.loads((evidence / "scenario.json").read_text(encoding="utf-8"))
    truth = json.loads((evidence / "truth" / "truth.json").read_text(encoding="utf-8"))
    messages = _messages(evidence)
    total: dict[str, Any] = {"wrong_causes": {}}
    for producer in scenario["producers"]:
        own = [m for m in messages if m["producer"] == producer["name"]]
        session = f"vp-{producer['prefix']}"
        added = _of_producer(
            own,
            [r for r in losses if r["session"] == session],
            [r for r in accounts if r["session"] == session and not r["group"]],
        )
        sums = truth["sums"][producer["name"]]
        added["duplicates"] = sums["records"] - sums["in_log"]
        added["out_of_order"] = sums["out_of_order"]
        added["ghosts"] = sums["ghosts"]
        for name, value in added.items():
            if name == "wrong_causes":
                for pair, count in value.items():
                    total[name][pair] = total[name].get(pair, 0) + count
            else:
                total[name] = total.get(name, 0) + value
    silences = [s["silence_s"] for s in truth["sums"].values() if s["silence_s"] is not None]
    return Score(name=scenario["name"], unavailable_s=max(silences, default=None), **total)


def _messages(evidence: Path) -> list[Row]:
    path = evidence / "truth" / "truth.jsonl"
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def _of_producer(
    messages: Sequence[Row], losses: Sequence[Row], accounts: Sequence[Row]
) -> dict[str, Any]:
    lost = {m["seq"] for m in messages if m["lost"]}
    said: dict[int, str] = {}
    false = 0
    received = {m["seq"]: m["received"] for m in messages}
    for row in losses:
        for seq in range(row["first_seq"], row["last_seq"] + 1):
            if not row["group"]:
                said[seq] = row["cause"]
            elif received.get(seq, {}).get(row["group"]):
                false += 1
    known = sum(row["sent"] for row in accounts)
    seen = {seq for seq in lost if seq < known}
    found = seen & set(said)
    right, wrong = _causes((m for m in messages if m["seq"] in found), said)
    return {
        "sent": len(messages),
        "lost": len(seen),
        "unknowable": len(lost) - len(seen),
        "found": len(found),
        "false_losses": len(set(said) - lost) + false,
        "pending": sum(row["pending"] for row in accounts),
        "inconclusive": sum(row["inconclusive"] for row in accounts),
        "ranges": right + sum(wrong.values()),
        "cause_right": right,
        "wrong_causes": wrong,
        "duplicates_found": sum(row["duplicates"] for row in accounts),
        "out_of_order_found": sum(row["out_of_order"] for row in accounts),
        "ghosts_found": sum(row["ghosts"] for row in accounts),
        "residual": sum(abs(row["residual"]) for row in accounts),
    }


def _causes(lost: Iterable[Row], said: Mapping[int, str]) -> tuple[int, dict[str, int]]:
    """Ranges of lost ids with one true cause: how many got it, and what others got."""
    right, wrong = 0, dict[str, int]()
    true = [(m["seq"], m["cause"]) for m in sorted(lost, key=lambda m: int(m["seq"]))]
    ranges = groupby(enumerate(true), key=lambda e: (e[1][0] - e[0], e[1][1]))
    for (_, cause), together in ranges:
        given = {said[seq] for _, (seq, _) in together}
        if given == {cause}:
            right += 1
        else:
            pair = f"{cause} → {', '.join(sorted(given))}"
            wrong[pair] = wrong.get(pair, 0) + 1
    return right, wrong


def totals(scores: Sequence[Score]) -> dict[str, Any]:
    """The sums over all scenarios."""
    summed = ("sent", "lost", "found", "false_losses", "unknowable", "pending", "inconclusive")
    more = ("ranges", "cause_right", "duplicates", "duplicates_found", "residual")
    total: dict[str, Any] = {n: sum(getattr(s, n) for s in scores) for n in (*summed, *more)}
    total["recall"] = total["found"] / total["lost"] if total["lost"] else None
    ranges = total["ranges"]
    total["cause_right_ratio"] = total["cause_right"] / ranges if ranges else None
    return total


_HEADS = {
    "name": "scenario",
    "sent": "sent",
    "lost": "lost",
    "found": "found",
    "false_losses": "false losses",
    "unknowable": "unknowable",
    "pending": "pending",
    "inconclusive": "inconclusive",
    "ranges": "lost ranges",
    "cause_right": "cause right",
    "duplicates": "duplicates",
    "duplicates_found": "found",
    "out_of_order": "out of order",
    "out_of_order_found": "found",
    "ghosts": "ghosts",
    "ghosts_found": "found",
    "unavailable_s": "silent for (s)",
    "warning_lead_s": "warning lead (s)",
}


def table(scores: Sequence[Score]) -> str:
    """All scores as a Markdown table."""
    lines = [
        "| " + " | ".join(_HEADS.values()) + " |",
        "| " + " | ".join("---" for _ in _HEADS) + " |",
    ]
    for one in scores:
        lines.append("| " + " | ".join(_cell(getattr(one, name)) for name in _HEADS) + " |")
    return "\n".join(lines) + "\n"


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


BEGIN, END = "<!-- score: begin -->", "<!-- score: end -->"


def put_into_page(page: str, scores: Sequence[Score]) -> str:
    """*page* with the table between its markers replaced."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no {BEGIN} … {END}")
    return f"{before}{BEGIN}\n\n{table(scores)}\n{END}{after}"
