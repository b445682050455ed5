"""`acktrail read`: files of every kind, one object per event."""

from __future__ import annotations

import gzip
import json

import pytest
from click.testing import CliRunner

from acktrail.cli import main

LINE = (
    "[2024-05-01 12:00:10,420] WARN [Producer clientId=p] Got error produce response with "
    "correlation id 41 on topic-partition orders-3, retrying (4 attempts left). "
    "Error: NOT_ENOUGH_REPLICAS (org.apache.kafka.clients.producer.internals.Sender)\n"
)
NOISE = "[2024-05-01 12:00:10,420] INFO nothing to see (com.example.App)\n"


def read(*arguments, stdin=None):
    done = CliRunner().invoke(main, ["read", *map(str, arguments)], input=stdin)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_json_has_file_line_and_every_field(tmp_path):
    log = tmp_path / "app.log"
    log.write_text(NOISE + LINE)
    (event,) = map(json.loads, read(log, "--format", "json").splitlines())
    assert event["file"] == str(log)
    assert event["line"] == 2
    assert (event["kind"], event["topic"], event["partition"]) == ("retry", "orders", 3)
    assert event["retriable"] is True
    assert event["category"] == "replication"


def test_standard_input_gzip_utf16_and_crlf(tmp_path):
    packed = tmp_path / "a.log.gz"
    packed.write_bytes(gzip.compress((NOISE + LINE).encode()))
    wide = tmp_path / "b.log"
    wide.write_bytes((NOISE + LINE).replace("\n", "\r\n").encode("utf-16"))
    for arguments, stdin in (((packed,), None), ((wide,), None), (("-",), NOISE + LINE)):
        events = [
            json.loads(line)
            for line in read(*arguments, "--format", "json", stdin=stdin).splitlines()
        ]
        assert [(e["line"], e["error"]) for e in events] == [(2, "NOT_ENOUGH_REPLICAS")]


def test_bad_bytes_and_a_huge_line_are_survived(tmp_path):
    log = tmp_path / "app.log"
    log.write_bytes(b"\xc3\xff\xfe retrying (\x00\n" + b"x" * 3_000_000 + b"\n" + LINE.encode())
    (event,) = map(json.loads, read(log, "--format", "json").splitlines())
    assert event["line"] == 3


def test_a_version_line_tells_whether_an_error_is_retried(tmp_path):
    log = tmp_path / "app.log"
    retry = LINE.replace("NOT_ENOUGH_REPLICAS", "CONCURRENT_TRANSACTIONS")
    version = (
        "[2024-05-01 12:00:09,000] INFO Kafka version: 2.8.2 (org.apache.kafka.x.AppInfoParser)\n"
    )
    log.write_text(version + retry)
    (event,) = map(json.loads, read(log, "--format", "json").splitlines())
    assert (event["client_version"], event["retriable"]) == ("2.8.2", False)


def test_a_table_and_csv_and_what_is_unread(tmp_path):
    log = tmp_path / "app.log"
    log.write_text(LINE + "WARN Got error produce response of a release to come\n")
    table = read(log)
    assert "orders" in table
    assert "attempts_left" in table
    assert read(log, "--format", "csv").splitlines()[0].startswith("file,line,kind,level,ts")
    assert "release to come" in read(log, "--unread")


def test_a_missing_file_is_said_plainly():
    done = CliRunner().invoke(main, ["read", "/no/such/file"])
    assert done.exit_code == 2
    assert "/no/such/file cannot be read" in done.stderr


def test_a_file_without_events_is_said_in_words(tmp_path):
    file = tmp_path / "app.log"
    file.write_text("hello\n")
    done = CliRunner().invoke(main, ["read", str(file)])
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == f"No event was found in {file}.\n"
    assert CliRunner().invoke(main, ["read", "/no/such/file"]).stdout == ""
    table = CliRunner().invoke(main, ["read", str(file), "--format", "csv"])
    assert table.stdout.startswith("file,line,kind")


def test_a_file_that_cannot_be_read_hides_no_other(tmp_path):
    good = tmp_path / "good.log"
    good.write_text(LINE)
    done = CliRunner().invoke(main, ["read", str(good), str(tmp_path / "none.log")])
    assert done.exit_code == 2
    assert "retry" in done.stdout
    assert "none.log cannot be read" in done.output


def test_utf16_needs_no_mark(tmp_path):
    for encoding in ("utf-16-le", "utf-16-be"):
        file = tmp_path / f"{encoding}.log"
        file.write_bytes((LINE * 40).encode(encoding))
        done = CliRunner().invoke(main, ["read", str(file), "--format", "json"])
        assert len(done.stdout.splitlines()) == 40, encoding


def alone(second: str, partition: int = 3, client: str = "p", stamp: str | None = None) -> str:
    time = f"[2024-05-01 12:00:{second}] " if stamp is None else stamp
    return (
        f"{time}WARN [Producer clientId={client}] Received invalid metadata error in produce "
        f"request on partition orders-{partition} due to org.apache.kafka.common.errors."
        "NotLeaderOrFollowerException: For requests intended only for the leader. Going to request "
        "metadata update now (org.apache.kafka.clients.producer.internals.Sender)\n"
    )


MOVED = LINE.replace("NOT_ENOUGH_REPLICAS", "NOT_LEADER_OR_FOLLOWER")
PAIRS = {
    # log -> detail of its invalid-metadata line
    "beside its retry": (MOVED + alone("10,421"), "invalid_metadata"),
    "a line between them": (MOVED + NOISE + alone("11,420"), "invalid_metadata"),
    "nothing before it": (alone("10,421"), "unpaired"),
    "too long after it": (MOVED + alone("11,421"), "unpaired"),
    "before its retry": (alone("10,419") + MOVED, "unpaired"),
    "after a retry of another partition": (MOVED + alone("10,421", partition=4), "unpaired"),
    "after a retry of another client": (MOVED + alone("10,421", client="q"), "unpaired"),
    "after a retry for another error": (LINE + alone("10,421"), "unpaired"),
    "no time is printed": (alone("", stamp=""), "invalid_metadata"),
}


@pytest.mark.parametrize("case", PAIRS)
def test_an_answer_that_was_not_retried_is_unpaired(tmp_path, case):
    text, detail = PAIRS[case]
    log = tmp_path / "app.log"
    log.write_text(text)
    events = map(json.loads, read(log, "--format", "json").splitlines())
    assert [e["detail"] for e in events if e["kind"] == "invalid_metadata"] == [detail]


def test_each_file_is_paired_by_itself(tmp_path):
    first, second = tmp_path / "a.log", tmp_path / "b.log"
    first.write_text(MOVED)
    second.write_text(alone("10,421"))
    events = [json.loads(ln) for ln in read(first, second, "--format", "json").splitlines()]
    assert [e["detail"] for e in events] == ["produce_retry", "unpaired"]
