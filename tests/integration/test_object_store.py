"""The lake on an object store: every command, by real processes against a real S3 server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from acktrail.cli import main
from acktrail.contracts.arrow import rows
from acktrail.contracts.bronze import AUDIT_REPORTS, LOG_RECORDS
from acktrail.contracts.gold import DELIVERY_LEDGER, LOSS_INCIDENTS, RETRY_BUDGETS
from acktrail.contracts.vocabulary import State
from acktrail.errors import LakeDamaged
from acktrail.lake import Lake, housekeeping
from acktrail.lake.safe_commits import PROBE
from tests.integration.process_list import process_list
from tests.integration.s3_server import ERROR, KEY_ID, SECRET, Front, make_bucket, s3_server

LINE = "2026-01-31 10:00:00,001 WARN Got error produce response of {} number {}\n"
AT = datetime(2026, 1, 31, 7, tzinfo=UTC)
INCIDENT = {
    "cluster": "default", "topic": "payments", "group": "", "state": "lost_after_ack",
    "cause": "acks_1_leader_change", "confidence": "same_client", "told": False,
    "incident": "abcd1234", "started_at": AT, "ended_at": AT, "ids": 204, "events": 1,
    "sessions": 1, "partitions": [0], "client_ids": ["pay"], "because": "why", "evidence": ["k"],
}  # fmt: skip
ACCOUNT = {
    **{state.value: 0 for state in State}, "cluster": "default", "session": "s", "group": "",
    "topic": "payments", "client_id": "pay", "sent": 4000, "acked": 4000, "delivered": 3796,
    "lost_after_ack": 204, "residual": 0, "duplicates": 0, "redelivered": 0, "out_of_order": 0,
    "ghosts": 0, "forwarded": 0, "findings": [], "open": True, "bucket": "x00.0", "block": 0,
    "first_at": AT, "last_at": AT,
}  # fmt: skip
OPTIONS = {
    "access_key_id": KEY_ID,
    "secret_access_key": SECRET,
    "max_retries": "1",
    "timeout": "3s",
    "retry_timeout": "3s",
}


@pytest.fixture(scope="module")
def server():
    with s3_server() as address:
        make_bucket(address, "bucket")
        yield address


@pytest.fixture
def front(server):
    with Front(server).open() as opened:
        yield opened


def environment(**more: str) -> dict[str, str]:
    """Without any credentials of the machine that runs the tests, and without its roles."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    nowhere = {"AWS_EC2_METADATA_DISABLED": "true", "AWS_METADATA_ENDPOINT": "http://127.0.0.1:9"}
    return {**kept, **nowhere, "AWS_CONFIG_FILE": "/dev/null", **more}


def configured(
    folder: Path, uri: str, endpoint: str, name: str = "app", options: dict[str, str] = OPTIONS
) -> str:
    file = folder / f"{name}.toml"
    lines = [f'{key} = "{value}"' for key, value in {**options, "endpoint_url": endpoint}.items()]
    file.write_text(
        f'[lake]\nuri = "{uri}"\n[lake.storage_options]\n' + "\n".join(lines) + "\n"
        "[agent]\nflush_s = 0.05\n"
        f'[[sources]]\nkind = "log_files"\nname = "{name}"\nhost = "h"\n'
        f'paths = ["{folder}/{name}.log"]\n'
    )
    return str(file)


def write(folder: Path, count: int, name: str = "app") -> None:
    with (folder / f"{name}.log").open("a") as out:
        out.writelines(LINE.format(name, n) for n in range(count))


def acktrail(config: str, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "acktrail", *words, "--config", config],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=environment(**more),
    )


def lake_at(uri: str, address: str) -> Lake:
    return Lake(uri, {**OPTIONS, "endpoint_url": address})


def append_rows(lake: Lake, count: int) -> None:
    """One commit each."""
    row = {
        "cluster": "c", "source": "s", "file_id": "f", "position": 0, "text": "t",
        "truncated": False, "read_at": datetime(2026, 1, 31, 10, tzinfo=UTC), "day": "2026-01-31",
    }  # fmt: skip
    for _ in range(count):
        lake.append(LOG_RECORDS, rows(LOG_RECORDS, [row]))


def test_every_command_without_spark(tmp_path, server, monkeypatch):
    uri = "s3://bucket/every"
    config = configured(tmp_path, uri, server)
    write(tmp_path, 100)
    audits = tmp_path / "orders.jsonl"
    audits.write_text(
        "".join(
            f'{{"tier": "sent", "topic": "orders", "partition": 0, "time": {1769842800000 + n}, '
            f'"session": "run-1", "seq": {n}, "client_id": "shop"}}\n'
            for n in range(5)
        )
    )
    done = acktrail(config, "agent", "--once")
    assert done.returncode == 0, done.stderr
    done = acktrail(config, "ingest", "audits", str(audits))
    assert done.returncode == 0, done.stderr
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    lake = lake_at(uri, server)
    lake.append(LOSS_INCIDENTS, rows(LOSS_INCIDENTS, [INCIDENT]))
    lake.append(DELIVERY_LEDGER, rows(DELIVERY_LEDGER, [ACCOUNT]))
    lake.create(RETRY_BUDGETS)
    ran = {" ".join(words): CliRunner().invoke(main, [*words, "--config", config]) for words in (
        ["agent", "status"], ["losses"], ["budgets"], ["check"], ["alerts", "list"], ["ledger"],
        ["lake", "tables", "--format", "json"], ["lake", "optimize"], ["lake", "expire"],
        ["lake", "vacuum"], ["doctor"], ["resend-list", "abcd"],
        ["exporter", "--textfile", str(tmp_path / "a.prom")],
    )}  # fmt: skip
    assert lake.read(LOG_RECORDS).num_rows == 100
    assert lake.read(AUDIT_REPORTS).num_rows > 0
    held = map(json.loads, ran["lake tables --format json"].stdout.splitlines())
    assert {row["table"]: row["rows"] for row in held}["log_records"] == 100
    assert "app" in ran["agent status"].stdout
    assert "abcd1234" in ran["losses"].stdout
    assert "acktrail_lake_up 1.0" in (tmp_path / "a.prom").read_text()
    assert f"{uri}: writable" in ran["doctor"].stdout
    failed = {w: (done.output, done.exception) for w, done in ran.items() if done.exit_code > 1}
    assert not failed
    shown = "".join(done.stdout + done.stderr for done in ran.values())
    assert SECRET not in shown
    assert not [name for name in lake.store.names(below=True) if PROBE in name]


def test_two_agents_at_once_lose_no_row_and_double_none(tmp_path, server):
    uri = "s3://bucket/two"
    configs = []
    for name in ("one", "two"):
        configs.append(configured(tmp_path, uri, server, name))
        write(tmp_path, 300, name)
    command = [sys.executable, "-m", "acktrail", "agent", "--once", "--config"]
    agents = [
        subprocess.Popen(
            [*command, config], env=environment(), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
        )
        for config in configs
    ]
    visible = ""
    while any(agent.poll() is None for agent in agents):
        visible += "".join(line for agent in agents for line in process_list(agent.pid))
        time.sleep(0.05)
    said = b"".join(agent.communicate()[1] for agent in agents).decode()
    assert [agent.returncode for agent in agents] == [0, 0], said
    texts = lake_at(uri, server).read(LOG_RECORDS, columns=["text"]).column("text").to_pylist()
    wanted = [LINE.format(name, n).strip() for name in ("one", "two") for n in range(300)]
    assert sorted(texts) == sorted(wanted)
    assert "acktrail" in visible
    assert SECRET not in visible + said


def test_a_killed_agent_goes_on_where_the_lake_says(tmp_path, server):
    uri = "s3://bucket/killed"
    config = configured(tmp_path, uri, server)
    write(tmp_path, 200)
    crashed = acktrail(config, "agent", "--once", ACKTRAIL_CRASH_AT="lake.files_written")
    lake = lake_at(uri, server)
    assert crashed.returncode != 0
    assert lake.read(LOG_RECORDS).num_rows == 0
    assert acktrail(config, "agent", "--once").returncode == 0
    assert lake.read(LOG_RECORDS).num_rows == 200


def test_a_log_is_checked_as_on_a_disk(server):
    lake = lake_at("s3://bucket/damaged", server)
    append_rows(lake, 4)
    store = lake.at(LOG_RECORDS)
    entry = f"_delta_log/{2:020d}.json"
    whole = store.read_text(entry)
    shortened = "\n".join(line for line in whole.splitlines() if '"add"' not in line)
    with store.files().open_output_stream(entry) as stream:
        stream.write(shortened.encode())
    with pytest.raises(LakeDamaged, match="adds 0 files of 1"):
        lake_at("s3://bucket/damaged", server).open(LOG_RECORDS)
    store.delete(f"_delta_log/{version:020d}.json" for version in range(5))
    with pytest.raises(LakeDamaged, match="holds files but no readable _delta_log"):
        lake_at("s3://bucket/damaged", server).open(LOG_RECORDS)


def test_an_entry_that_was_shortened_away_is_not_damage_to_a_process_that_runs_on(
    server, monkeypatch
):
    monkeypatch.setattr(housekeeping, "LOG_ENTRIES", 2)
    lake, other = (lake_at("s3://bucket/short", server) for _ in range(2))
    append_rows(lake, 1)
    assert other.version(LOG_RECORDS) == 1
    append_rows(lake, 6)
    opened = lake.open(LOG_RECORDS)
    assert opened is not None
    opened.create_checkpoint()
    append_rows(lake, 3)
    assert housekeeping.shorten_log(lake, LOG_RECORDS, None) > 0
    assert other.version(LOG_RECORDS) == 10
    assert other.read(LOG_RECORDS).num_rows == 10


def test_a_store_that_ignores_the_condition_of_a_put_is_refused(tmp_path, front):
    front.drop_headers = ("if-none-match",)
    config = configured(tmp_path, "s3://bucket/unsafe", front.address)
    write(tmp_path, 10)
    for words in (["agent", "--once"], ["doctor"]):
        done = acktrail(config, *words)
        assert done.returncode == 2, done.stderr
        assert "ignores `If-None-Match: *`" in done.stdout + done.stderr
    assert any("if-none-match" in seen.headers for seen in front.seen)
    assert lake_at("s3://bucket/unsafe", front.server).store.names(below=True) == []


REFUSALS = {
    "InvalidAccessKeyId": (403, 2, "the store does not know the access key"),
    "PermanentRedirect": (301, 2, "the bucket is in another region"),
    "SlowDown": (503, 75, "the store asks for fewer requests"),
}


@pytest.mark.parametrize("code", REFUSALS)
def test_a_refusal_of_the_store_is_explained(tmp_path, front, code):
    """All others: tests/unit/lake/test_store_errors.py."""
    status, exit_code, said = REFUSALS[code]
    front.answer = lambda _seen: (status, ERROR.format(code, "As the store says."))
    done = acktrail(configured(tmp_path, "s3://bucket/lake", front.address), "losses")
    assert (done.returncode, said in done.stderr) == (exit_code, True), done.stderr
    assert SECRET not in done.stderr


def test_a_bucket_that_is_not_there(tmp_path, server):
    write(tmp_path, 1)
    config = configured(tmp_path, "s3://no-such-bucket/lake", server)
    done = acktrail(config, "agent", "--once")
    assert done.returncode == 2
    assert "there is no such bucket" in done.stderr


def test_a_store_that_is_silent_is_given_up(tmp_path, front):
    front.answer = lambda _seen: time.sleep(90)  # type: ignore[func-returns-value]
    began = time.monotonic()
    done = acktrail(configured(tmp_path, "s3://bucket/lake", front.address), "losses")
    assert done.returncode == 75
    assert "the store did not answer in time" in done.stderr
    assert time.monotonic() - began < 60


def test_keys_may_come_from_variables_or_from_files(tmp_path, front):
    write(tmp_path, 5)
    config = configured(tmp_path, "s3://bucket/keys", front.address, options={})
    variables = {"AWS_ACCESS_KEY_ID": "AKIDOFVARIABLE", "AWS_SECRET_ACCESS_KEY": SECRET}
    assert acktrail(config, "agent", "--once", **variables).returncode == 0
    assert {seen.key_id for seen in front.seen} == {"AKIDOFVARIABLE"}
    front.seen.clear()
    for name, text in (("id", "AKIDOFFILE\n"), ("secret", f"{SECRET}\n")):
        (tmp_path / name).write_text(text)
    with Path(config).open("a") as out:
        out.write(f'[lake.storage_option_files]\naccess_key_id = "{tmp_path}/id"\n')
        out.write(f'secret_access_key = "{tmp_path}/secret"\n')
    assert acktrail(config, "lake", "tables").returncode == 0
    assert {seen.key_id for seen in front.seen} == {"AKIDOFFILE"}


def test_keys_may_come_from_a_role(tmp_path, front):
    """As in a pod of EKS: an address of the host gives temporary credentials."""
    given = {
        "AccessKeyId": "ASIAOFTHEROLE", "SecretAccessKey": SECRET, "Token": "token-of-the-role",
        "Expiration": "2099-01-01T00:00:00Z", "RoleArn": "arn:aws:iam::123456789012:role/agent",
    }  # fmt: skip
    write(tmp_path, 5)
    config = configured(tmp_path, "s3://bucket/role", front.address, options={})
    roles = Front(front.server, answer=lambda _seen: (200, json.dumps(given)))
    with roles.open():
        address = f"{roles.address}/role"
        token = tmp_path / "token"
        token.write_text("of the pod")
        done = acktrail(
            config,
            "agent",
            "--once",
            AWS_CONTAINER_CREDENTIALS_FULL_URI=address,
            AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=str(token),
        )
    assert done.returncode == 0, done.stderr
    assert {seen.key_id for seen in front.seen} == {"ASIAOFTHEROLE"}
    assert {seen.headers.get("x-amz-security-token") for seen in front.seen} == {given["Token"]}
