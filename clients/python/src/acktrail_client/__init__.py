"""Audited Kafka clients: confluent-kafka's own, which report what becomes of every message."""

from acktrail_client.asyncio_producer import AuditedAIOProducer
from acktrail_client.audit import Audit
from acktrail_client.consumer import AuditedConsumer, AuditedDeserializingConsumer
from acktrail_client.producer import AuditedProducer, AuditedSerializingProducer
from acktrail_client.reporters import problems

__all__ = [
    "Audit",
    "AuditedAIOProducer",
    "AuditedConsumer",
    "AuditedDeserializingConsumer",
    "AuditedProducer",
    "AuditedSerializingProducer",
    "problems",
]
