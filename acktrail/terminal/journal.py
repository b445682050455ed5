"""The log of a long-running command, on stderr: one event per line."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime

from acktrail.logs.redact import redact

_STANDARD = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class Sentences(logging.Formatter):
    """`time LEVEL source: sentence key=value ...`, credentials redacted."""

    def format(self, record: logging.LogRecord) -> str:
        """One line; a traceback follows on lines of its own."""
        at = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        fields = {k: v for k, v in vars(record).items() if k not in _STANDARD}
        source = f"{fields.pop('source')}: " if "source" in fields else ""
        said = " ".join(f"{key}={_shown(value)}" for key, value in fields.items())
        line = f"{at} {record.levelname} {source}{record.getMessage()} {said}".rstrip()
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return redact(line)


def to_stderr(level: int = logging.INFO) -> None:
    """Write what our loggers report to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Sentences())
    for name in ("acktrail", "ingest"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(level)
        logger.propagate = False


def _shown(value: object) -> str:
    text = str(value)
    return repr(text) if any(c.isspace() for c in text) or not text else text
