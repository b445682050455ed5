"""What the pipeline says of a run, compared with the truth about every message.

Recall is per id, the cause per range of lost ids. Pending and inconclusive count as not found.
A group's loss is true if the group was owed the message and never received it.
Ids that no evidence could show (a killed producer's last, unreported ones) are counted apart.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from acktrail.errors import LabError

Row = Mapping[str, Any]
_MISSED = ("skipped", "expired")
"""What the truth of a group calls what it was owed and never received."""


@dataclass(frozen=True)
class Score:
    """One scenario's score."""

    name: str
    sent: int = 0
    known: int = 0
    """Ids that the ledger has accounts of."""
    lost: int = 0
    found: int = 0
    false_losses: int = 0
    """Called lost, and in the log."""
    hidden: int = 0
    """Lost, and called delivered."""
    missed: int = 0
    """What groups were owed and never received."""
    missed_found: int = 0
    false_skips: int = 0
    """Called skipped or expired for a group that received it, was not owed it, or could not."""
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
    reasons: Mapping[str, int] = field(default_factory=dict)
    """Why ids are pending or inconclusive."""


def score(evidence: Path, losses: Sequence[Row], accounts: Sequence[Row]) -> Score:
    """Compare rows of `loss_events` and `delivery_ledger` of one run with its truth."""
    scenario = json.loads((evidence / "scenario.json").read_text(encoding="utf-8"))
    truth = json.loads((evidence / "truth" / "truth.json").read_text(encoding="utf-8"))
    messages = _messages(evidence)
    total: dict[str, Any] = {"wrong_causes": {}, "reasons": {}}
    for producer in scenario["producers"]:
        own = [m for m in messages if m["producer"] == producer["name"]]
        session = producer.get("session") or f"vp-{producer['prefix']}"
        added = _of_producer(
            own,
            [r for r in losses if r["session"] == session],
            [r for r in accounts if r["session"] == session],
        )
        sums = truth["sums"][producer["name"]]
        added["duplicates"] = sums["records"] - sums["in_log"]
        added["out_of_order"] = sums["out_of_order"]
        added["ghosts"] = sums["ghosts"]
        for name, value in added.items():
            if name in ("wrong_causes", "reasons"):
                total[name] = _added((total[name], value))
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
    log = [row for row in accounts if not row["group"]]
    said = {
        seq: row["cause"]
        for row in losses
        if not row["group"]
        for seq in range(row["first_seq"], row["last_seq"] + 1)
    }
    known = sum(row["sent"] for row in log)
    seen = {seq for seq in lost if seq < known}
    found = seen & set(said)
    right, wrong = _causes((m for m in messages if m["seq"] in found), said)
    return {
        "sent": len(messages),
        "known": known,
        "lost": len(seen),
        "unknowable": len(lost) - len(seen),
        "found": len(found),
        "false_losses": len(set(said) - lost - {m["seq"] for m in messages if _never_sent(m)}),
        "hidden": len(seen - set(said) - _not_delivered(log)),
        **_of_groups(messages, losses, accounts),
        "pending": sum(row["pending"] for row in log),
        "inconclusive": sum(row["inconclusive"] for row in log),
        "reasons": _added(row.get("reasons") or {} for row in log),
        "ranges": right + sum(wrong.values()),
        "cause_right": right,
        "wrong_causes": wrong,
        "duplicates_found": sum(row["duplicates"] for row in log),
        "out_of_order_found": sum(row["out_of_order"] for row in log),
        "ghosts_found": sum(row["ghosts"] for row in log),
        "residual": sum(abs(row["residual"]) for row in log),
    }


def _never_sent(message: Row) -> bool:
    """Told failed, in no log, and of a transaction that was aborted: nobody is owed it.

    To call it lost is true all the same.
    """
    told = message.get("told") == "failed" and not message["in_log"]
    return told and bool(message.get("aborted"))


def _not_delivered(accounts: Iterable[Row]) -> set[int]:
    """Ids of which the ledger says something else than that they were delivered."""
    return {
        seq
        for row in accounts
        for finding in row.get("findings") or ()
        for seq in range(finding["first_seq"], finding["last_seq"] + 1)
    }


def _of_groups(
    messages: Sequence[Row], losses: Sequence[Row], accounts: Sequence[Row]
) -> dict[str, int]:
    """What was called skipped or expired: truly so if the group was owed it and never got it."""
    groups = {row["group"] for row in (*losses, *accounts)} - {""}
    groups |= {group for m in messages for group in (m.get("groups") or m["received"])}
    missed = {(g, m["seq"]) for m in messages for g in groups if _is_missed(m, g)}
    said = {
        (row["group"], seq)
        for row in losses
        if row["group"]
        for seq in range(row["first_seq"], row["last_seq"] + 1)
    }
    return {
        "missed": len(missed),
        "missed_found": len(said & missed),
        "false_skips": len(said - missed),
    }


def _is_missed(message: Row, group: str) -> bool:
    """By the truth of the group, where the recording has it; else what is there and never came."""
    states = message.get("groups")
    if states:
        return states.get(group) in _MISSED
    return bool(message["in_log"]) and not message["received"].get(group)


def _added(counts: Iterable[Mapping[str, Any] | Iterable[tuple[str, Any]]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update({name: int(number) for name, number in dict(each).items()})
    return dict(total)


def _causes(lost: Iterable[Row], said: Mapping[int, str]) -> tuple[int, dict[str, int]]:
    """Ranges of lost ids with the same true causes: how many got one of them, what others got."""
    right, wrong = 0, dict[str, int]()
    true = [(m["seq"], _causes_of(m)) for m in sorted(lost, key=lambda m: int(m["seq"]))]
    ranges = groupby(enumerate(true), key=lambda e: (e[1][0] - e[0], e[1][1]))
    for (_, causes), together in ranges:
        given = {said[seq] for _, (seq, _) in together}
        if len(given) == 1 and given <= set(causes):
            right += 1
        else:
            pair = f"{' or '.join(causes)} → {', '.join(sorted(given))}"
            wrong[pair] = wrong.get(pair, 0) + 1
    return right, wrong


def _causes_of(message: Row) -> tuple[str, ...]:
    """All causes that were necessary: any of them may be named."""
    return tuple(message.get("causes") or [str(message["cause"])])


def require_clients_worked(evidence: Path) -> None:
    """LabError where a client died at the start, or sent nothing: such a run shows nothing."""
    scenario = json.loads((evidence / "scenario.json").read_text(encoding="utf-8"))
    sums = json.loads((evidence / "truth" / "truth.json").read_text(encoding="utf-8"))["sums"]
    for producer in scenario["producers"]:
        name = producer["name"]
        if not sums.get(name, {}).get("handed_over"):
            raise LabError(
                f"{scenario['name']}: the producer {name} sent nothing. "
                f"See {evidence / 'logs' / str(producer.get('host', name))}, and run it again."
            )
    printed: dict[str, str] = {}
    for consumer in scenario.get("consumers", ()):
        name = consumer["name"]
        python = evidence / "python" / f"{name}.jsonl"
        said = _text(python) + _text(evidence / "verifiable" / f"consumer-{name}.jsonl")
        group = str(consumer.get("group", name))
        printed[group] = printed.get(group, "") + said
    for group, said in printed.items():  # one member may have all partitions
        if "partitions_assigned" not in said:
            raise LabError(
                f"{scenario['name']}: the group {group} was never given a partition. "
                f"See {evidence / 'logs'}, and run it again."
            )


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def totals(scores: Sequence[Score]) -> dict[str, Any]:
    """The sums over all scenarios."""
    summed = ("sent", "lost", "found", "false_losses", "unknowable", "pending", "inconclusive")
    more = (
        "hidden",
        "missed",
        "missed_found",
        "false_skips",
        "ranges",
        "cause_right",
        "duplicates",
        "duplicates_found",
        "residual",
    )
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
    "hidden": "hidden losses",
    "false_skips": "false skips",
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


def put_into_page(page: str, made: str, begin: str = BEGIN, end: str = END) -> str:
    """*page* with what is between its markers replaced by *made*."""
    before, found, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise LabError(f"The page has no {begin} … {end}: there is no place for the table.")
    return f"{before}{begin}\n\n{made}\n{end}{after}"
