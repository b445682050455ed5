"""The policy: thresholds, owners and maintenance windows, as a team decides them."""

from acktrail.policy.file import read_policy
from acktrail.policy.model import KINDS, Policy

__all__ = ["KINDS", "Policy", "read_policy"]
