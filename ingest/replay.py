"""Recorded evidence of a lab run into the lake, as the agents would have read it.

The directory is laid out as `docs/lab.md` says. Replaying it again writes nothing.
"""

from __future__ import annotations

import glob
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from acktrail.audit.wire import Report, row_of_report
from acktrail.contracts import Table
from acktrail.contracts.arrow import rows
from acktrail.contracts.bronze import (
    AUDIT_REPORTS,
    CLUSTER_CONFIGS,
    CLUSTER_STATES,
    GROUP_OFFSETS,
    LOG_RECORDS,
    METRIC_SAMPLES,
)
from acktrail.errors import ConfigError
from acktrail.lake import Lake, Position
from acktrail.metrics.names import METRICS
from acktrail.settings.sources import LogFilesSource
from ingest.agent.flush import Flush
from ingest.agent.loop import Agent
from ingest.recorded import content, json_lines, name_hash, plain_name, recorded_files
from ingest.registry import SourceContext
from ingest.source import Batch
from ingest.sources.exposition import read_text
from ingest.sources.log_files import LogFiles
from ingest.sources.samples import SeriesSamples, failed_target, sample_rows
from ingest.sources.scan_reports import LogRecord, ScannedRange, scan_reports
from ingest.sources.verifiable_lines import VerifiableReader

SOURCE = "replay"


@dataclass(frozen=True)
class _Replay:
    """What every reader below needs to know."""

    evidence: Path
    scenario: Mapping[str, Any]
    lake: Lake
    cluster: str
    read_at: datetime
    pending: dict[str, Flush]

    @property
    def name(self) -> str:
        """The run's name, which positions go by."""
        return str(self.scenario["name"])

    def once(self, table: Table, path: Path, read: Callable[[bytes, int], pa.Table]) -> None:
        """Add the rows that *read* makes of a file's bytes, unless they are in the lake."""
        relative = path.relative_to(self.evidence).with_name(plain_name(path)).as_posix()
        app_id = f"replay/{self.cluster}/{self.name}/{relative}"
        text = content(path)
        began = self.lake.position(table, app_id)
        if began is not None and began >= len(text):
            return
        made = read(text, began or 0)
        move = Position(app_id, began, len(text))
        flush = self.pending.setdefault(table.name, Flush(table))
        flush.add(Batch(table, made, (move,), received=made.num_rows))

    def reporter(self, path: Path) -> str:
        """A reporter of its own for a file, the same at every replay."""
        return name_hash(self.cluster, self.name, plain_name(path))

    def reports(self, made: Iterable[Report]) -> pa.Table:
        """Reports as rows."""
        listed = [row_of_report(r, self.cluster, SOURCE, self.read_at) for r in made]
        return rows(AUDIT_REPORTS, listed)

    def stamped(self, table: Table, records: Iterable[Mapping[str, Any]]) -> pa.Table:
        """Records with `at_ms` as rows of a table with `at`."""
        stamp = {
            "cluster": self.cluster,
            "source": SOURCE,
            "read_at": self.read_at,
            "day": f"{self.read_at:%Y-%m-%d}",
        }
        made = []
        for record in records:
            row = {k: v for k, v in record.items() if k in table.names}
            made.append({**row, "at": _instant(record["at_ms"]), **stamp})
        return rows(table, made)


def replay(
    evidence: Path, lake: Lake, cluster: str, read_at: datetime | None = None
) -> dict[str, int]:
    """Write the evidence in a lab run's directory into *lake*; rows written by table.

    *read_at* is the time of reading that rows carry; the end of the run where not given.
    """
    described = evidence / "scenario.json"
    if not described.is_file():
        raise ConfigError(f"{evidence} holds no scenario.json: it is not a run of the lab.")
    scenario = json.loads(described.read_text(encoding="utf-8"))
    ended = read_at or _instant(scenario["ended_at_ms"])
    work = _Replay(evidence, scenario, lake, cluster, ended, {})
    _cluster(work)
    _metrics(work)
    _clients(work)
    _scans(work)
    counts: Counter[str] = Counter()
    for flush in work.pending.values():
        data = flush.data()
        lake.append(flush.table, data, flush.positions)
        counts[flush.table.name] += data.num_rows
    counts[LOG_RECORDS.name] += _logs(work)
    return {table: count for table, count in sorted(counts.items()) if count}


def _logs(work: _Replay) -> int:
    """Log files of every host, by the same source that follows live ones; the rows written."""
    sources = []
    for host in sorted(path for path in (work.evidence / "logs").glob("*") if path.is_dir()):
        settings = LogFilesSource(
            kind="log_files",
            name=f"{SOURCE}.{work.name}.{host.name}",
            paths=(f"{glob.escape(str(host))}/*.log",),
            host=host.name,
        )
        context = SourceContext(work.cluster, once=True)
        sources.append(LogFiles(settings, context, clock=work.read_at.timestamp))
    agent = Agent(work.lake, sources, once=True)
    agent.run()
    return sum(counts.written for counts in agent.counts.values())


def _cluster(work: _Replay) -> None:
    """What the cluster said of itself."""
    directory = work.evidence / "cluster"
    tables = (("states", CLUSTER_STATES), ("groups", GROUP_OFFSETS), ("configs", CLUSTER_CONFIGS))
    for name, table in tables:
        for path in recorded_files(directory, f"{name}.jsonl"):

            def read(text: bytes, since: int, table: Table = table) -> pa.Table:
                return work.stamped(table, json_lines(text[since:]))

            work.once(table, path, read)


def _metrics(work: _Replay) -> None:
    """Scrapes of brokers and clients; a line without a text is a target that did not answer."""

    def read(text: bytes, since: int) -> pa.Table:
        found: dict[tuple[Any, ...], SeriesSamples] = {}
        failed = []
        for scrape in json_lines(text[since:]):
            instance, at = str(scrape["instance"]), int(scrape["at_ms"])
            if scrape.get("text") is None:
                failed.append(failed_target(instance, at, str(scrape.get("error") or "no answer")))
                continue
            for sample in read_text(scrape["text"], METRICS).samples:
                key = (instance, sample.metric, sample.labels)
                if key not in found:
                    labels = dict(sample.labels)
                    found[key] = SeriesSamples(sample.metric, labels, instance, [])
                found[key].samples.append((at, sample.value))  # type: ignore[attr-defined]
        return sample_rows(work.cluster, SOURCE, [*found.values(), *failed], work.read_at)

    for path in recorded_files(work.evidence / "metrics", "*.jsonl"):
        work.once(METRIC_SAMPLES, path, read)


def _clients(work: _Replay) -> None:
    """What producers and consumers printed."""
    for role in ("producer", "consumer"):
        for client in work.scenario[f"{role}s"]:
            name, python = client["name"], client.get("kind") == "python"
            folder = work.evidence / ("python" if python else "verifiable")
            pattern = f"{name}.jsonl" if python else f"{role}-{name}.jsonl"
            for path in recorded_files(folder, pattern):
                reader = VerifiableReader(
                    work.reporter(path), str(client.get("group", "")), _settings(client, role)
                )

                def read(text: bytes, since: int, reader: VerifiableReader = reader) -> pa.Table:
                    if since:
                        reader.read(text[:since], 0)  # what was written before, remembered
                    return work.reports(reader.read(text[since:], since).reports)

                work.once(AUDIT_REPORTS, path, read)


def _settings(client: Mapping[str, Any], role: str) -> dict[str, str]:
    """The settings a session reports of itself."""
    settings = {str(k): str(v) for k, v in (client.get("settings") or {}).items()}
    settings |= {"client_id": str(client["name"]), "host": str(client.get("host", ""))}
    if role == "producer":
        settings |= {"acks": str(client["acks"]), "retries": str(client["retries"])}
    return settings


def _scans(work: _Replay) -> None:
    """Whole reads of the topics after everything has settled."""
    ids = _topic_ids(work.evidence)
    for path in recorded_files(work.evidence / "scan", "*.jsonl"):
        reporter = work.reporter(path)

        def read(text: bytes, _since: int, reporter: str = reporter) -> pa.Table:
            return work.reports(_scan_reports(list(json_lines(text)), ids, reporter))

        work.once(AUDIT_REPORTS, path, read)


def _scan_reports(
    lines: list[dict[str, Any]], ids: Mapping[str, str], reporter: str
) -> Iterable[Report]:
    began = [line for line in lines if line.get("scan") == "began"]
    ended = [line for line in lines if line.get("scan") == "ended"]
    if not began or not ended:
        return  # a scan that was cut off covers nothing
    records: dict[int, list[LogRecord]] = {}
    for line in lines:
        if "offset" in line:
            records.setdefault(line["partition"], []).append(_log_record(line))
    part, topic = 0, str(ended[0]["topic"])
    for place in ended[0]["partitions"]:
        found = sorted(records.get(place["partition"], []), key=lambda r: r.offset)
        scan = ScannedRange(
            topic=topic,
            partition=place["partition"],
            first_offset=place["first_offset"],
            end_offset=place["end_offset"],
            began_ms=began[0]["at_ms"],
            ended_ms=ended[0]["at_ms"],
            closed=True,
            topic_id=ids.get(topic),
        )
        yield from scan_reports(scan, found, reporter, part)
        part += len(found) + 1


def _log_record(line: Mapping[str, Any]) -> LogRecord:
    headers = dict(line.get("headers") or [])
    value, header = line.get("value"), headers.get("acktrail")
    return LogRecord(
        offset=int(line["offset"]),
        value=None if value is None else str(value).encode(),
        header=None if header is None else bytes.fromhex(header),
        leader_epoch=line.get("leader_epoch"),
    )


def _topic_ids(evidence: Path) -> dict[str, str]:
    ids: dict[str, str] = {}
    for path in recorded_files(evidence / "cluster", "states.jsonl"):
        for line in json_lines(content(path)):
            ids[str(line["topic"])] = str(line["topic_id"])
    return ids


def _instant(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
