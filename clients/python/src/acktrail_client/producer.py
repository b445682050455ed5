"""The audited producer: confluent-kafka's own, whose messages have an id and are accounted for."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from functools import partial
from time import time_ns
from types import MethodType
from typing import Any

from confluent_kafka import KafkaException, Producer, SerializingProducer

from acktrail_client.audit import Audit
from acktrail_client.identity import HEADER_NAME, Header, Headers, pack_header, with_header
from acktrail_client.reporter import log
from acktrail_client.sent_ids import ONE_MORE
from acktrail_client.session import Session

_STATISTICS_MS = 30_000
_produce = Producer.produce
REFUSED = (BufferError, KafkaException, TypeError, ValueError, OverflowError, NotImplementedError)
"""What `produce()` raises: nothing was handed over, and the number is given to the next message.

Anything else comes from a signal's handler, perhaps after the message was handed over.
"""


class AuditedProducer(Producer):
    """A `confluent_kafka.Producer` that is audited. Without *audit*: `Audit()`, on its cluster."""

    def __init__(self, conf: Mapping[str, Any], *, audit: Audit | None = None, **more: Any) -> None:
        given = dict(conf)
        only_errors = str(given.pop("delivery.report.only.error", False)).lower() == "true"
        self._default_callback: Callable[..., Any] | None = given.pop("on_delivery", None)
        self._users_statistics: Callable[[str], Any] | None = given.get("stats_cb")
        self._audit: Session | None = None
        self._topics: dict[str, tuple[Any, ...]] = {}
        given["stats_cb"] = self._hear_statistics
        given.setdefault("statistics.interval.ms", _STATISTICS_MS)
        super().__init__(given, **more)
        try:
            wanted = audit or getattr(self, "_wanted_audit", None) or Audit()
            session = Session(conf, wanted, only_errors=only_errors)
            session.begin()
            weakref.finalize(self, session.abandon).atexit = False
            self._audit = session
            self._topics = session.noted
        except Exception as error:
            log.error("The audit of a producer is off: %r", error)
        self._only_errors = only_errors

    def produce(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int = -1,
        callback: Callable[..., Any] | None = None,
        on_delivery: Callable[..., Any] | None = None,
        timestamp: int = 0,
        headers: Headers | None = None,
    ) -> None:
        """As `Producer.produce`, with an id in the headers of the message."""
        user = on_delivery or callback or self._default_callback
        noted = self._topics.get(topic)
        if noted is None or (value is not None and len(value) > noted[0]):
            noted = self._noted(topic, value, key, headers)
            if noted is None:
                self._produce_plainly(topic, value, key, partition, user, timestamp, headers)
                return
        _, ids, prefix, turn = noted
        try:
            del turn[ONE_MORE]  # as `with lock`, at a sixth of its price
        except IndexError:
            if not ids.wait_for_turn():
                self._produce_plainly(topic, value, key, partition, user, timestamp, headers)
                return
        try:
            seq = ids.next
            now_ms = time_ns() // 1_000_000
            if now_ms >= ids.minute_ends:
                ids.note_minute(now_ms)
            note = ids.note if user is ids.user else ids.note_and_tell(user)
            told = MethodType(note, seq)  # cheaper than a partial, and than a closure for each
            own: Header = (HEADER_NAME, pack_header(prefix, seq, now_ms))
            sent = [own] if headers is None else with_header(headers, own)
            ids.next = seq + 1  # before: a signal may be raised as soon as it is handed over
            _produce(self, topic, value, key, partition, told, None, timestamp, sent)
        except REFUSED:
            if ids.next == seq + 1:
                ids.next = seq
            raise
        finally:
            turn.append(None)
        if not seq & 1023 and self._audit is not None:
            self._audit.look_at_memory()

    def _noted(
        self, topic: str, value: Any, key: Any, headers: Headers | None
    ) -> tuple[Any, ...] | None:
        """What is noted of the topic; None where this message is not audited."""
        audit = self._audit
        if audit is None or not audit.on:
            return None
        noted = self._topics.get(topic)
        if noted is None:
            noted = audit.topic(topic)
            if noted is None:
                return None
            noted = self._topics.setdefault(topic, noted)
        if value is not None and len(value) > noted[0] and audit.is_too_big(value, key, headers):
            noted[1].unaudited += 1
            return None
        return noted

    def _produce_plainly(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int,
        user: Callable[..., Any] | None,
        timestamp: int,
        headers: Headers | None,
    ) -> None:
        if user is not None and self._only_errors:
            user = partial(_only_if_error, user)
        more: dict[str, Any] = {} if user is None else {"on_delivery": user}
        if headers is not None:
            more["headers"] = headers
        _produce(self, topic, value, key, partition, timestamp=timestamp, **more)

    def produce_batch(self, *_arguments: Any, **_named: Any) -> int:
        """Not audited: it discards headers, and with them the ids."""
        raise NotImplementedError(
            "produce_batch() drops the headers of messages, so they cannot be audited. Call "
            "produce() for each message, or use confluent_kafka.Producer for what needs no audit."
        )

    # -- transactions ---------------------------------------------------------------------------

    def begin_transaction(self, *arguments: Any, **named: Any) -> None:
        """As `Producer.begin_transaction`."""
        super().begin_transaction(*arguments, **named)
        if self._audit is not None:
            self._audit.transaction_began()

    def commit_transaction(self, *arguments: Any, **named: Any) -> None:
        """As `Producer.commit_transaction`; only once it has returned, messages are committed."""
        super().commit_transaction(*arguments, **named)
        if self._audit is not None:
            self._audit.transaction_ended("committed")

    def abort_transaction(self, *arguments: Any, **named: Any) -> None:
        """As `Producer.abort_transaction`."""
        super().abort_transaction(*arguments, **named)
        if self._audit is not None:
            self._audit.transaction_ended("aborted")

    # -- the end --------------------------------------------------------------------------------

    def close(self, *arguments: Any, **named: Any) -> bool:
        """As `Producer.close`, and then the last report, within `Audit.close_s`."""
        closed: bool = super().close(*arguments, **named)
        self._end_audit()
        return closed

    def __exit__(self, *exception: Any) -> Any:
        """As `Producer.__exit__`, and then the last report."""
        result = super().__exit__(*exception)
        self._end_audit()
        return result

    def _end_audit(self) -> None:
        if self._audit is not None:
            self._audit.end()

    def _hear_statistics(self, text: str) -> None:
        if self._audit is not None:
            self._audit.hear_statistics(text)
        if self._users_statistics is not None:
            self._users_statistics(text)


class AuditedSerializingProducer(SerializingProducer, AuditedProducer):  # type: ignore[misc]
    """A `SerializingProducer` that is audited; what cannot be serialized is given no id."""

    def __init__(self, conf: Mapping[str, Any], *, audit: Audit | None = None) -> None:
        self._wanted_audit = audit
        super().__init__(dict(conf))


def _only_if_error(user: Callable[..., Any], error: Any, message: Any) -> None:
    if error is not None:
        user(error, message)
