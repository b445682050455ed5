"""The jar for Java applications in the lab's clients: where it is, and the settings it takes."""

from __future__ import annotations

from pathlib import Path

from acktrail.errors import LabError
from lab import report_topic
from lab.client_choice import JAVA_WRAPPER
from lab.scenario import Consumer, Producer

WRAPPED_PRODUCER = "AuditedVerifiableProducer"
"""VerifiableProducer makes its own KafkaProducer: this one is the same, wrapped (`lab/java`)."""
_ROOT = Path(__file__).parents[1]


def class_path() -> str:
    """The jar, and the lab's own program; LabError where they were not built."""
    jars = sorted((_ROOT / "dist").glob("acktrail-client-*.jar"))
    programs = _ROOT / "build" / "java" / "more"
    if not jars or not programs.is_dir():
        raise LabError("the jar for Java applications is not built. Run: make jar")
    return f"{jars[-1]}:{programs}"


def settings(wanted: Producer | Consumer) -> dict[str, str]:
    """What makes a client report; an interceptor unless its producer is wrapped."""
    found = {
        "acktrail.topic": report_topic.NAME,
        "acktrail.host": wanted.host,
        "acktrail.interval.ms": str(int(report_topic.INTERVAL_S * 1000)),
        "acktrail.close.ms": str(int(report_topic.CLOSE_S * 1000)),
    }
    if wanted.audited != JAVA_WRAPPER:
        role = "Producer" if isinstance(wanted, Producer) else "Consumer"
        found["interceptor.classes"] = f"io.acktrail.Audit{role}Interceptor"
    return found
