"""One thread and one producer per process and audit target: they send what the clients noted.

Whatever fails here stays here: nothing is raised into the application, and nothing waits for the
audit cluster but this thread, and `close()` for at most `Audit.close_s`.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Mapping
from typing import Any, Protocol

from confluent_kafka import Producer

from acktrail_client.audit import Audit
from acktrail_client.backlog import Backlog
from acktrail_client.rows import MOST_BYTES, Row, encode_message
from acktrail_client.settings import inherited

log = logging.getLogger("acktrail_client")
_quiet = logging.getLogger("acktrail_client.librdkafka")
_quiet.propagate = False
_quiet.addHandler(logging.NullHandler())
_IN_FLIGHT_BYTES = 2_000_000
_TURN_S = 0.5
_ASKED_S = 0.5
_NAP_S = 0.2
_OWN = {
    "acks": "all",
    "enable.idempotence": False,
    "compression.type": "gzip",
    "linger.ms": 50,
    "message.timeout.ms": 30_000,
    "queue.buffering.max.kbytes": 8_192,
    "message.max.bytes": 1_000_000,
    "log_level": 0,
    "client.id": "acktrail-reporter",
}


class Reported(Protocol):
    """A client that is audited."""

    key: str
    """The session of a producer, the reporter's name for a group's member: the message's key."""

    reporter: str
    """16 random bytes as hex: parts and assignments are numbered within it."""
    on: bool
    gone: bool
    """Its client was let go without being closed."""

    def fold(self) -> None:
        """Keep what was noted in less memory; called twice a second."""

    def is_full(self) -> bool:
        """Whether so much is waiting that it is to be reported now."""

    def take(self, now_ms: int, *, closed: bool) -> tuple[list[Row], list[Row]]:
        """Heartbeats, and the rows of what came since the last report."""

    def dropped(self, row: Row) -> None:
        """Evidence was thrown away for want of memory."""

    def switch_off(self) -> None:
        """Nothing is noted any more."""


class Reporter:
    """Sends the reports of all clients of this process that have one audit target."""

    def __init__(self, audit: Audit, conf: Mapping[str, Any]) -> None:
        self.audit = audit
        self.problems: dict[str, int] = {}
        """What went wrong, and how often."""
        self._conf = _conf(audit, conf)
        self._clients: dict[int, Reported] = {}
        self._lock = threading.Lock()
        self._backlog = Backlog(audit.memory_bytes)
        self._producer: Producer | None = None
        self._refused = False
        self._number = 0
        self._wake = threading.Event()
        self._chance = random.Random()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    # -- clients --------------------------------------------------------------------------------

    def add(self, client: Reported) -> None:
        """Report what *client* notes from now on."""
        self._clients[id(client)] = client
        with self._starting:
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="acktrail-reporter", daemon=True)
                thread.start()
                self._thread = thread

    def wake(self) -> None:
        """Report now: much is waiting."""
        self._wake.set()

    def cluster_of(self, access: Mapping[str, Any]) -> str | None:
        """Kafka's id of the cluster that a client with this *access* is on; None: not known yet.

        A client of our own is asked. The application's is not: while one thread is within a call,
        confluent-kafka lets every other wait, so a consumer that polls would stop the reports, and
        the question would stop the consumer. Called by the reporter's thread.
        """
        if not self.audit.bootstrap_servers:
            found = self._open()
            return None if found is None else _asked(found)
        own = {"log_level": 0, "client.id": _OWN["client.id"]}
        try:
            return _asked(Producer({**access, **own}, logger=_quiet))
        except Exception as error:  # for example, its access needs a callback
            log.debug("the cluster cannot be asked for its id: %r", error)
            return None

    def last_report(self, client: Reported) -> None:
        """What *client* has noted, and that it has ended; waits `Audit.close_s` at most."""
        if self._clients.pop(id(client), None) is not None:
            self._report_last([client])

    def last_reports(self) -> None:
        """As *last_report*, of all clients that were not closed: the process ends."""
        clients = list(self._clients.values())
        self._clients.clear()
        if clients:
            self._report_last(clients)

    def orphan(self) -> None:
        """This is a forked child: nothing is reported here any more."""
        for client in self._clients.values():
            client.switch_off()
        self._clients = {}

    def _report_last(self, clients: list[Reported]) -> None:
        ends = time.monotonic() + self.audit.close_s
        if not self._lock.acquire(timeout=max(0.0, self.audit.close_s)):
            self._problem("there was no time for the last report")
            for client in clients:  # the thread makes it, if the process lives on
                client.gone = True
                self._clients[id(client)] = client
            return
        try:
            for client in clients:
                self._take(client, closed=True)
            self._send()
            while self._producer is not None and any(self._backlog.waiting(c.key) for c in clients):
                left = ends - time.monotonic()
                if left <= 0:
                    self._problem("the last report was not taken in time")
                    return
                self._producer.poll(min(left, 0.05))
                self._send()
        except Exception as error:
            self._problem(f"the last report failed: {error!r}")
        finally:
            self._lock.release()

    # -- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        due = time.monotonic() + self._pause()
        while True:
            self._wake.wait(_TURN_S)
            self._wake.clear()
            full = False
            try:
                with self._lock:
                    clients = list(self._clients.values())
                    for client in clients:
                        client.fold()
                    full = any(client.is_full() for client in clients)
                    if full or time.monotonic() >= due:
                        due = time.monotonic() + self._pause()
                        for client in clients:
                            self._take_safely(client)
                    self._send()
                    if self._producer is not None:
                        self._producer.poll(0)
            except Exception as error:
                self._problem(f"a report failed: {error!r}")
            if full:
                time.sleep(_NAP_S)  # a client that fills its memory again and again

    def _take_safely(self, client: Reported) -> None:
        """A fault in one client's notes ends that client's audit alone."""
        try:
            self._take(client, closed=client.gone)
        except Exception as error:
            client.switch_off()
            self._problem(f"a client is not audited any more: {error!r}")
        if client.gone or not client.on:
            self._clients.pop(id(client), None)

    def _pause(self) -> float:
        return self.audit.interval_s * self._chance.uniform(0.9, 1.1)

    def _take(self, client: Reported, *, closed: bool) -> None:
        self._number += 1
        now_ms = int(time.time() * 1000)
        same = {"reporter": client.reporter, "number": self._number, "reported_ms": now_ms}
        beats, rows = client.take(now_ms, closed=closed)
        for row in rows:
            row.update(same)
        dropped = self._backlog.add(client.key, rows, [{**beat, **same} for beat in beats])
        for row in dropped:
            client.dropped(row)

    def _send(self) -> None:
        """Hand over what waits, as far as little is on its way."""
        producer = self._open()
        if producer is None:
            return
        while self._backlog.in_flight < _IN_FLIGHT_BYTES:
            message = self._backlog.next_message(MOST_BYTES)
            if message is None:
                return
            rows = [*message.beats, *message.rows]
            try:
                producer.produce(
                    self.audit.topic,
                    encode_message(rows),
                    key=message.key,
                    on_delivery=self._answered(message),
                )
            except Exception as error:
                self._backlog.failed(message)
                self._problem(f"reports cannot be sent: {error}")
                return

    def _answered(self, message: Any) -> Any:
        def answered(error: Any, _message: Any) -> None:
            if error is None:
                self._backlog.sent(message)
                return
            self._backlog.failed(message)
            self._problem(f"the audit topic {self.audit.topic} takes no reports: {error.str()}")

        return answered

    def _open(self) -> Producer | None:
        """The reporter's own producer; None where its settings are refused."""
        if self._producer is None and not self._refused:
            try:
                self._producer = Producer({**self._conf, "error_cb": self._heard}, logger=_quiet)
            except Exception as error:
                self._refused = True
                self._problem(f"the audit is off, its settings are refused: {error}")
        return self._producer

    def _heard(self, error: Any) -> None:
        self._problem(f"the audit cluster: {error.str()}")

    def _problem(self, text: str) -> None:
        """One ERROR line for each kind of problem; after that it is only counted."""
        kind = text.partition(":")[0]
        self.problems[kind] = self.problems.get(kind, 0) + 1
        if self.problems[kind] == 1:
            log.error("%s. The application goes on; see acktrail_client.problems().", text)


def _asked(producer: Producer) -> str | None:
    try:
        return producer.cluster_id(timeout=_ASKED_S)
    except Exception as error:
        log.debug("the cluster gave no id: %r", error)
        return None


def _conf(audit: Audit, conf: Mapping[str, Any]) -> dict[str, Any]:
    if audit.bootstrap_servers:
        return {**_OWN, "bootstrap.servers": audit.bootstrap_servers, **audit.conf}
    return {**_OWN, **inherited(conf), **audit.conf}
