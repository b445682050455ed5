"""`acktrail init`: what it writes loads, and equals what was asked for."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from acktrail.cli import main
from acktrail.policy import read_policy
from acktrail.settings import Settings, load
from acktrail.settings.sources import (
    ClusterStateSource,
    LogFilesSource,
    LogScanSource,
    PrometheusSource,
    ScrapeSource,
)

ROOT = Path(__file__).parents[3]
names = st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n"), min_size=1).filter(
    lambda text: not text.startswith("-")
)
hosts = st.from_regex(r"[a-z][a-z0-9]{0,8}(\.[a-z]{2,5})?:[1-9][0-9]{3}", fullmatch=True)
urls = hosts.map(lambda host: f"http://{host}")
paths = st.from_regex(r"/[a-zäé \"\\'$*]{1,12}\.log", fullmatch=True)
topics = st.from_regex(r"[A-Za-z0-9._][A-Za-z0-9._-]{0,12}", fullmatch=True)
FLAGS = st.fixed_dictionaries(
    {
        "cluster": names,
        "lake": names,
        "bootstrap-servers": st.lists(hosts, max_size=3).map(",".join),
        "security": st.sampled_from(["", "PLAINTEXT", "SSL", "SASL_SSL", "SASL_PLAINTEXT"]),
        "ca-file": st.sampled_from(["", "/etc/ca.pem"]),
        "password-file": st.sampled_from(["", "/run/secret"]),
        "logs": st.lists(paths, max_size=3),
        "zone": st.sampled_from(["UTC", "Europe/Berlin", "Asia/Tokyo"]),
        "prometheus": st.just("") | urls,
        "scrape": st.lists(urls, max_size=2),
        "audited": st.lists(topics, max_size=2),
        "alertmanager": st.lists(urls, max_size=2),
    }
)
WITHOUT = {
    "bootstrap-servers": "--no-kafka",
    "logs": "--no-logs",
    "audited": "--no-audits",
    "alertmanager": "--no-alertmanager",
}


def words(flags: dict) -> list[str]:
    if not flags["bootstrap-servers"]:
        flags["audited"] = []
    said = []
    for name, value in flags.items():
        for each in value if isinstance(value, list) else [value]:
            said += [f"--{name}", each] if each else []
        if not value and name in WITHOUT:
            said.append(WITHOUT[name])
    if not flags["prometheus"] and not flags["scrape"]:
        said.append("--no-metrics")
    if flags["security"].startswith("SASL"):
        said += ["--sasl-mechanism", "SCRAM-SHA-512", "--sasl-username", "acktrail"]
    return said


def of_kind(loaded: Settings, kind: type) -> list:
    return [source for source in loaded.sources if isinstance(source, kind)]


@settings(max_examples=60, deadline=None)
@given(FLAGS)
def test_what_is_written_equals_what_was_asked(flags):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "acktrail.toml"
        done = CliRunner().invoke(main, ["init", str(file), *words(flags)])
        assert done.exit_code == 0, done.output
        got = load(file, [], {}).settings
        policy = read_policy(Path(got.alerts.policy or ""))
    assert (got.cluster, got.lake.uri) == (flags["cluster"], flags["lake"])
    assert (got.kafka.bootstrap_servers or "") == flags["bootstrap-servers"]
    if flags["bootstrap-servers"]:
        wanted = flags["security"] or ("SSL" if flags["ca-file"] else "PLAINTEXT")
        assert got.kafka.client.get("security.protocol", "PLAINTEXT") == wanted
        assert got.kafka.client.get("ssl.ca.location", "") == flags["ca-file"]
        assert got.kafka.secret_files.get("sasl.password", "") == flags["password-file"]
        assert ("sasl.username" in got.kafka.client) == wanted.startswith("SASL")
    logs = of_kind(got, LogFilesSource)
    assert [(list(s.paths), s.zone) for s in logs] == (
        [(flags["logs"], flags["zone"])] if flags["logs"] else []
    )
    metrics = [s.url for s in of_kind(got, PrometheusSource)]
    assert metrics == [flags["prometheus"]] * bool(flags["prometheus"])
    assert [t for s in of_kind(got, ScrapeSource) for t in s.targets] == flags["scrape"]
    assert [t for s in of_kind(got, LogScanSource) for t in s.topics] == flags["audited"]
    assert len(of_kind(got, ClusterStateSource)) == bool(flags["bootstrap-servers"])
    assert list(got.alerts.alertmanager_urls) == flags["alertmanager"]
    given_kinds = {"logs": flags["logs"], "metrics": metrics or flags["scrape"]}
    given_kinds["audits"] = flags["audited"]
    assert policy.not_collected == tuple(k for k, held in given_kinds.items() if not held)


NONE = ["--no-kafka", "--no-logs", "--no-metrics", "--no-audits", "--no-alertmanager"]
FEW = ["--cluster", "a", "--lake", "l", *NONE]


def test_the_commented_sources_are_right_too(tmp_path):
    file = tmp_path / "acktrail.toml"
    assert CliRunner().invoke(main, ["init", str(file), *FEW]).exit_code == 0
    lines = file.read_text().splitlines()
    code = [line.removeprefix("# ") for line in lines if "=" in line or "[" in line]
    text = "\n".join(line for line in code if not line.startswith(("Settings", "Every", "`")))
    tree = tomllib.loads(text)
    # [alerts] stands before the last sources: what is uncommented must not slip into it.
    got = Settings.model_validate(tree)
    kinds = {source.kind for source in got.sources}
    assert kinds >= {"log_files", "prometheus", "cluster_state", "log_scan", "log_topic"}


REFUSED = [
    ("no terminal, few flags", ["--cluster", "a"], "--lake\n  --bootstrap-servers or --no-kafka"),
    ("logs without a zone", [*FEW[:4], *NONE[:1], "--logs", "/a", *NONE[2:]], "  --zone"),
    ("both", [*FEW, "--logs", "/a"], "--logs and --no-logs exclude each other"),
    ("audits without brokers", [*FEW[:-2], "--audited", "a"], "--audited needs"),
    ("SASL without a user", [*FEW, "--security", "SASL_SSL"], "SASL needs --sasl-mechanism"),
    ("a wrong zone", [*FEW[:4], *NONE[:1], "--logs", "/a", "--zone", "Berlin", *NONE[2:]],
     "sources.0.zone = 'Berlin': there is no time zone Berlin. Did you mean Europe/Berlin?"),
    ("a relative glob", [*FEW[:4], *NONE[:1], "--logs", "a", "--zone", "UTC", *NONE[2:]],
     "sources.0.paths.0 = 'a': write an absolute path"),
]  # fmt: skip


@pytest.mark.parametrize(("flags", "said"), [c[1:] for c in REFUSED], ids=[c[0] for c in REFUSED])
def test_nothing_is_written_for_wrong_flags(tmp_path, flags, said):
    file = tmp_path / "acktrail.toml"
    done = CliRunner().invoke(main, ["init", str(file), *flags])
    assert done.exit_code == 2
    assert said in done.stderr
    assert not list(tmp_path.iterdir())


def test_files_that_exist_are_kept_without_force(tmp_path):
    (tmp_path / "policy.yaml").write_text("window: 1h\n")
    file = tmp_path / "acktrail.toml"
    kept = CliRunner().invoke(main, ["init", str(file), *FEW])
    assert (kept.exit_code, file.exists()) == (2, False)
    assert "--force overwrites them" in kept.stderr
    assert CliRunner().invoke(main, ["init", str(file), *FEW, "--force"]).exit_code == 0
    assert "not_collected" in (tmp_path / "policy.yaml").read_text()


def test_on_a_terminal_it_asks(tmp_path):
    """A real terminal: the questions one after another, an empty answer for what there is not."""
    ours, theirs = pty.openpty()
    asked = subprocess.Popen(
        [sys.executable, "-m", "acktrail", "init", str(tmp_path / "a.toml")],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TZ": "Asia/Tokyo"},
        stdin=theirs, stdout=theirs, stderr=theirs, cwd=tmp_path,
    )  # fmt: skip
    os.close(theirs)
    lines = ["prod", "", "kafka-1:9092", "/var/log/*.log", "", "http://a:7071/m", "", "", ""]
    os.write(ours, "".join(f"{line}\n" for line in lines).encode())
    assert asked.wait(60) == 0
    os.close(ours)
    got = load(tmp_path / "a.toml", [], {}).settings
    assert (got.cluster, got.lake.uri) == ("prod", str(tmp_path / "lake"))
    (logs, scrape, state) = got.sources
    assert (logs.zone, scrape.targets, state.kind) == (  # type: ignore[union-attr]
        "Asia/Tokyo", ("http://a:7071/m",), "cluster_state",
    )  # fmt: skip
    assert read_policy(Path(got.alerts.policy or "")).not_collected == ("audits",)
