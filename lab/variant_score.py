"""The scores of variants, added up by kind: what less evidence costs, and that it never lies.

A view of a run under way is asked only whether what it claims is true: the truth knows what was
lost in the end, not when.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lab.score import Score
from lab.variants import DURING, FULL

BEGIN, END = "<!-- variants: begin -->", "<!-- variants: end -->"
_REASONS = 3
"""How many reasons the table names."""


@dataclass(frozen=True)
class VariantScore:
    """One variant of one scenario."""

    variant: str
    kind: str
    score: Score


@dataclass(frozen=True)
class KindScore:
    """All variants of one kind."""

    kind: str
    views: int
    false_losses: int
    false_skips: int
    hidden: int | None
    """None for views of a run under way."""
    lost: int | None
    found: int
    missed: int | None
    missed_found: int
    ranges: int
    cause_right: int
    known: int
    """Ids with accounts."""
    undecided: int
    reasons: Mapping[str, int]

    @property
    def undecided_share(self) -> float | None:
        """Of the ids with accounts, those that are pending or inconclusive."""
        return self.undecided / self.known if self.known else None


def by_kind(scores: Iterable[VariantScore]) -> list[KindScore]:
    """The sums, the full view first, then in the order in which kinds come."""
    kinds: dict[str, list[Score]] = {FULL: []}
    for each in scores:
        kinds.setdefault(each.kind, []).append(each.score)
    return [_added(kind, listed) for kind, listed in kinds.items() if listed]


def _added(kind: str, scores: Sequence[Score]) -> KindScore:
    def total(name: str) -> int:
        return sum(getattr(score, name) for score in scores)

    reasons: Counter[str] = Counter()
    for score in scores:
        reasons.update(score.reasons)
    ended = kind != DURING
    return KindScore(
        kind=kind,
        views=len(scores),
        false_losses=total("false_losses"),
        false_skips=total("false_skips"),
        hidden=total("hidden") if ended else None,
        lost=total("lost") + total("unknowable") if ended else None,
        found=total("found"),
        missed=total("missed") if ended else None,
        missed_found=total("missed_found"),
        ranges=total("ranges"),
        cause_right=total("cause_right"),
        known=total("known"),
        undecided=total("pending") + total("inconclusive"),
        reasons=dict(reasons.most_common()),
    )


_HEADS = (
    *("view of the run", "views", "false losses", "false skips", "hidden losses", "lost", "found"),
    *("missed by groups", "found", "cause right", "undecided", "mostly because"),
)


def table(scores: Iterable[VariantScore]) -> str:
    """All kinds as a Markdown table."""
    lines = ["| " + " | ".join(_HEADS) + " |", "| " + " | ".join("---" for _ in _HEADS) + " |"]
    for kind in by_kind(scores):
        cells = (
            *(kind.kind, kind.views, kind.false_losses, kind.false_skips, kind.hidden),
            *(kind.lost, kind.found, kind.missed, kind.missed_found),
            f"{kind.cause_right} of {kind.ranges}",
            "-" if kind.undecided_share is None else f"{kind.undecided_share:.1%}",
            _mostly(kind),
        )
        lines.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _mostly(kind: KindScore) -> str:
    """The commonest reasons, with their share of the undecided ids."""
    if not kind.undecided:
        return "-"
    listed = list(kind.reasons.items())[:_REASONS]
    return ", ".join(f"{name} {number / kind.undecided:.0%}" for name, number in listed)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else str(value)


def as_json(scores: Sequence[VariantScore]) -> str:
    """Every variant, and the sums by kind."""
    kinds = [{**asdict(each), "undecided_share": each.undecided_share} for each in by_kind(scores)]
    return json.dumps({"kinds": kinds, "variants": [asdict(s) for s in scores]}, indent=1)


def write_result(path: Path, made_by: str, scored: VariantScore) -> None:
    """Keep one result, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text(json.dumps({"made_by": made_by, **asdict(scored)}, indent=1) + "\n")
    new.replace(path)


def read_result(path: Path, made_by: str) -> VariantScore | None:
    """The result kept at *path*; None where there is none, or other code or evidence made it."""
    if not path.is_file():
        return None
    kept = json.loads(path.read_text(encoding="utf-8"))
    if kept["made_by"] != made_by:
        return None
    return VariantScore(kept["variant"], kept["kind"], Score(**kept["score"]))
