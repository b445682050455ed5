"""The scenarios, one file each, in the order they are told."""

from __future__ import annotations

from lab.scenario import Scenario
from lab.scenarios import (
    acks_1_leader_crash,
    broker_down_after_metadata,
    broker_down_before_metadata,
    controller_failover,
    demo_incident,
    election_acks_0,
    election_acks_1,
    election_acks_all,
    late_consumer,
    lost_ack,
    lost_ack_idempotent,
    network_cut,
    not_enough_replicas,
    not_enough_replicas_default_retries,
    producer_crash,
    reordering,
    rolling_restart,
    unclean_election,
)

SCENARIOS: tuple[Scenario, ...] = (
    # The classic producer experiments.
    broker_down_before_metadata.SCENARIO,
    broker_down_after_metadata.SCENARIO,
    not_enough_replicas.SCENARIO,
    not_enough_replicas_default_retries.SCENARIO,
    election_acks_0.SCENARIO,
    election_acks_1.SCENARIO,
    election_acks_all.SCENARIO,
    lost_ack.SCENARIO,
    lost_ack_idempotent.SCENARIO,
    reordering.SCENARIO,
    # Loss that nobody reports.
    acks_1_leader_crash.SCENARIO,
    unclean_election.SCENARIO,
    producer_crash.SCENARIO,
    # What must lose nothing.
    rolling_restart.SCENARIO,
    controller_failover.SCENARIO,
    network_cut.SCENARIO,
    late_consumer.SCENARIO,
    # Several of these in one run.
    demo_incident.SCENARIO,
)
