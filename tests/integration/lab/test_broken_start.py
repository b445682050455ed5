"""A broker that cannot start: one clear line, and nothing left running."""

from __future__ import annotations

import socket

import pytest

from acktrail.errors import LabError
from lab.cluster import Cluster
from lab.proxy import Proxy


def test_a_port_that_is_taken_is_one_line_that_says_so(tmp_path):
    with Proxy() as proxy, socket.socket() as taken:
        nodes = Cluster("4.3.1", tmp_path, proxy)
        taken.bind(("127.0.0.1", nodes.brokers[1].internal_port))
        taken.listen()
        try:
            with pytest.raises(
                LabError, match=r"broker 1 did not come up: .*(?i:in use|bind)"
            ) as told:
                nodes.start(within=90)
        finally:
            nodes.stop()
    assert "\n" not in str(told.value)
    assert not any(broker.running for broker in nodes.brokers.values())
