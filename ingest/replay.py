"""Recorded evidence of a lab run into the lake, as the agents would have read it.

The directory is laid out as `docs/lab.md` says. Replaying it again writes nothing.

Rows of audits carry the recorder's receipts as `read_at`, and the answers of scans and of the
cluster the newest receipt before they were asked for as `after_at`. A recording that kept no
receipts was made on one machine with one clock: a line was received when the second of its time was
over, and a question began no longer ago than the recorder waits for an answer.
"""

from __future__ import annotations

import glob
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from acktrail import recorded_receipts as receipts
from acktrail.audit.wire import Report, decode_reports, row_of_report
from acktrail.contracts import Table
from acktrail.contracts.arrow import rows
from acktrail.contracts.bronze import (
    AUDIT_REPORTS,
    CLUSTER_CONFIGS,
    CLUSTER_STATES,
    GROUP_OFFSETS,
    METRIC_SAMPLES,
)
from acktrail.contracts.vocabulary import Tier
from acktrail.errors import ConfigError
from acktrail.lake import Lake, Position
from acktrail.metrics.names import METRICS
from acktrail.recorded_receipts import Receipts
from acktrail.settings.sources import LogFilesSource
from ingest.recorded import (
    content,
    json_lines,
    name_hash,
    plain_name,
    plain_path,
    recorded_files,
)
from ingest.recorded_scans import recorded_scan, topic_ids
from ingest.registry import SourceContext
from ingest.source import Batch, Flush
from ingest.sources.exposition import read_text
from ingest.sources.log_files import LogFiles
from ingest.sources.samples import SeriesSamples, failed_target, sample_rows
from ingest.sources.verifiable_lines import VerifiableReader

SOURCE = "replay"
REPORTS = "audit/reports.jsonl"
"""What came to the audit topic of a run with audited clients, a message per line."""
_ANSWERED_WITHIN_MS = 6_000
"""How long the lab waits for one answer of the cluster."""


@dataclass(frozen=True)
class Recording:
    """A run's directory, and the cluster whose evidence it is to be."""

    evidence: Path
    cluster: str
    left_out: frozenset[Tier] = frozenset()
    """Reports of these tiers are not read."""


@dataclass(frozen=True)
class _Replay:
    """What every reader below needs to know."""

    recording: Recording
    scenario: Mapping[str, Any]
    lake: Lake
    receipts: Receipts
    moved_ms: int
    """Added to all receipts: those of the cluster in the lake are earlier."""
    pending: dict[str, Flush]

    @property
    def evidence(self) -> Path:
        """The run's directory."""
        return self.recording.evidence

    @property
    def cluster(self) -> str:
        """The cluster that rows name."""
        return self.recording.cluster

    @property
    def name(self) -> str:
        """The run's name, which positions go by."""
        return str(self.scenario["name"])

    @property
    def ended_ms(self) -> int:
        """When the run ended."""
        return int(self.scenario["ended_at_ms"])

    def app_id(self, path: Path) -> str:
        """What the position of a file goes by."""
        return f"replay/{self.cluster}/{self.name}/{plain_path(path, self.evidence)}"

    def once(self, table: Table, path: Path, read: Callable[[bytes, int], pa.Table]) -> None:
        """Add the rows that *read* makes of a file's bytes, unless they are in the lake."""
        app_id = self.app_id(path)
        text = content(path)
        began = self.lake.position(table, app_id)
        if began is not None and began >= len(text):
            return
        made = read(text, began or 0)
        move = Position(app_id, began, len(text))
        self.add(Batch(table, made, (move,), received=made.num_rows))

    def add(self, batch: Batch) -> None:
        """Add a batch to what will be committed."""
        self.pending.setdefault(batch.table.name, Flush(batch.table)).add(batch)

    def reporter(self, path: Path) -> str:
        """A reporter of its own for a file, the same at every replay."""
        return name_hash(self.cluster, self.name, plain_name(path))

    def reports(self, made: Iterable[tuple[Report, int]]) -> pa.Table:
        """Reports, each with its receipt, as rows."""
        listed = [
            row_of_report(self._asked(report), self.cluster, SOURCE, self._moved(received_ms))
            for report, received_ms in made
            if report.tier not in self.recording.left_out
        ]
        return rows(AUDIT_REPORTS, listed)

    def _asked(self, report: Report) -> Report:
        """*report* with the newest receipt before the scan that made it began."""
        if report.tier not in (Tier.SCANNED, Tier.IN_LOG) or report.began_ms is None:
            return report
        return replace(report, after_ms=self._newest_before(report.began_ms))

    def stamped(self, table: Table, records: Iterable[Mapping[str, Any]]) -> pa.Table:
        """Records with `at_ms` as rows of a table with `at`."""
        read_at = _instant(self.ended_ms)
        stamp = {
            "cluster": self.cluster,
            "source": SOURCE,
            "read_at": read_at,
            "day": f"{read_at:%Y-%m-%d}",
        }
        made = []
        for record in records:
            row = {k: v for k, v in record.items() if k in table.names}
            row |= {**stamp, "at": _instant(record["at_ms"])}
            if "after_at" in table.names:
                asked_ms = record.get("asked_ms", record["at_ms"] - _ANSWERED_WITHIN_MS)
                row["after_at"] = _instant(self._newest_before(asked_ms))
            made.append(row)
        return rows(table, made)

    def _newest_before(self, asked_ms: int) -> int:
        """The newest receipt before that time; 0 where nothing had been received."""
        after_ms = self.receipts.newest_before(asked_ms)
        return 0 if after_ms is None else after_ms + self.moved_ms

    def _moved(self, received_ms: int) -> datetime:
        return _instant(received_ms + self.moved_ms)


def replay(evidence: Path, lake: Lake, cluster: str) -> dict[str, int]:
    """Write the evidence in a lab run's directory into *lake*; rows written by table."""
    return replay_all([Recording(evidence, cluster)], lake)


def replay_all(recordings: Iterable[Recording], lake: Lake) -> dict[str, int]:
    """Write several recordings, each of a cluster of its own, in one commit per table."""
    pending: dict[str, Flush] = {}
    for recording in recordings:
        _read(recording, lake, pending)
    counts: Counter[str] = Counter()
    for flush in pending.values():
        data = flush.data()
        lake.append(flush.table, data, flush.positions)
        counts[flush.table.name] += data.num_rows
    return {table: count for table, count in sorted(counts.items()) if count}


def _read(recording: Recording, lake: Lake, pending: dict[str, Flush]) -> None:
    described = recording.evidence / "scenario.json"
    if not described.is_file():
        raise ConfigError(
            f"{recording.evidence} holds no scenario.json: it is not a run of the lab."
        )
    scenario = json.loads(described.read_text(encoding="utf-8"))
    received = receipts_of(recording.evidence, scenario)
    work = _Replay(recording, scenario, lake, received, 0, pending)
    work = replace(work, moved_ms=_to_move(work))
    _cluster(work)
    _metrics(work)
    _clients(work)
    _audit_topic(work)
    _scans(work)
    _live_scan(work)
    _logs(work)


def receipts_of(evidence: Path, scenario: Mapping[str, Any]) -> Receipts:
    """When the recorder received what clients printed; see above for one that did not note it."""
    for path in recorded_files(evidence, receipts.FILE):
        return Receipts.of_rows(json_lines(content(path)))
    paths = [path for _, _, path in _outputs(evidence, scenario)]
    return Receipts.of_texts({plain_path(path, evidence): content(path) for path in paths})


def _to_move(work: _Replay) -> int:
    """By how much receipts are moved, so that they follow those of the cluster in the lake.

    A run that is read on keeps its times: the lake orders what it has gained since.
    """
    newest_ms = work.lake.receipt(work.cluster)
    first_ms = work.receipts.first_ms
    if first_ms is None or newest_ms < first_ms:
        return 0
    paths = [path for _, _, path in _outputs(work.evidence, work.scenario)]
    standing = work.lake.standing(AUDIT_REPORTS)
    known = any(standing.of(work.app_id(path)) is not None for path in paths)
    return 0 if known else newest_ms + 1 - first_ms


def _logs(work: _Replay) -> None:
    """Log files of every host, by the same source that follows live ones."""
    for host in sorted(path for path in (work.evidence / "logs").glob("*") if path.is_dir()):
        settings = LogFilesSource(
            kind="log_files",
            name=f"{SOURCE}.{work.name}.{host.name}",
            paths=(f"{glob.escape(str(host))}/*.log",),
            host=host.name,
        )
        context = SourceContext(work.cluster, once=True)
        source = LogFiles(settings, context, clock=lambda: work.ended_ms / 1000)
        source.open(work.lake)
        try:
            while batches := list(source.poll(0)):
                for batch in batches:
                    work.add(batch)
        finally:
            source.close()


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
        return sample_rows(work.cluster, SOURCE, _scraped(text[since:]), _instant(work.ended_ms))

    for path in recorded_files(work.evidence / "metrics", "*.jsonl"):
        work.once(METRIC_SAMPLES, path, read)


@lru_cache(maxsize=32)
def _scraped(text: bytes) -> tuple[SeriesSamples, ...]:
    """The series in a file of scrapes; kept, because variants of a run share their files."""
    found: dict[tuple[Any, ...], SeriesSamples] = {}
    failed = []
    for scrape in json_lines(text):
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
    return (*found.values(), *failed)


def _outputs(
    evidence: Path, scenario: Mapping[str, Any]
) -> Iterator[tuple[Mapping[str, Any], str, Path]]:
    """What producers and consumers printed: the client, its role, the file."""
    for role in ("producer", "consumer"):
        for client in scenario[f"{role}s"]:
            if client.get("audited"):
                continue  # what it prints is for the truth alone
            name, python = client["name"], client.get("kind") == "python"
            folder = evidence / ("python" if python else "verifiable")
            pattern = f"{name}.jsonl" if python else f"{role}-{name}.jsonl"
            for path in recorded_files(folder, pattern):
                yield client, role, path


def _clients(work: _Replay) -> None:
    """What producers and consumers printed, in the pieces in which it was received."""
    for client, role, path in _outputs(work.evidence, work.scenario):
        reader = VerifiableReader(
            work.reporter(path), str(client.get("group", "")), _settings(client, role)
        )

        def read(
            text: bytes, since: int, reader: VerifiableReader = reader, path: Path = path
        ) -> pa.Table:
            if since:
                reader.read(text[:since], 0)  # what was written before, remembered
            made = []
            name = plain_path(path, work.evidence)
            for piece in work.receipts.pieces(name, text, work.ended_ms + 1):
                start = max(piece.start, since)
                if start < piece.end:
                    found = reader.read(text[start : piece.end], start)
                    made += [(report, piece.received_ms) for report in found.reports]
            return work.reports(made)

        work.once(AUDIT_REPORTS, path, read)


def _audit_topic(work: _Replay) -> None:
    """What audited clients reported, in the pieces in which it was received."""

    def read(text: bytes, since: int) -> pa.Table:
        made: list[tuple[Report, int]] = []
        for piece in work.receipts.pieces(REPORTS, text, work.ended_ms + 1):
            for line in text[max(piece.start, since) : piece.end].splitlines():
                made += [(report, piece.received_ms) for report in decode_reports(line)]
        return work.reports(made)

    for path in recorded_files(work.evidence / Path(REPORTS).parent, Path(REPORTS).name):
        work.once(AUDIT_REPORTS, path, read)


def _settings(client: Mapping[str, Any], role: str) -> dict[str, str]:
    """The settings a session reports of itself."""
    settings = {str(k): str(v) for k, v in (client.get("settings") or {}).items()}
    named = str(client.get("client_id") or client["name"])
    settings |= {"client_id": named, "host": str(client.get("host", ""))}
    if role == "producer":
        settings |= {"acks": str(client["acks"]), "retries": str(client["retries"])}
    return settings


def _scans(work: _Replay) -> None:
    """Whole reads of topics: the last one after everything has settled."""
    ids = topic_ids(work.evidence)
    for path in recorded_files(work.evidence / "scan", "*.jsonl"):
        reporter = work.reporter(path)

        def read(text: bytes, _since: int, reporter: str = reporter) -> pa.Table:
            made = recorded_scan(list(json_lines(text)), ids, reporter)
            return work.reports((report, report.reported_ms) for report in made)

        work.once(AUDIT_REPORTS, path, read)


def _live_scan(work: _Replay) -> None:
    """What the default log scanner reported while things broke: its own rows."""

    def read(text: bytes, since: int) -> pa.Table:
        lines = text[since:].splitlines()
        received = [int(json.loads(line)["received_ms"]) for line in lines]
        return work.reports(
            (report, received_ms)
            for line, received_ms in zip(lines, received, strict=True)
            for report in decode_reports(line)
        )

    for path in recorded_files(work.evidence / "live", "log_scan.jsonl"):
        work.once(AUDIT_REPORTS, path, read)


def _instant(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
