"""Writers that meet on one table, beside a naive model of who may commit.

Each writer computes what it will commit on the version it sees, and commits later: others may have
committed in between. The model keeps the rows of each partition and, for each, when its rows last
changed; a replacement computed before that is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa
from hypothesis import strategies as st

from acktrail.contracts.arrow import rows
from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.errors import Overtaken
from acktrail.lake import (
    Change,
    Lake,
    ReplaceAll,
    ReplaceBefore,
    Replacement,
    ReplaceNothing,
    ReplacePartitions,
    ReplaceRange,
    housekeeping,
)
from acktrail.lake.data_files import write_files

NOW = datetime(2026, 1, 31, 7, tzinfo=UTC)
DAYS = ("2026-01-29", "it's 100%", "a=b/c", "2026-01-31")

_day = st.sampled_from(DAYS)
_replacements = st.one_of(
    st.just(ReplaceNothing()),
    st.just(ReplaceAll()),
    st.builds(ReplacePartitions, st.frozensets(_day)),
    st.tuples(_day, _day).map(lambda pair: ReplaceRange(*sorted(pair))),
)


@dataclass(frozen=True)
class Compute:
    """Writer *number* computes a replacement, with a row for each of *days* that it covers."""

    number: int
    replaced: Replacement
    days: tuple[str, ...]


@dataclass(frozen=True)
class Commit:
    """Writer *number* commits what it has computed."""

    number: int


@dataclass(frozen=True)
class Compact:
    """The small files of every partition are put together."""


@dataclass(frozen=True)
class Expire:
    """Rows of partitions before *limit* are deleted."""

    limit: str


_writer = st.integers(0, 2)
steps = st.lists(
    st.one_of(
        st.builds(Compute, _writer, _replacements, st.lists(_day, max_size=3).map(tuple)),
        st.builds(Commit, _writer),
        st.builds(Commit, _writer),
        st.just(Compact()),
        st.builds(Expire, _day),
    ),
    max_size=14,
)


@dataclass
class _Planned:
    step: Compute
    version: int
    at: int
    texts: list[str]


class Meeting:
    """The lake beside the model."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        for word in ("first", "second"):  # two files in each partition: compaction has work
            self.lake.append(LOG_RECORDS, records([(day, f"{word} {day}") for day in DAYS]))
        self.model = {day: Counter([f"first {day}", f"second {day}"]) for day in DAYS}
        self.changed_at = dict.fromkeys(DAYS, 0)
        self.clock = 0
        self.planned: dict[int, _Planned] = {}
        self.outcomes: Counter[str] = Counter()

    def play(self, story: Sequence[Compute | Commit | Compact | Expire]) -> None:
        """Every step, and after each the lake has the rows of the model."""
        for step in story:
            self.clock += 1
            if isinstance(step, Compute):
                self._compute(step)
            elif isinstance(step, Commit):
                self._commit(step.number)
            elif isinstance(step, Compact):
                housekeeping.compact(self.lake, LOG_RECORDS, self.lake.files(LOG_RECORDS))
            else:
                housekeeping.expire(self.lake, LOG_RECORDS, step.limit)
                self._replace(ReplaceBefore(step.limit), [])
            assert stored(self.lake) == +sum(self.model.values(), Counter()), step

    def _compute(self, step: Compute) -> None:
        version = self.lake.version(LOG_RECORDS)
        assert version is not None
        days = [d for d in step.days if step.replaced.covers({"day": d}) or _adds(step.replaced)]
        texts = [f"{day}|{self.clock}.{n}" for n, day in enumerate(days)]
        self.planned[step.number] = _Planned(step, version, self.clock, texts)

    def _commit(self, number: int) -> None:
        planned = self.planned.pop(number, None)
        if planned is None:
            return
        replaced = planned.step.replaced
        made = records([(text.split("|")[0], text) for text in planned.texts])
        lake = self.lake
        files = write_files(LOG_RECORDS, made, lake.at(LOG_RECORDS))
        late = any(
            replaced.covers({"day": day}) and self.changed_at[day] > planned.at for day in DAYS
        )
        change = Change(replaced=replaced, computed_at=planned.version)
        try:
            lake.put(LOG_RECORDS, files, change)
        except Overtaken:
            assert late, f"{planned.step} was refused, and nothing it replaces had changed"
            self.outcomes["refused"] += 1
            return
        assert not late, f"{planned.step} was committed over later rows"
        self.outcomes["committed"] += 1
        self._replace(replaced, planned.texts)

    def _replace(self, replaced: Replacement, texts: list[str]) -> None:
        for day in DAYS:
            added = [text for text in texts if text.split("|")[0] == day]
            gone = replaced.covers({"day": day}) and bool(self.model[day])
            if gone or added:
                self.changed_at[day] = self.clock
            kept = Counter[str]() if gone else self.model[day]
            self.model[day] = kept + Counter(added)


def _adds(replaced: Replacement) -> bool:
    return isinstance(replaced, ReplaceNothing)


def records(wanted: Sequence[tuple[str, str]]) -> pa.Table:
    """A row for each day and text."""
    return rows(
        LOG_RECORDS,
        [
            {
                "cluster": "c", "source": "s", "file_id": "f", "position": 0, "text": text,
                "truncated": False, "read_at": NOW, "day": day,
            }
            for day, text in wanted
        ],
    )  # fmt: skip


def stored(lake: Lake) -> Counter[str]:
    """Every text in the lake, and how often it is there."""
    return Counter(lake.read(LOG_RECORDS, columns=["text"]).column("text").to_pylist())
