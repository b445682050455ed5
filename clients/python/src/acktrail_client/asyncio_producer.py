"""An audited producer for asyncio: `produce` is awaited until the message is acknowledged.

confluent-kafka's own AIOProducer refuses headers, and its batches discard them. This one calls
`Producer.produce`; one thread polls, and hands each answer to the event loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaException, Message

from acktrail_client.audit import Audit
from acktrail_client.producer import AuditedProducer
from acktrail_client.reporter import log

_POLL_S = 0.1
_FULL_S = 0.01


class AuditedAIOProducer:
    """`await producer.produce(...)` gives the message, or raises `KafkaException`."""

    def __init__(self, conf: Mapping[str, Any], *, audit: Audit | None = None) -> None:
        self._producer = AuditedProducer(conf, audit=audit)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="acktrail-aio-poll", daemon=True)
        self._thread.start()

    async def produce(self, topic: str, value: Any = None, key: Any = None, **more: Any) -> Message:
        """Hand over one message and wait until it is acknowledged.

        While the queue is full, it waits. A task that is cancelled leaves its message in the
        queue: it may be stored all the same, and is accounted for.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Message] = loop.create_future()

        def settle(error: Any, message: Message) -> None:
            if answer.done():
                return
            if error is not None:
                answer.set_exception(KafkaException(error))
            else:
                answer.set_result(message)

        def answered(error: Any, message: Message) -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(settle, error, message)

        while True:
            try:
                self._producer.produce(topic, value, key, on_delivery=answered, **more)
                break
            except BufferError:
                await asyncio.sleep(_FULL_S)
        return await answer

    async def flush(self, timeout: float = -1) -> int:
        """As `Producer.flush`, beside the event loop."""
        return await asyncio.to_thread(self._producer.flush, timeout)

    async def begin_transaction(self) -> None:
        """As `Producer.begin_transaction`; call `init_transactions` first."""
        await asyncio.to_thread(self._producer.begin_transaction)

    async def init_transactions(self, timeout: float = -1) -> None:
        """As `Producer.init_transactions`."""
        await asyncio.to_thread(self._producer.init_transactions, timeout)

    async def commit_transaction(self, timeout: float = -1) -> None:
        """As `Producer.commit_transaction`."""
        await asyncio.to_thread(self._producer.commit_transaction, timeout)

    async def abort_transaction(self, timeout: float = -1) -> None:
        """As `Producer.abort_transaction`."""
        await asyncio.to_thread(self._producer.abort_transaction, timeout)

    async def close(self) -> None:
        """Wait for what is under way, then end, with the last report."""
        await asyncio.to_thread(self._producer.flush)
        self._stopping.set()
        await asyncio.to_thread(self._end)

    def _end(self) -> None:
        self._thread.join()
        self._producer.close()

    async def __aenter__(self) -> AuditedAIOProducer:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.close()

    def _poll(self) -> None:
        while not self._stopping.is_set():
            try:
                self._producer.poll(_POLL_S)
            except Exception:  # of a callback of the application: all who wait need this thread
                log.exception("A callback of the producer failed.")
