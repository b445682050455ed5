"""The default log scanner beside a run: a real `acktrail agent` that reads while things break.

It follows the clients' output as it grows, asks the cluster, and reads the ranges around ids that
were acked and not seen. What it found is kept with the evidence; the rest of its lake is not.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from acktrail.audit.wire import encode_reports, report_of_row
from acktrail.contracts.bronze import AUDIT_REPORTS
from acktrail.errors import LabError
from acktrail.lake import Lake
from lab import report_topic
from lab.cluster import Cluster
from lab.processes import Process
from lab.scenario import Consumer, Producer, Scenario
from lab.scratch import new_scratch

if TYPE_CHECKING:
    from typing import Self

_SOURCE = "log-scan"
# A run lasts a minute or two; with the defaults (60 s, 30 s) the scanner would hardly begin.
_SETTLE_S, _INTERVAL_S, _FLUSH_S = 10, 5, 2


class LiveScan:
    """The agent, from the beginning of a run to its end."""

    def __init__(self, cluster: Cluster, scenario: Scenario, evidence: Path) -> None:
        self._cluster = cluster
        self._scenario = scenario
        self._evidence = evidence

    def __enter__(self) -> Self:
        """Start the agent."""
        self._home = new_scratch("live-scan")
        self._lake = Lake(self._home / "lake")
        config = self._home / "acktrail.toml"
        config.write_text(self._settings())
        words = [sys.executable, "-m", "acktrail", "agent", "--config", str(config)]
        said = self._home / "agent.txt"
        self._process = Process(words, output=said, directory=Path(__file__).parents[1])
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop it and keep what it found; where the run itself has failed, nothing is kept."""
        try:
            alive = self._process.alive
            self._process.terminate(60)
            if error is not None:
                return
            if not alive:
                said = (self._home / "agent.txt").read_text(errors="replace").strip()
                raise LabError(f"the agent beside the run ended by itself: {said[-400:]}")
            self._keep()
        finally:
            shutil.rmtree(self._home, ignore_errors=True)

    def _keep(self) -> None:
        """What the scanner wrote, in the order of receipt, as messages of reports."""
        found = self._lake.read(AUDIT_REPORTS).to_pylist()
        rows = sorted(
            (row for row in found if row["source"] == _SOURCE),
            key=lambda row: (row["read_at"], row["part"], row["number"]),
        )
        target = self._evidence / "live" / "log_scan.jsonl"
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("w") as file:
            for row in rows:
                report = report_of_row(row)
                message: dict[str, Any] = json.loads(encode_reports([report]))
                file.write(json.dumps({"received_ms": report.received_ms, **message}) + "\n")

    def _settings(self) -> str:
        topics = json.dumps([topic.name for topic in self._scenario.topics])
        lines = [
            'cluster = "lab"',
            f"[lake]\nuri = {json.dumps(str(self._home / 'lake'))}",
            f"[agent]\nflush_s = {_FLUSH_S}",
            f"[kafka]\nbootstrap_servers = {json.dumps(self._cluster.direct)}",
            f'[[sources]]\nkind = "cluster_state"\nname = "brokers"\ntopics = {topics}\n'
            f"interval_s = {_INTERVAL_S}",
            f'[[sources]]\nkind = "log_scan"\nname = "{_SOURCE}"\ntopics = {topics}\n'
            f"settle_s = {_SETTLE_S}\ninterval_s = {_INTERVAL_S}",
        ]
        clients: list[Producer | Consumer] = [*self._scenario.producers, *self._scenario.consumers]
        lines += [self._output_of(client) for client in clients if not client.audited]
        if any(client.audited for client in clients):
            lines.append(
                '[[sources]]\nkind = "audit_topic"\nname = "clients"\n'
                f"topics = [{json.dumps(report_topic.NAME)}]"
            )
        return "\n".join(lines) + "\n"

    def _output_of(self, client: Producer | Consumer) -> str:
        """The source that follows what a client prints."""
        role = "producer" if isinstance(client, Producer) else "consumer"
        path = self._evidence / "verifiable" / f"{role}-{client.name}.jsonl"
        if client.kind == "python":
            path = self._evidence / "python" / f"{client.name}.jsonl"
        called = client.called if isinstance(client, Producer) else client.name
        given = {**client.settings, "client_id": called, "host": client.host}
        if isinstance(client, Producer):
            given |= {"acks": client.acks, "retries": str(client.retries)}
        settings = ", ".join(f"{json.dumps(n)} = {json.dumps(v)}" for n, v in given.items())
        group = client.group if isinstance(client, Consumer) else ""
        return (
            f'[[sources]]\nkind = "verifiable"\nname = "{role}-{client.name}"\n'
            f"paths = [{json.dumps(str(path))}]\ngroup = {json.dumps(group)}\n"
            f"session_settings = {{{settings}}}"
        )
