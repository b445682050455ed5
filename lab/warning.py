"""How long before the first loss the warning comes: a real `acktrail watch` beside a real fault.

The watch reads the producers' logs while they are written, and its alerts go to a real
Alertmanager. The lead is the time from the moment the Alertmanager shows an alert about a
producer's topic to the moment the application is told of the first lost message.
"""

from __future__ import annotations

import json
import shutil
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from acktrail.errors import LabError
from acktrail.kafka_defaults import DELIVERY_TIMEOUT_MS, RETRIES
from acktrail.lake import Lake
from acktrail.retries.state import RUNNING_OUT
from lab.cluster import Cluster
from lab.events import read_events
from lab.faults import Fault, KillBroker, Network
from lab.processes import Process, now_ms
from lab.run import Run
from lab.scenario import Producer, Scenario, Step, Topic
from lab.scratch import free_ports
from lab.steps import Acked, Failed, Seconds, Start, Stop, wait_until

if TYPE_CHECKING:
    from typing import Self

PER_SECOND = 10


@dataclass(frozen=True)
class Warned:
    """What was seen of one producer: the fault, the warning, the first message lost; in ms."""

    producer: str
    fault_at_ms: int
    alert_at_ms: int | None
    loss_at_ms: int | None

    @property
    def warning_lead_s(self) -> float | None:
        """Seconds from the warning to the first loss; None where either did not come."""
        if self.alert_at_ms is None or self.loss_at_ms is None:
            return None
        return (self.loss_at_ms - self.alert_at_ms) / 1000

    def __str__(self) -> str:
        """In seconds since the fault began, for the journal of a measurement."""
        alert, loss = (
            "-" if at is None else f"{(at - self.fault_at_ms) / 1000:.1f}"
            for at in (self.alert_at_ms, self.loss_at_ms)
        )
        lead = "-" if self.warning_lead_s is None else f"{self.warning_lead_s:.1f}"
        return f"{self.producer}: alert after {alert} s, first loss after {loss} s, lead {lead} s"


_FAULTS: Mapping[str, tuple[Topic, Fault]] = {
    # name: what its topics are like, and what breaks
    "replicas-unmet": (Topic("", settings={"min.insync.replicas": "3"}), KillBroker(3)),
    "broker-stopped": (Topic("", replicas=((3,),)), KillBroker(3)),
    "acks-dropped": (Topic(""), Network("drop_acks")),
}
FAULTS = tuple(_FAULTS)


@dataclass(frozen=True)
class Outage:
    """A fault and the producers that meet it, by name, each with its settings and a topic."""

    fault: str
    producers: Mapping[str, Mapping[str, str]]
    mended_after_s: float | None = None
    """None: it lasts until every producer has lost a message."""

    def scenario(self, before: Sequence[Step]) -> Scenario:
        """The outage as the lab runs it, once *before* is done."""
        topic, fault = _FAULTS[self.fault]
        timeouts = [
            int(s.get("delivery.timeout.ms", DELIVERY_TIMEOUT_MS)) for s in self.producers.values()
        ]
        bound = max(timeouts) / 1000 + 120
        lasting: list[Step] = [Failed(name, 1, within=bound) for name in self.producers]
        if self.mended_after_s is not None:
            lasting = [Seconds(self.mended_after_s)]
        working = [Acked(name, 10 * PER_SECOND, within=120) for name in self.producers]
        return Scenario(
            name=f"warning-{self.fault}",
            question="How long before the first loss does the warning come?",
            topics=tuple(Topic(name, topic.replicas, topic.settings) for name in self.producers),
            producers=tuple(
                Producer(
                    name,
                    name,
                    messages=10_000_000,
                    per_second=PER_SECOND,
                    retries=int(settings.get("retries", RETRIES)),
                    settings=settings,
                    unfinished=True,
                )
                for name, settings in self.producers.items()
            ),
            consumers=(),
            steps=(*working, *before, Start(fault), *lasting, Stop(fault), Seconds(5)),
            expect={},
            within_s=int(bound) + 420,
        )


class Trial:
    """A cluster under watch: each outage gives what was seen of each of its producers."""

    def __init__(
        self, cluster: Cluster, home: Path, names: Sequence[str], every_s: float = 3
    ) -> None:
        """*names* are those of all producers there will be: their logs are the sources."""
        self.lake = Lake(home / "lake")
        self._cluster = cluster
        self._home = home
        self._names = names
        self._every_s = every_s
        self._open = ExitStack()
        self._outages = 0

    def __enter__(self) -> Self:
        """Start the Alertmanager and the watch."""
        url = self._open.enter_context(alertmanager(self._home))
        self._open.enter_context(self._watch(url))
        self._seen = self._open.enter_context(_Seen(url, self._names))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop both."""
        self._open.__exit__(kind, error, trace)

    def meet(self, outage: Outage) -> list[Warned]:
        """Let *outage* happen beside the watch; it was at work before things break."""
        self._outages += 1
        evidence = self._home / "evidence" / str(self._outages)
        evidence.mkdir(parents=True)
        run = Run(outage.scenario([_Watched(self._home / "watch.err")]), self._cluster, evidence)
        run.perform_steps()
        began = int(run.journal[0]["at_ms"])
        return [
            Warned(name, began, self._seen.first(name, began), first_loss_ms(evidence, name))
            for name in outage.producers
        ]

    @property
    def pages(self) -> list[dict[str, Any]]:
        """Every page that the Alertmanager ever had, as it was seen last."""
        return list(self._seen.pages.values())

    @contextmanager
    def _watch(self, url: str) -> Iterator[None]:
        """A real `acktrail watch` on the logs to be written."""
        config = self._home / "acktrail.toml"
        config.write_text(self._settings(url))
        words = [sys.executable, "-m", "acktrail", "watch", "--config", str(config)]
        words += ["--every", str(self._every_s)]
        errors = self._home / "watch.err"
        process = Process(words, output=self._home / "watch.out", errors=errors)
        try:
            yield
            if not process.alive:
                raise LabError(f"The watch ended by itself; see {errors}.")
        finally:
            process.terminate(120)

    def _settings(self, url: str) -> str:
        lines = [
            'cluster = "lab"',
            f'[lake]\nuri = "{self.lake.uri}"',
            f'[alerts]\nalertmanager_urls = ["{url}"]\ninterval_s = 60',
            '[spark]\nmaster = "local[1]"',
            f'[kafka]\nbootstrap_servers = "{self._cluster.direct}"',
            '[[sources]]\nkind = "cluster_state"\nname = "brokers"\ninterval_s = 10',
        ]
        lines += [
            f'[[sources]]\nkind = "log_files"\nname = "{name}"\nhost = "{name}-1"\n'
            f'paths = ["{self._home}/evidence/*/logs/{name}-1/*.log"]'
            for name in self._names
        ]
        return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class _Watched:
    """Wait until the watch has ended its first round: it would have been at work for long."""

    journal: Path
    within: float = 300.0

    def do(self, _run: Run) -> None:
        """Wait for the line of a round."""
        ended = lambda: "INFO Updated " in self.journal.read_text()  # noqa: E731
        if not wait_until(ended, self.within, pause=1):
            raise LabError(
                f"The watch ended no round within {self.within:.0f} s; see {self.journal}."
            )


def first_loss_ms(evidence: Path, producer: str = "*") -> int | None:
    """When an application was first told that a message failed: that of *producer*, or any."""
    told = []
    names = (f"verifiable/producer-{producer}.jsonl", f"python/{producer}.jsonl")
    for path in sorted(path for name in names for path in evidence.glob(name)):
        failed = (e for e in read_events(path) if e.get("name") == "producer_send_error")
        told += [int(event["timestamp"]) for event in islice(failed, 1)]
    return min(told, default=None)


class _Seen:
    """Asks the Alertmanager twice a second of whom it warns."""

    def __init__(self, url: str, names: Sequence[str]) -> None:
        self._url = url
        self._names = names
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._first: dict[tuple[str, str], int] = {}
        """By alert and producer: when it was first seen."""
        self.pages: dict[str, dict[str, Any]] = {}
        """Every page that was ever active, by its fingerprint, as it was seen last."""

    def __enter__(self) -> _Seen:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        self._thread.join(10)

    def first(self, producer: str, since_ms: int) -> int | None:
        """When a warning that names *producer* was first seen, after *since_ms*."""
        named = [at for (_, name), at in dict(self._first).items() if name == producer]
        return min((at for at in named if at >= since_ms), default=None)

    def _look(self) -> None:
        while not self._stop.wait(0.5):
            for alert in alerts(self._url):
                if alert["labels"].get("severity") == "page":
                    self.pages[alert["labels"]["fingerprint"]] = alert
                if RUNNING_OUT in alert["annotations"].get("state", "").split(", "):
                    said = alert["annotations"].get("clients", "").split(", ")
                    for name in (name for name in self._names if name in said):
                        self._first.setdefault((alert["fingerprint"], name), now_ms())


def alerts(url: str) -> list[dict[str, Any]]:
    """The active alerts; none where it does not answer."""
    try:
        with urllib.request.urlopen(f"{url}/api/v2/alerts", timeout=5) as answer:
            return list(json.load(answer))
    except (urllib.error.URLError, OSError, ValueError):
        return []


@contextmanager
def alertmanager(home: Path) -> Iterator[str]:
    """A real Alertmanager on loopback; its URL."""
    program = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
    if program is None:
        raise LabError("There is no Alertmanager here. Install prometheus-alertmanager.")
    (port,) = free_ports(1)
    config = home / "alertmanager.yml"
    config.write_text("route: {receiver: none}\nreceivers: [{name: none}]\n")
    process = Process(
        [
            program,
            f"--config.file={config}",
            f"--storage.path={home / 'alertmanager'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--cluster.listen-address=",
        ],
        output=home / "alertmanager.log",
    )
    url = f"http://127.0.0.1:{port}"
    try:
        if not wait_until(lambda: _ready(url), 60):
            raise LabError(f"The Alertmanager did not start; see {home / 'alertmanager.log'}.")
        yield url
    finally:
        process.terminate(10)


def _ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/-/ready", timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
