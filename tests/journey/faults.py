"""The faults of the journey, each from its beginning to the cure."""

from __future__ import annotations

import time

from lab.processes import now_ms
from lab.steps import wait_until
from tests.journey.applications import Applications


def stop_broker(applications: Applications, broker: int, seconds: float) -> None:
    """A broker that is gone for *seconds*."""
    nodes = applications.nodes
    process = nodes.brokers[broker].process
    assert process is not None
    process.kill()
    time.sleep(seconds)
    nodes.launch(broker)
    nodes.wait_started(broker, 180)


def stop_until_given_up(applications: Applications, broker: int, producer: str) -> None:
    """A broker that is gone until *producer* gives up on messages."""
    nodes = applications.nodes
    before = applications.failed(producer)
    process = nodes.brokers[broker].process
    assert process is not None
    process.kill()
    gave_up = wait_until(lambda: applications.failed(producer) > before, 240, pause=0.5)
    assert gave_up, f"{producer} did not give up"
    nodes.launch(broker)
    nodes.wait_started(broker, 180)


def lose_acknowledged(applications: Applications, producer: str, topic: str) -> None:
    """The leader acknowledges what the followers do not have, and dies."""
    nodes = applications.nodes
    leader = applications.leader(topic)
    others = [b for b in nodes.brokers.values() if b.id != leader]
    before = applications.acked(producer)
    for other in others:
        assert other.process is not None
        other.process.pause()
    wait_until(lambda: applications.acked(producer) > before + 60, 4)
    dying = nodes.brokers[leader].process
    assert dying is not None
    dying.kill()
    applications.marks["died"] = now_ms()
    for other in others:
        assert other.process is not None
        other.process.resume()
    moved = wait_until(lambda: applications.leader(topic) not in (leader, -1), 90, pause=0.5)
    assert moved, "nobody took over"
    time.sleep(5)
    nodes.launch(leader)
    nodes.wait_started(leader, 180)


def return_slowly(applications: Applications, broker: int, away_s: float, slow_s: float) -> None:
    """A broker that is gone for *away_s*, and then for *slow_s* gets a fifth of its time."""
    nodes = applications.nodes
    first = nodes.brokers[broker].process
    assert first is not None
    first.kill()
    time.sleep(away_s)
    nodes.launch(broker)
    process = nodes.brokers[broker].process
    assert process is not None
    until = time.monotonic() + slow_s
    while time.monotonic() < until:
        process.pause()
        time.sleep(2.0)
        process.resume()
        time.sleep(0.5)
    nodes.wait_started(broker, 180)
