"""Which reports a block is made of."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from acktrail.audit.block import newest_parts

PARTS = st.lists(
    st.fixed_dictionaries(
        {
            "reporter": st.sampled_from(["a", "b"]),
            "part": st.integers(0, 2),
            "number": st.integers(0, 5),
            "ids": st.sampled_from([b"\x00", b"\x00\x00\x05", b"\x02\x00\x05\x08"]),
            "records": st.integers(0, 9),
            "ended_ms": st.none() | st.integers(0, 9),
        }
    ),
    max_size=12,
)


@given(PARTS, st.randoms())
def test_newest_wins_whatever_the_order_and_however_often(parts, chance):
    again = parts + chance.choices(parts, k=4) if parts else []
    chance.shuffle(again)
    found = newest_parts(again)
    assert found == newest_parts(parts)
    assert [(p["reporter"], p["part"], p["number"]) for p in found] == sorted(
        _highest_numbers(parts)
    )


def _highest_numbers(parts):
    keys = {(p["reporter"], p["part"]) for p in parts}
    return [(*k, max(p["number"] for p in parts if (p["reporter"], p["part"]) == k)) for k in keys]
