"""acktrail as a user runs it: `init`, then `agent`, `watch`, a schedule, and commands by hand."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from acktrail.alerts.alert import Alert
from acktrail.contracts.runs import ALERTS
from acktrail.lake import Lake
from expectations.outbox import Outbox
from lab.processes import Process
from lab.scenario import Consumer
from tests.journey.applications import OWNERS, Applications

CLUSTER = "prod-eu"
BY_HAND = (
    ("budgets", "--fleet"),
    ("losses",),
    ("alerts", "list"),
    ("ledger",),
    ("agent", "status"),
    ("budgets",),
)
_PATIENT_S = 600


@dataclass(frozen=True)
class Pace:
    """How often what is done, in seconds."""

    schedule_s: float
    by_hand_s: float
    scan: str = ""
    """Settings of the log scanner, where its own are too slow for a short test."""


@dataclass
class Ended:
    """One command that has ended."""

    words: tuple[str, ...]
    code: int
    out: str
    err: str
    seconds: float


@dataclass
class Operation:
    """The processes of acktrail on one host, and what they printed."""

    home: Path
    applications: Applications
    prometheus: str
    alertmanager: str
    pace: Pace
    ended: list[Ended] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.config = self.home / "acktrail.toml"
        self.hosts = self.home / "brokers.toml"
        self.lake = Lake(self.home / "lake")
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._schedule, name="schedule"),
            threading.Thread(target=self._type, name="by hand"),
        ]
        self._lasting: dict[str, Process] = {}

    def __enter__(self) -> Operation:
        self._init()
        self._begin("watch", self.config)
        self._begin("agent", self.hosts)
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(_PATIENT_S)
        for process in self._lasting.values():
            process.terminate(120)

    # -- what a user does ----------------------------------------------------------------------

    def acktrail(self, *words: str, config: Path | None = None) -> Ended:
        """Run one command to its end."""
        command = [sys.executable, "-m", "acktrail", *words]
        if words[0] not in ("init",):
            command += ["--config", str(config or self.config)]
        began = time.monotonic()
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_PATIENT_S
        )
        took = time.monotonic() - began
        ended = Ended(tuple(words), done.returncode, done.stdout, done.stderr, took)
        self.ended.append(ended)
        return ended

    def alerts(self, severity: str = "page") -> list[Alert]:
        """What the outbox holds."""
        if not self.lake.exists(ALERTS):
            return []
        return [a for a in Outbox(self.lake).alerts().values() if a.severity == severity]

    def acknowledge_losses(self) -> None:
        """What somebody who has dealt with the lost messages does."""
        for alert in self.alerts():
            if alert.status == "open" and alert.lost > (alert.acknowledged or 0):
                words = ("--by", "maria", "--because", "sent again from the outbox table")
                done = self.acktrail("alerts", "ack", alert.fingerprint, *words)
                assert done.code == 0, done.err

    def said(self, name: str) -> str:
        """What a lasting process printed on stderr."""
        return (self.home / f"{name}.err").read_text()

    def rounds(self) -> list[str]:
        """What the watch said of its rounds: how long 95 % of them took, and its CPU."""
        return [line for line in self.said("watch").splitlines() if " rounds in " in line]

    def running(self) -> bool:
        """Whether agent and watch are alive."""
        return all(process.alive for process in self._lasting.values())

    # -- settings ------------------------------------------------------------------------------

    def _init(self) -> None:
        given = ["--prometheus", self.prometheus, "--alertmanager", self.alertmanager]
        given += ["--statistics", f"{self.applications.home}/statistics/*.jsonl"]
        for topic in self.applications.topics:
            given += ["--audited", topic.name]
        self._written(
            self.config,
            *("--bootstrap-servers", self.applications.nodes.bootstrap),
            *("--logs", f"{self.applications.home}/logs/*/*.log"),
            *given,
        )
        text = self.config.read_text().replace(
            'kind = "log_scan"\n', f'kind = "log_scan"\n{self.pace.scan}'
        )
        self.config.write_text(text + "\n" + "\n".join(self._outputs()))
        self._written(
            self.hosts,
            *("--logs", f"{self.applications.nodes.home}/*/logs/*.log"),
            *("--no-kafka", "--no-metrics", "--no-audits", "--no-alertmanager", "--force"),
        )
        rules = [
            f"  - {{topics: {topic}, owner: {owner}}}" for topic, owner in sorted(OWNERS.items())
        ]
        policy = ["not_collected: []", "default_owner: platform", "owners:", *rules]
        (self.home / "policy.yaml").write_text("\n".join(policy) + "\n")

    def _written(self, file: Path, *words: str) -> None:
        same = ("--cluster", CLUSTER, "--lake", self.lake.uri, "--zone", "UTC")
        done = self.acktrail("init", str(file), *same, *words)
        assert done.code == 0, done.err

    def _outputs(self) -> list[str]:
        """Sources that follow what the clients print, as a user adds them to the file."""
        made = []
        for client in (*self.applications.producers, *self.applications.consumers):
            consumer = isinstance(client, Consumer)
            role = "consumer" if consumer else "producer"
            path = self.applications.home / "verifiable" / f"{role}-{client.name}.jsonl"
            if client.kind == "python":
                path = self.applications.home / "python" / f"{client.name}.jsonl"
            given: dict[str, str] = {"client_id": client.name, "host": client.host}
            given |= dict(client.settings)
            if not isinstance(client, Consumer):
                given |= {"acks": client.acks, "retries": str(client.retries)}
            settings = ", ".join(f"{json.dumps(n)} = {json.dumps(v)}" for n, v in given.items())
            group = client.group if isinstance(client, Consumer) else ""
            made.append(
                f'[[sources]]\nkind = "verifiable"\nname = "{client.name}"\n'
                f'paths = ["{path}"]\ngroup = "{group}"\nsession_settings = {{{settings}}}\n'
            )
        return made

    # -- what goes on beside -------------------------------------------------------------------

    def _begin(self, name: str, config: Path) -> None:
        words = [sys.executable, "-m", "acktrail", name, "--config", str(config)]
        self._lasting[name] = Process(
            words, output=self.home / f"{name}.out", errors=self.home / f"{name}.err"
        )

    def _schedule(self) -> None:
        while not self._stop.wait(self.pace.schedule_s):
            self.acktrail("run")
            self.acktrail("check", "--format", "json")

    def _type(self) -> None:
        number = 0
        while not self._stop.wait(self.pace.by_hand_s):
            words: Sequence[str] = BY_HAND[number % len(BY_HAND)]
            number += 1
            self.acktrail(*words)
            incident = self._incident()
            if incident and number % len(BY_HAND) == 0:
                self.acktrail("explain", incident)

    def _incident(self) -> str:
        found = [s.incident for a in self.alerts() for s in a.symptoms if s.incident]
        return found[-1] if found else ""

    def unexpected(self) -> list[Ended]:
        """Commands that ended as none may: by a bug, or with a code that they do not have."""
        may = {"check": (0, 1), "run": (0, 75)}
        return [
            e
            for e in self.ended
            if "Traceback" in e.err + e.out
            or (e.code not in may.get(e.words[0], (0,)) and not _before_the_run_ended(e))
        ]


def _before_the_run_ended(ended: Ended) -> bool:
    """Whether a question was asked before the jobs had its answer, and was refused with what to do.

    While jobs run, the ledger has a loss before `loss_incidents` does: no answer is then right.
    """
    waits = ("does not exist yet. Run `acktrail run`.", "did not finish. Run `acktrail run`.")
    return ended.code == 2 and any(words in ended.err for words in waits)
