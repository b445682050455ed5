"""A real Kafka cluster on loopback, real faults, and the truth about every message."""
