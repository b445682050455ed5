"""acktrail: the audit trail of Kafka delivery."""

__version__ = "0.1.0"
