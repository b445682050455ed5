"""Settings of a client, as it prints or reports them."""

from __future__ import annotations

import pytest

from acktrail.retries.client_settings import read_settings


@pytest.mark.parametrize("value", ["many", "", "nan", "inf", "1e400"])
def test_what_is_not_a_number_is_unknown(value: str) -> None:
    known = read_settings("here", {"retries": value, "linger.ms": "5"})
    assert (known.retries, known.linger_ms) == (None, 5)
