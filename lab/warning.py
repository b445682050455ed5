"""How long before the first loss the warning comes: a real `acktrail watch` beside a real fault.

The watch reads the producers' logs while they are written, and its alerts go to a real
Alertmanager. The lead is the time from the moment the Alertmanager shows the alert to the moment
the application is told of the first lost message.
"""

from __future__ import annotations

import json
import shutil
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from acktrail.errors import LabError
from lab.cluster import Cluster
from lab.faults import Fault, KillBroker, Network
from lab.processes import Process, now_ms
from lab.run import Run
from lab.scenario import ANY, Expect, Producer, Scenario, Step, Topic
from lab.scratch import free_ports
from lab.steps import Acked, Failed, Seconds, Start, Stop, wait_until

WARNING = "retries_running_out"
"""The state an alert speaks of; that evidence is missing would be another."""


@dataclass(frozen=True)
class Warned:
    """What was seen: when the fault began, the warning came, and the first message was lost."""

    scenario: str
    fault_at_ms: int
    alert_at_ms: int | None
    loss_at_ms: int | None

    @property
    def warning_lead_s(self) -> float | None:
        """Seconds from the warning to the first loss; None where either did not come."""
        if self.alert_at_ms is None or self.loss_at_ms is None:
            return None
        return (self.loss_at_ms - self.alert_at_ms) / 1000


_FAULTS: dict[str, tuple[Topic, Fault, Fault]] = {
    # name: the topic it hurts, how it is broken, how it is mended
    "replicas-unmet": (
        Topic("w-replicas", settings={"min.insync.replicas": "3"}),
        KillBroker(3),
        KillBroker(3),
    ),
    "broker-stopped": (Topic("w-stopped", replicas=((3,),)), KillBroker(3), KillBroker(3)),
    "acks-dropped": (Topic("w-acks"), Network("drop_acks"), Network("drop_acks")),
}
FAULTS = tuple(_FAULTS)


def scenario(fault: str, settings: dict[str, str], *, mended_after_s: float | None) -> Scenario:
    """One fault that lasts until the first message is lost, or for *mended_after_s*."""
    topic, begin, end = _FAULTS[fault]
    timeout_s = int(settings.get("delivery.timeout.ms", "120000")) / 1000
    lasting: Step = Failed("pay", 1, within=timeout_s + 120)
    if mended_after_s is not None:
        lasting = Seconds(mended_after_s)
    per_second = 20
    return Scenario(
        name=f"warning-{fault}",
        question="How long before the first loss does the warning come?",
        topics=(topic,),
        producers=(
            Producer(
                "pay",
                topic.name,
                messages=10_000_000,
                per_second=per_second,
                settings=settings,
                unfinished=True,
            ),
        ),
        consumers=(),
        # The watch has been at work for a while when things break, as it would have been.
        steps=(
            Acked("pay", 45 * per_second, within=180),
            Start(begin),
            lasting,
            Stop(end),
            Seconds(5),
        ),
        expect={"pay": Expect(cause="delivery_timeout", lost_told=ANY, ghosts=ANY)},
        within_s=int(timeout_s) + 420,
    )


def measure(cluster: Cluster, wanted: Scenario, home: Path) -> Warned:
    """Run *wanted* beside a watch and an Alertmanager; what was seen."""
    evidence = home / "evidence"
    evidence.mkdir(parents=True)
    with alertmanager(home) as url, watch(home, evidence, wanted, url) as lake, _Seen(url) as seen:
        del lake
        Run(wanted, cluster, evidence).perform()
        fault_at = json.loads((evidence / "faults.json").read_text())[0]["at_ms"]
    return Warned(wanted.name, int(fault_at), seen.at_ms, first_loss_ms(evidence))


def first_loss_ms(evidence: Path) -> int | None:
    """When an application was first told that a message failed."""
    told = []
    for path in sorted((evidence / "verifiable").glob("producer-*.jsonl")):
        for line in path.read_text().splitlines():
            if '"producer_send_error"' in line:
                told.append(int(json.loads(line)["timestamp"]))
                break
    return min(told, default=None)


class _Seen:
    """Asks the Alertmanager twice a second whether the warning is there."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self.at_ms: int | None = None

    def __enter__(self) -> _Seen:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        self._thread.join(10)

    def _look(self) -> None:
        while self.at_ms is None and not self._stop.wait(0.5):
            if any(a["labels"].get("state") == WARNING for a in alerts(self._url)):
                self.at_ms = now_ms()


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


@contextmanager
def watch(home: Path, evidence: Path, wanted: Scenario, url: str) -> Iterator[Path]:
    """A real `acktrail watch` on the logs to be written under *evidence*; its lake."""
    lake = home / "lake"
    config = home / "acktrail.toml"
    config.write_text(_settings(lake, evidence, wanted.producers, url))
    words = [sys.executable, "-m", "acktrail", "watch", "--config", str(config), "--every", "3"]
    process = Process(words, output=home / "watch.out", errors=home / "watch.err")
    try:
        time.sleep(2)
        yield lake
        if not process.alive:
            raise LabError(f"The watch ended by itself; see {home / 'watch.err'}.")
    finally:
        process.terminate(120)


def _settings(lake: Path, evidence: Path, producers: Sequence[Producer], url: str) -> str:
    lines = [
        'cluster = "lab"',
        f'[lake]\nuri = "{lake}"',
        f'[alerts]\nalertmanager_urls = ["{url}"]\ninterval_s = 60',
        '[spark]\nmaster = "local[1]"',
    ]
    for producer in producers:
        lines.append(
            f'[[sources]]\nkind = "log_files"\nname = "{producer.name}"\n'
            f'host = "{producer.host}"\n'
            f'paths = ["{evidence}/logs/{producer.host}/*.log"]'
        )
    return "\n".join(lines) + "\n"
