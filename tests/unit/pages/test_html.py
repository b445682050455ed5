"""One function lets text into a page; whatever is read stays text."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acktrail.links import anchor, link
from acktrail.pages.html import LONGEST, escape, join, tag


@given(st.text(), st.text())
def test_any_text_is_read_back_as_text(text: str, value: str) -> None:
    made = ElementTree.fromstring(tag("p", text, title=value))
    assert not list(made)
    for found in (made.text or "", made.get("title") or ""):
        assert len(found) <= 2000


@given(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126), max_size=300))
def test_plain_text_is_kept_whole(text: str) -> None:
    assert (ElementTree.fromstring(tag("p", text)).text or "") == text


def test_long_texts_are_cut_and_directions_are_not_turned() -> None:
    assert len(escape("x" * 100_000)) == LONGEST
    assert "\u202e" not in escape("invoice\u202egpj.exe")


@pytest.mark.parametrize("name", ["onclick", "style", "on_load", "a b"])
def test_no_attribute_runs_or_draws_by_itself(name: str) -> None:
    with pytest.raises(ValueError, match="not an attribute"):
        tag("p", **{name: "alert(1)"})


def test_nothing_is_left_out_of_a_join_but_none() -> None:
    assert join(None, False, 0, ["<", [tag("br")]], "") == "0&lt;<br>"


@given(st.text(), st.text())
def test_two_names_never_share_a_link(one: str, other: str) -> None:
    assert (anchor("client", one) == anchor("client", other)) == (one == other)
    assert not set(anchor("client", one)) & set(" \t\n\"'<>#")


def test_a_link_replaces_the_fragment_of_its_address() -> None:
    assert link("https://r.example/a.html#x", "topic", "pay ments").startswith(
        "https://r.example/a.html#topic-pay_ments~"
    )
