"""Variants of a recording: the same run as it looks with less evidence, or with wrong clocks.

Each is a directory of its own with links to the files that stay as they are. Receipts are the
recorder's and never change: a client whose clock is wrong was still read when it was read.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from acktrail import recorded_receipts as receipts
from acktrail.contracts.vocabulary import Tier
from acktrail.recorded_receipts import Receipts
from lab import shifted_times
from lab.shifted_times import line_time

FULL = "full"
THINNED_S = (30, 300)
CLOCKS_S = (15, -15, 90, -90, 3600, -3600)
JUMPS_S = (3600, -3600)
OTHER_CLOCKS_S = (90, -90)
CUT_EVERY_S = 20
LEFT_OUT = (
    *("states", "groups", "configs", "broker logs", "client logs", "metrics", "scans"),
    *("final scan", "live scan", "producer reports", "consumer reports"),
)
HEARTBEATS = "heartbeats"
DURING = "asked during the run"
_ANSWERS = ("cluster/states.jsonl", "cluster/groups.jsonl")

Change = Callable[[bytes], bytes]


@dataclass(frozen=True)
class Variant:
    """What is different from the recording."""

    name: str
    kind: str = ""
    """Variants of one kind are added up; its name where not given."""
    thinned_s: int = 0
    """Answers of the cluster are this far apart."""
    clocks_s: Mapping[str, int] = field(default_factory=dict)
    """By client, or host of a broker: how far its clock is ahead."""
    clocks_from_ms: int = 0
    """They jump ahead at this moment, and are right before."""
    until_ms: int | None = None
    """Only what was received up to then."""
    left_out: str = ""
    """One of LEFT_OUT."""
    tiers: frozenset[Tier] = frozenset()
    """Reports of these tiers are left out."""

    @property
    def called(self) -> str:
        """The kind that it counts for."""
        return self.kind or self.name


def variants_of(evidence: Path) -> list[Variant]:
    """All variants of one recording."""
    scenario = json.loads(content(evidence / "scenario.json"))
    began_ms, ended_ms = int(scenario["began_at_ms"]), int(scenario["ended_at_ms"])
    found = [Variant(FULL)]
    found += [Variant(f"answers every {s} s", thinned_s=s) for s in THINNED_S]
    for producer in scenario["producers"]:
        name = str(producer["name"])
        found += [
            Variant(f"clock of {name} {s:+} s", kind=f"one clock {s:+} s", clocks_s={name: s})
            for s in CLOCKS_S
        ]
    began_fault_ms = _first_fault_ms(evidence, began_ms)
    producers = [str(each["name"]) for each in scenario["producers"]]
    found += [
        Variant(f"clocks jump {s:+} s", clocks_s=_all(producers, s), clocks_from_ms=began_fault_ms)
        for s in JUMPS_S
    ]
    consumers = [str(each["name"]) for each in scenario["consumers"]]
    brokers = sorted(path.name for path in (evidence / "logs").glob("kafka-*"))
    for whose, names in (("groups", consumers), ("brokers", brokers)):
        found += [
            Variant(f"clocks of {whose} {s:+} s", clocks_s=_all(names, s)) for s in OTHER_CLOCKS_S
        ]
    cuts = range(began_ms + CUT_EVERY_S * 1000, ended_ms, CUT_EVERY_S * 1000)
    found += [
        Variant(
            f"asked after {(at - began_ms) // 1000} s", kind="asked during the run", until_ms=at
        )
        for at in cuts
    ]
    found += [Variant(f"no {what}", left_out=what) for what in LEFT_OUT]
    found.append(Variant(f"no {HEARTBEATS}", tiers=frozenset({Tier.HEARTBEAT})))
    return found


def _all(names: Sequence[str], by_s: int) -> dict[str, int]:
    return dict.fromkeys(names, by_s)


def _first_fault_ms(evidence: Path, otherwise: int) -> int:
    """When the first fault began."""
    for path in _either(evidence, "faults.json"):
        return min((int(each["at_ms"]) for each in json.loads(content(path))), default=otherwise)
    return otherwise


def derive(evidence: Path, variant: Variant, target: Path, without: Sequence[str] = ()) -> None:
    """Make *variant* of the recording *evidence* in the new directory *target*.

    *without* are folders that nobody will read.
    """
    described = json.loads(content(evidence / "scenario.json"))
    run = _Run(evidence, described, variant)
    ended_ms = described["ended_at_ms"] if variant.until_ms is None else variant.until_ms
    target.mkdir(parents=True)
    (target / "scenario.json").write_text(json.dumps({**described, "ended_at_ms": ended_ms}))
    kept = [m for m in run.receipts.rows() if _is_before(m["at_ms"], variant.until_ms)]
    (target / receipts.FILE).write_text("".join(json.dumps(row) + "\n" for row in kept))
    for source in sorted(path for path in evidence.rglob("*") if path.is_file()):
        name = plain_name(source, evidence)
        folder = name.partition("/")[0]
        if "/" not in name or folder in ("truth", *without) or run.is_left_out(name):
            continue
        change = run.change_of(name)
        place = target / (source.relative_to(evidence) if change is None else name)
        place.parent.mkdir(parents=True, exist_ok=True)
        if change is None:
            place.symlink_to(source.resolve())
        elif changed := change(content(source)):
            place.write_bytes(changed)


def content(path: Path) -> bytes:
    """All bytes, decompressed."""
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def plain_name(path: Path, evidence: Path) -> str:
    """The file's path below *evidence* before it was compressed."""
    return path.relative_to(evidence).as_posix().removesuffix(".gz")


class _Run:
    """What a variant does to each file of a run."""

    def __init__(self, evidence: Path, scenario: Mapping[str, Any], variant: Variant) -> None:
        self._variant = variant
        self._outputs = {
            role: {_output(role, client): client for client in scenario[f"{role}s"]}
            for role in ("producer", "consumer")
        }
        self._hosts = {
            str(client["host"]): str(client["name"])
            for client in (*scenario["producers"], *scenario["consumers"])
        }
        self.receipts = _receipts_of(evidence, self._outputs)
        self._left_out: dict[str, Callable[[str], bool]] = {
            "states": lambda name: name == "cluster/states.jsonl",
            "groups": lambda name: name == "cluster/groups.jsonl",
            "configs": lambda name: name == "cluster/configs.jsonl",
            "broker logs": lambda name: name.startswith("logs/kafka-"),
            "client logs": lambda name: name.startswith("logs/") and "logs/kafka-" not in name,
            "metrics": lambda name: name.startswith("metrics/"),
            "scans": lambda name: name.startswith(("scan/", "live/")),
            "final scan": lambda name: name.startswith("scan/"),
            "live scan": lambda name: name.startswith("live/"),
            "producer reports": lambda name: name in self._outputs["producer"],
            "consumer reports": lambda name: name in self._outputs["consumer"],
        }

    def is_left_out(self, name: str) -> bool:
        """Whether the variant has the file *name* not at all."""
        what = self._variant.left_out
        return bool(what) and self._left_out[what](name)

    def change_of(self, name: str) -> Change | None:
        """What is done to the content of *name*; None: nothing."""
        if self._variant.until_ms is not None:
            return self._cut(name, self._variant.until_ms)
        if self._variant.thinned_s and name in _ANSWERS:
            return lambda text: thin(text, self._variant.thinned_s)
        client = self._outputs["producer"].get(name) or self._outputs["consumer"].get(name)
        of = str(client["name"]) if client else ""
        if client is None and name.startswith("logs/"):
            host = name.split("/")[1]
            of = self._hosts.get(host, host)
        by_ms = self._variant.clocks_s.get(of, 0) * 1000
        if not by_ms:
            return None
        shift = shifted_times.shift_output if client else shifted_times.shift_log
        return lambda text: shift(text, by_ms, self._variant.clocks_from_ms)

    def _cut(self, name: str, until_ms: int) -> Change:
        if name in self.receipts.marks or any(name in of for of in self._outputs.values()):
            return lambda text: self._received_by(name, text, until_ms)
        folder = name.partition("/")[0]
        if folder == "scan":
            return lambda text: text if _ended_ms(text) <= until_ms else b""
        if folder == "logs":
            return lambda text: cut_log(text, until_ms)
        return lambda text: b"".join(
            line
            for line in text.splitlines(keepends=True)
            if _is_before(_at_ms(json.loads(line)), until_ms)
        )

    def _received_by(self, name: str, text: bytes, until_ms: int) -> bytes:
        end = 0
        for piece in self.receipts.pieces(name, text, until_ms + 1):
            if piece.received_ms <= until_ms:
                end = piece.end
        return text[:end]


def thin(text: bytes, every_s: int) -> bytes:
    """Of each place (and group), the first answer and those at least *every_s* after the last."""
    last: dict[tuple[Any, ...], int] = {}
    kept = []
    for line in text.splitlines(keepends=True):
        row = json.loads(line)
        key = (row.get("group"), row["topic"], row["partition"])
        if key not in last or row["at_ms"] >= last[key] + every_s * 1000:
            last[key] = row["at_ms"]
            kept.append(line)
    return b"".join(kept)


def cut_log(text: bytes, until_ms: int) -> bytes:
    """The records of a log that were printed up to a time, with the lines that go on a record."""
    kept, within = [], True
    for line in text.splitlines(keepends=True):
        at_ms = line_time(line)
        if at_ms is not None:
            within = at_ms <= until_ms
        if within:
            kept.append(line)
    return b"".join(kept)


def _output(role: str, client: Mapping[str, Any]) -> str:
    if client.get("kind") == "python":
        return f"python/{client['name']}.jsonl"
    return f"verifiable/{role}-{client['name']}.jsonl"


def _receipts_of(evidence: Path, outputs: Mapping[str, Mapping[str, Any]]) -> Receipts:
    for path in _either(evidence, receipts.FILE):
        return Receipts.of_rows(json.loads(line) for line in content(path).splitlines())
    names = [name for of in outputs.values() for name in of]
    return Receipts.of_texts(
        {name: content(path) for name in names for path in _either(evidence, name)}
    )


def _either(evidence: Path, name: str) -> Iterator[Path]:
    """The file *name*, compressed or not, where it is there."""
    for path in (evidence / name, evidence / f"{name}.gz"):
        if path.is_file():
            yield path


def _ended_ms(scan: bytes) -> int:
    last = json.loads(scan.splitlines()[-1])
    return int(last["at_ms"])


def _at_ms(row: Mapping[str, Any]) -> int:
    return int(row["received_ms"] if "received_ms" in row else row["at_ms"])


def _is_before(at_ms: int, until_ms: int | None) -> bool:
    return until_ms is None or at_ms <= until_ms
