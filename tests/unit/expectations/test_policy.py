"""The policy file: what it allows, and what it says when it is wrong."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from acktrail.alerts.finding import Finding
from acktrail.contracts.vocabulary import Outcome
from acktrail.errors import ConfigError
from acktrail.policy import Policy, read_policy

CHECKS = ["no_loss_after_ack", "retry_rate_within_bounds"]
THRESHOLDS = {"retry_rate_per_s": 1.0}
SUNDAY = datetime(2026, 2, 1, 3, 0, tzinfo=UTC)


def read(tmp_path, text):
    path = tmp_path / "policy.yaml"
    path.write_text(text)
    policy = read_policy(path)
    policy.require_known(path, CHECKS, THRESHOLDS)
    return policy


WRONG = {
    "an unknown setting": ("ownrs: []", "ownrs: there is no such setting"),
    "a list": ("- a", "must hold settings"),
    "not YAML": ("a: [", "not readable YAML"),
    "a duration without a unit": ("window: 24", "window = 24: a duration is a number with"),
    "an owner without a name": ("owners: [{topics: a}]", "owners.0.owner: it is required"),
    "an unknown threshold": ("thresholds: [{set: {speed: 1}}]", "there is no threshold speed"),
    "a threshold that is no number": (
        "thresholds: [{set: {retry_rate_per_s: many}}]",
        "thresholds.0.set.retry_rate_per_s",
    ),
    "an unknown check": (
        "maintenance: [{name: a, between: '02:00-03:00', checks: nothing}]",
        "no check is called nothing",
    ),
    "an unknown grade": ("grades: {no_loss_after_ack: severe}", "grades.no_loss_after_ack"),
    "a grade of an unknown check": ("grades: {nothing: warn}", "no check is called nothing"),
    "maintenance without a time": ("maintenance: [{name: a}]", "give `from` and `to`"),
    "half a time": ("maintenance: [{name: a, from: 2026-01-01T00:00Z}]", "belong together"),
    "a time without an offset": (
        "maintenance: [{name: a, from: 2026-01-01T00:00:00, to: 2026-01-02T00:00:00}]",
        "need an offset",
    ),
    "a time that ends first": (
        "maintenance: [{name: a, from: '2026-01-02T00:00Z', to: '2026-01-01T00:00Z'}]",
        "must be after",
    ),
    "a wrong clock": ("maintenance: [{name: a, between: 2-4}]", "write it like 02:00-04:00"),
    "an unknown zone": (
        "maintenance: [{name: a, between: '02:00-04:00', zone: Mars/Base}]",
        "no time zone Mars/Base",
    ),
    "a mistyped zone": (
        "maintenance: [{name: a, between: '02:00-04:00', zone: Europe/Berln}]",
        "Did you mean Europe/Berlin",
    ),
    "a mistyped setting": ("owner: []", "owner: there is no such setting. Did you mean owners"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_policy_says_where_and_what(tmp_path, case):
    text, said = WRONG[case]
    with pytest.raises(ConfigError) as raised:
        read(tmp_path, text)
    assert said in str(raised.value)
    assert "policy.yaml" in str(raised.value)


def test_a_policy_that_is_not_there_says_so(tmp_path):
    with pytest.raises(ConfigError, match="does not exist"):
        read_policy(tmp_path / "none.yaml")


def test_no_policy_is_the_default_one(tmp_path):
    assert read(tmp_path, "") == read_policy(None) == Policy()


def finding(**facts):
    usual = {"cluster": "east", "topic": "payments.eu", "group": "", "state": "s", "cause": "c"}
    return Finding(
        outcome=Outcome.FAIL,
        starts_at=SUNDAY,
        ends_at=None,
        because="it is so",
        **{**usual, "check": "retry_rate_within_bounds", **facts},
    )


def test_the_first_owner_whose_globs_all_match_is_told(tmp_path):
    policy = read(
        tmp_path,
        """
        default_owner: platform
        owners:
          - {topics: ["payments.*"], clients: [legacy-*], owner: legacy}
          - {topics: ["payments.*", "refunds"], owner: payments}
        """,
    )
    assert policy.owner_of(finding(clients=("legacy-1",))) == "legacy"
    assert policy.owner_of(finding(clients=("checkout",))) == "payments"
    assert policy.owner_of(finding(topic="refunds")) == "payments"
    assert policy.owner_of(finding(topic="clicks")) == "platform"


def test_thresholds_are_given_per_place(tmp_path):
    policy = read(
        tmp_path, "thresholds: [{topics: [a, b], clients: 'c*', set: {retry_rate_per_s: 5}}]"
    )
    assert policy.limits(["retry_rate_per_s"]) == [
        {"topic": "a", "client_id": "c*", "retry_rate_per_s": 5.0},
        {"topic": "b", "client_id": "c*", "retry_rate_per_s": 5.0},
    ]
    assert policy.limits(["other"]) == []


WINDOWS = {
    # case: window, hours from Sunday 03:00 UTC -> muted
    "inside": ("days: [sun], between: '02:00-04:00'", 0, True),
    "at its start": ("days: [sun], between: '03:00-04:00'", 0, True),
    "at its end": ("days: [sun], between: '02:00-03:00'", 0, False),
    "another day": ("days: [mon], between: '02:00-04:00'", 0, False),
    "every day": ("between: '02:00-04:00'", 24, True),
    "past midnight, in the evening": ("days: [sat], between: '22:00-04:00'", -4, True),
    "past midnight, in the morning": ("days: [sat], between: '22:00-04:00'", 0, True),
    "past midnight, a day later": ("days: [sat], between: '22:00-04:00'", 24, False),
    "in another zone": ("between: '02:00-04:00', zone: America/New_York", 0, False),
    "in its own zone": ("between: '22:00-23:00', zone: America/New_York", 0, True),
}


@pytest.mark.parametrize("case", WINDOWS)
def test_a_maintenance_window_holds_when_it_says(tmp_path, case):
    window, hours, muted = WINDOWS[case]
    policy = read(tmp_path, f"maintenance: [{{name: restart, {window}}}]")
    name = policy.muted_by(finding(), SUNDAY + timedelta(hours=hours))
    assert name == ("restart" if muted else "")


def test_a_window_mutes_only_its_place_and_checks_and_never_a_loss(tmp_path):
    policy = read(
        tmp_path,
        "maintenance: [{name: r, between: '00:00-23:59', topics: 'pay*', checks: 'retry_*'}]",
    )
    assert policy.muted_by(finding(), SUNDAY) == "r"
    assert policy.muted_by(finding(topic="clicks"), SUNDAY) == ""
    assert policy.muted_by(finding(check="no_loss_after_ack"), SUNDAY) == ""
    assert policy.muted_by(finding(loss=True), SUNDAY) == ""
