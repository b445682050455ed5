"""A recorded scan as audit reports: whole topics, read by the lab's own reader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from acktrail.audit.wire import Report
from ingest.recorded import content, json_lines, recorded_files
from ingest.sources.scan_reports import LogRecord, ScannedRange, scan_reports


def recorded_scan(
    lines: list[dict[str, Any]], ids: Sequence[tuple[int, str, str]], reporter: str
) -> Iterator[Report]:
    """What the lines of one scan say; *ids* are those of topics, for scans that do not name it."""
    began = [line for line in lines if line.get("scan") == "began"]
    ended = [line for line in lines if line.get("scan") == "ended"]
    if not began or not ended:
        return  # a scan that was cut off covers nothing
    records: dict[int, list[LogRecord]] = {}
    for line in lines:
        if "offset" in line:
            records.setdefault(line["partition"], []).append(_log_record(line))
    part, topic, began_ms = 0, str(ended[0]["topic"]), int(began[0]["at_ms"])
    for place in ended[0]["partitions"]:
        found = sorted(records.get(place["partition"], []), key=lambda r: r.offset)
        scan = ScannedRange(
            topic=topic,
            partition=place["partition"],
            first_offset=place["first_offset"],
            end_offset=place["end_offset"],
            began_ms=began_ms,
            ended_ms=ended[0]["at_ms"],
            closed=place.get("closed", True),
            topic_id=ended[0].get("topic_id") or id_at(ids, topic, began_ms),
            leader_epoch=place.get("leader_epoch"),
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


def topic_ids(evidence: Path) -> list[tuple[int, str, str]]:
    """When the cluster gave a topic which id, in order of time."""
    return sorted(
        (int(line["at_ms"]), str(line["topic"]), str(line["topic_id"]))
        for path in recorded_files(evidence / "cluster", "states.jsonl")
        for line in json_lines(content(path))
    )


def id_at(ids: Sequence[tuple[int, str, str]], topic: str, at_ms: int) -> str | None:
    """The id that *topic* had at a time: the newest before it, else the first."""
    known = [(at, topic_id) for at, name, topic_id in ids if name == topic]
    before = [topic_id for at, topic_id in known if at <= at_ms]
    if before:
        return before[-1]
    return known[0][1] if known else None
