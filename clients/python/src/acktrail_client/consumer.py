"""The audited consumer: confluent-kafka's own, which reports what it was given and processed."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from confluent_kafka import Consumer, DeserializingConsumer, Message, TopicPartition

from acktrail_client.audit import Audit
from acktrail_client.membership import Membership
from acktrail_client.processing import METADATA
from acktrail_client.reporter import log

Processed = Literal["unknown", "next_poll", "explicit"]
Outcome = Literal["ok", "dead_letter", "skipped", "retry"]
_MODES = ("unknown", "next_poll", "explicit")
_STORE = "enable.auto.offset.store"
_STORE_EVERY_S = 1.0


class AuditedConsumer(Consumer):
    """A `confluent_kafka.Consumer` that is audited. Without *audit*: `Audit()`, on its cluster.

    *processed* says when a message counts as processed: `unknown` leaves offsets to the application
    and to auto-commit; `next_poll` when the next message is asked for or `commit()` is called;
    `explicit` when `processed(message)` is called. In both of the latter the offsets of what was
    processed, and no others, are stored, and commits say so in their metadata.
    """

    def __init__(
        self,
        conf: Mapping[str, Any],
        *,
        audit: Audit | None = None,
        processed: Processed = "unknown",
        **more: Any,
    ) -> None:
        wanted: tuple[Audit | None, Processed] | None = getattr(self, "_wanted", None)
        audit, processed = wanted or (audit, processed)
        if processed not in _MODES:
            raise ValueError(f"processed={processed!r}: expected one of {', '.join(_MODES)}")
        given = dict(conf)
        self._tracks = processed != "unknown"
        self._mode = processed
        if self._tracks:
            if str(given.get(_STORE, False)).lower() == "true":
                raise ValueError(f"processed={processed!r} stores offsets itself: remove {_STORE}")
            given[_STORE] = False
        super().__init__(given, **more)
        self._audit: Membership | None = None
        self._stored_at = 0.0
        try:
            member = Membership(conf, audit or Audit(), tracks=self._tracks)
            self._audit = member  # without any audit, it says which offsets are to be stored
            member.begin()
            weakref.finalize(self, member.abandon).atexit = False
        except Exception as error:
            log.error("The audit of a consumer is off: %r", error)

    # -- reading --------------------------------------------------------------------------------

    def poll(self, timeout: float | None = None) -> Message | None:
        """As `Consumer.poll`."""
        self._before_reading()
        message = super().poll() if timeout is None else super().poll(timeout)
        if message is not None and self._audit is not None:
            self._audit.given((message,))
        return message

    def consume(self, num_messages: int = 1, timeout: float | None = None) -> list[Message]:
        """As `Consumer.consume`."""
        self._before_reading()
        messages = (
            super().consume(num_messages)
            if timeout is None
            else super().consume(num_messages, timeout)
        )
        if messages and self._audit is not None:
            self._audit.given(tuple(messages))  # the application may change its list
        return messages

    def _before_reading(self) -> None:
        if not self._tracks or self._audit is None:
            return
        if self._mode == "next_poll":
            self._audit.all_processed()
        now = time.monotonic()
        if now - self._stored_at >= _STORE_EVERY_S:
            self._stored_at = now
            self._store()

    # -- what was processed -----------------------------------------------------------------------

    def processed(self, message: Message, outcome: Outcome = "ok") -> None:
        """*message* needs nothing more: it was dealt with, put aside, or sent to be tried again."""
        if self._audit is not None:
            self._audit.processed(message, outcome)

    def commit(self, *arguments: Any, **named: Any) -> Any:
        """As `Consumer.commit`; of what was processed, where *processed* was set."""
        if self._tracks and self._audit is not None and not self._names_offsets(arguments, named):
            if self._mode == "next_poll":
                self._audit.all_processed()
            self._store()
        return super().commit(*arguments, **named)

    @staticmethod
    def _names_offsets(arguments: Sequence[Any], named: Mapping[str, Any]) -> bool:
        given = [*arguments[:2], named.get("message"), named.get("offsets")]
        return any(one is not None for one in given)

    def _store(self, places: Sequence[tuple[str, int]] | None = None) -> None:
        """Store the offsets of what was processed, for the next commit."""
        if self._audit is None:
            return
        for topic, partition, offset in self._audit.to_store(places):
            at = TopicPartition(topic, partition, offset, f"{METADATA}{offset}")
            try:
                self.store_offsets(offsets=[at])
            except Exception as error:  # it was revoked meanwhile: its next owner reads it again
                log.debug("offset %s of %s-%s was not stored: %r", offset, topic, partition, error)

    # -- assignments ------------------------------------------------------------------------------

    def subscribe(self, topics: Sequence[str], *arguments: Any, **named: Any) -> None:
        """As `Consumer.subscribe`; the callbacks of the application are called as ever."""
        names = ("on_assign", "on_revoke", "on_lost")
        given = {**dict(zip(names, arguments, strict=False)), **named}
        users = {name: given.pop(name, None) for name in names}
        if self._audit is not None:
            given["on_assign"] = self._assigned(users["on_assign"])
            given["on_revoke"] = self._revoked(users["on_revoke"])
            if users["on_lost"] is not None:
                given["on_lost"] = users["on_lost"]
        else:
            given.update({name: user for name, user in users.items() if user is not None})
        super().subscribe(list(topics), **given)

    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        """As `Consumer.assign`."""
        super().assign(list(partitions))
        self._note_assigned(partitions)

    def seek(self, partition: TopicPartition) -> None:
        """As `Consumer.seek`."""
        super().seek(partition)

    def _note_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        if self._audit is not None:
            self._audit.assigned([(p.topic, p.partition) for p in partitions])

    def _assigned(self, user: Callable[..., Any] | None) -> Callable[..., Any]:
        def assigned(consumer: Any, partitions: list[TopicPartition]) -> None:
            self._note_assigned(partitions)
            if user is not None:
                user(consumer, partitions)

        return assigned

    def _revoked(self, user: Callable[..., Any] | None) -> Callable[..., Any]:
        def revoked(consumer: Any, partitions: list[TopicPartition]) -> None:
            if user is not None:
                user(consumer, partitions)
            if self._audit is not None:
                places = [(p.topic, p.partition) for p in partitions]
                if self._tracks:
                    self._store(places)
                self._audit.revoked(places)

        return revoked

    def close(self) -> None:
        """As `Consumer.close`, and then the last report, within `Audit.close_s`."""
        if self._tracks:
            self._store()
        super().close()
        self._end_audit()

    def __exit__(self, *exception: Any) -> Any:
        """As `Consumer.__exit__`, and then the last report."""
        if self._tracks:
            self._store()
        result = super().__exit__(*exception)
        self._end_audit()
        return result

    def _end_audit(self) -> None:
        if self._audit is not None:
            self._audit.end()


class AuditedDeserializingConsumer(DeserializingConsumer, AuditedConsumer):  # type: ignore[misc]
    """A `DeserializingConsumer` that is audited; what cannot be deserialized was given, too."""

    def __init__(
        self,
        conf: Mapping[str, Any],
        *,
        audit: Audit | None = None,
        processed: Processed = "unknown",
    ) -> None:
        self._wanted = (audit, processed)
        super().__init__(dict(conf))
