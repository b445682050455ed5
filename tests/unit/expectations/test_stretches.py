"""When something was so, from instants and from gauges; against a clock that ticks seconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from expectations.stretches import RECOVERED, above_zero, stretches

T0 = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
LIMIT = int(RECOVERED.total_seconds())
second = st.integers(0, 4 * LIMIT)
gauge = st.sampled_from("ab")


def at(seconds: int) -> datetime:
    return T0 + timedelta(seconds=seconds)


@settings(max_examples=200, deadline=None)
@given(st.lists(second), second)
def test_instants_are_together_where_no_pause_is_too_long(seen, asked):
    found = stretches([at(s) for s in seen], at(asked))
    inside = sorted(s for s in seen if s <= asked)
    breaks = [a for a, b in pairwise(inside) if b - a > LIMIT]
    assert len(found) == (len(breaks) + 1 if inside else 0)
    assert [s.last_at for s in found] == [*map(at, breaks), *([at(inside[-1])] if inside else [])]
    assert [s.ends_at is None for s in found[:-1]] == [False] * len(breaks)
    if inside:
        assert found[0].starts_at == at(inside[0])
        assert (found[-1].ends_at is None) == (asked - inside[-1] <= LIMIT)


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(st.tuples(second, st.sampled_from("ab")), st.integers(0, 2), max_size=12),
    second,
)
def test_gauges_are_above_zero_until_all_deny_it_or_fall_silent(samples, asked):
    """The oracle walks second by second and remembers what each gauge said last."""
    found = above_zero([(at(s), who, float(v)) for (s, who), v in samples.items()], at(asked))
    high, spans, last = {}, [], None
    for now in range(asked + 1):
        if spans and spans[-1][1] is None and last is not None and now - last > LIMIT:
            spans[-1][1] = last
            high = {}
        for who in "ab":
            value = samples.get((now, who))
            if value:
                if not spans or spans[-1][1] is not None:
                    spans.append([now, None])
                high[who] = last = now
            elif value == 0:
                high.pop(who, None)
                if not high and spans and spans[-1][1] is None:
                    spans[-1][1] = last
    got = [(s.starts_at, s.ends_at) for s in found]
    assert got == [(at(a), None if b is None else at(b)) for a, b in spans]
