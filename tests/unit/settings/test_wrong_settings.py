"""For every setting there is: a mistyped key and a value of a wrong type are refused by name.

The laws walk the model, so that a new setting cannot be forgotten.
"""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Iterator
from typing import Any, NamedTuple, get_args, get_origin

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, SecretStr

from acktrail.cli import main
from acktrail.errors import ConfigError
from acktrail.settings import Settings, load
from acktrail.settings.alerts import AlertSettings
from acktrail.settings.model import AliasRule
from acktrail.settings.sources import SourceSettings

SECRET = "hunter2"
NEEDED: dict[str, dict[str, Any]] = {
    # kind of source: what it must have
    "log_files": {"paths": ["/a.log"]},
    "log_topic": {"topics": ["logs"], "shape": "vector"},
    "prometheus": {"url": "http://p:9090"},
    "scrape": {"targets": ["http://a:7071"]},
    "verifiable": {"paths": ["/a"]},
    "librdkafka_stats": {"paths": ["/a"]},
    "log_scan": {"topics": ["orders"]},
    "cluster_state": {},
    "audit_topic": {},
}


class Place(NamedTuple):
    """One setting: where it stands, its name and its type."""

    path: str
    name: str
    kind: Any
    valid: dict[str, Any]

    def tree(self, name: str, value: Any) -> dict[str, Any]:
        """Valid settings, but for *value* at *name* in this place."""
        inner = {**self.valid, name: value}
        if self.path.startswith("sources"):
            return {"sources": [inner]}
        if self.path.startswith("aliases"):
            return {"aliases": [inner]}
        return {self.path: inner} if self.path else inner


def places() -> Iterator[Place]:
    """Every setting of the model."""
    for name, field in Settings.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from (Place(name, n, f.annotation, {}) for n, f in inner.model_fields.items())
        yield Place("", name, inner, {})
    for member in get_args(get_args(SourceSettings)[0]):
        (tag,) = get_args(member.model_fields["kind"].annotation)
        valid = {"kind": tag, "name": "s", **NEEDED[tag]}
        yield from (Place("sources.0", n, f.annotation, valid)
                    for n, f in member.model_fields.items())  # fmt: skip
    alias = {"field": "path", "match": "a", "host": "b"}
    yield from (
        Place("aliases.0", n, f.annotation, alias) for n, f in AliasRule.model_fields.items()
    )


PLACES = list(places())
IDS = [f"{p.valid.get('kind', '')} {p.path}.{p.name}".strip() for p in PLACES]
EACH = pytest.mark.parametrize("place", PLACES, ids=IDS)


def toml(value: Any) -> str:
    """*value* as TOML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(toml(v) for v in value) + "]"
    return str(value) if isinstance(value, float) else json.dumps(value)


def said(tmp_path_factory, tree: dict[str, Any]) -> list[str]:
    """The lines with what is wrong with *tree*."""
    path = tmp_path_factory.mktemp("s") / "acktrail.toml"
    path.write_text("".join(f"{json.dumps(k)} = {toml(v)}\n" for k, v in tree.items()))
    with pytest.raises(ConfigError) as raised:
        load(path, [], {})
    head, *lines = str(raised.value).splitlines()
    assert head.endswith("are wrong:")
    return lines


def named(place: Place, name: str) -> str:
    return f"  {place.path}.{name}" if place.path else f"  {name}"


@EACH
def test_a_mistyped_key_is_refused_and_the_right_one_offered(place, tmp_path_factory):
    middle = len(place.name) // 2
    for typo in (place.name[:middle] + "x" + place.name[middle:], f"{place.name}s"):
        lines = said(tmp_path_factory, place.tree(typo, SECRET))
        found = [line for line in lines if line.startswith(f"{named(place, typo)}: there is no")]
        assert len(found) == 1, lines
        assert place.name in found[0].partition("Did you mean")[2]
        assert SECRET not in "".join(lines)


def accepts(kind: Any) -> set[type]:
    """The plain types a setting of type *kind* takes."""
    if get_origin(kind) is typing.Annotated:
        return accepts(get_args(kind)[0])
    if get_origin(kind) in (typing.Union, types.UnionType):
        return set().union(*(accepts(k) for k in get_args(kind))) - {type(None)}
    if get_origin(kind) is typing.Literal or kind is SecretStr:
        return {str}
    origin = get_origin(kind) or kind
    return {dict} if isinstance(origin, type) and issubclass(origin, BaseModel) else {origin}


WRONG: list[tuple[Any, set[type]]] = [
    # a value, and the types of settings it may be right for; an ACKTRAIL_* variable is a text
    ({"a": 1}, {dict}),
    ([1], set()),
    (True, {bool}),
    (7, {float, int, tuple}),
    (float("nan"), set()),
    (float("inf"), set()),
    (-1, set()),
    ("", {dict}),
    ("a b", {str, tuple}),
]


@EACH
def test_a_value_of_a_wrong_type_is_refused_by_name(place, tmp_path_factory):
    takes = accepts(place.kind)
    tried = 0
    for value, right_for in WRONG:
        if takes & right_for or _allowed(place, value, takes):
            continue
        tried += 1
        lines = said(tmp_path_factory, place.tree(place.name, value))
        start = "sources.0.kind" if place.name == "kind" else named(place, place.name).strip()
        assert any(line.strip().startswith(start) for line in lines), (value, lines)
        assert not any("Traceback" in line for line in lines)
    assert tried >= 3


def _allowed(place: Place, value: Any, takes: set[type]) -> bool:
    """What is right by the setting's own rule, whatever its type looks like."""
    if place.name == "broker" and isinstance(value, int | str):
        return True
    if value == "":  # texts that may be empty; lists from ACKTRAIL_* variables
        return (
            place.name in {"alertmanager_urls", "group", "match", "client_id", "host"}
            or bool(takes & {SecretStr})
            or place.name in {"alertmanager_token", "webhook_secret", "bearer_token", "password"}
        )
    return value == 7 and tuple in takes


CASES = [
    # what, settings, the line
    ("a zone", 'sources = [{kind="log_files", name="a", paths=["/a"], zone="Europe/Berln"}]',
     "sources.0.zone = 'Europe/Berln': there is no time zone Europe/Berln. Did you mean "
     "Europe/Berlin"),
    ("a city", 'sources = [{kind="log_files", name="a", paths=["/a"], zone="Berlin"}]',
     "sources.0.zone = 'Berlin': there is no time zone Berlin. Did you mean Europe/Berlin?"),
    ("a directory of zones", 'sources = [{kind="log_topic", name="a", topics=["a"], '
     'shape="vector", zone="Europe"}]', "sources.0.zone = 'Europe': there is no time zone Europe."),
    ("a relative path", 'sources = [{kind="log_files", name="a", paths=["a/*.log"]}]',
     "sources.0.paths.0 = 'a/*.log': write an absolute path"),
    ("a home", 'sources = [{kind="verifiable", name="a", paths=["~/a"]}]',
     "sources.0.paths.0 = '~/a': write an absolute path: an agent may be started in any "
     "directory, and ~ is not replaced"),
    ("no path", 'sources = [{kind="log_files", name="a", paths=[]}]',
     "sources.0.paths: it is empty"),
    ("an empty path", 'sources = [{kind="log_files", name="a", paths=[" "]}]',
     "sources.0.paths.0 = ' ': the path is empty"),
    ("braces", 'sources = [{kind="log_files", name="a", paths=["/{a,b}.log"]}]',
     "sources.0.paths.0 = '/{a,b}.log': {a,b} does not match anything: list both paths"),
    ("an open bracket", 'sources = [{kind="log_files", name="a", paths=["/a[0-9.log"]}]',
     "sources.0.paths.0 = '/a[0-9.log': the [ is never closed"),
    ("two of one name", 'sources = [{kind="log_files", name="a", paths=["/a"]}, '
     '{kind="cluster_state", name="a"}]', "the settings: sources: two have the name a."),
    ("an unknown kind", 'sources = [{kind="log_file", name="a"}]',
     "sources.0.kind: there is no kind 'log_file'. Did you mean log_files"),
    ("no kind", 'sources = [{name="a"}]', "sources.0.kind: it is required"),
    ("a required setting", 'sources = [{kind="prometheus", name="a"}]',
     "sources.0.url: it is required"),
    ("a metric", 'sources = [{kind="prometheus", name="a", url="http://a", '
     'metrics=["record-eror-total"]}]', "sources.0.metrics: there is no metric "
     "'record-eror-total'. Did you mean record-error-total"),
    ("a label", 'sources = [{kind="prometheus", name="a", url="http://a", match={"a-b"="c"}}]',
     "sources.0.match: 'a-b' is not the name of a label"),
    ("not an address", 'sources = [{kind="scrape", name="a", targets=["broker:7071"]}]',
     "sources.0.targets.0 = 'broker:7071': not an http:// or https:// address"),
    ("a port", 'sources = [{kind="prometheus", name="a", url="http://a:99999"}]',
     "sources.0.url = 'http://a:99999': not an address: Port out of range 0-65535"),
    ("a password in an address", 'alerts.webhook_url = "https://me:hunter2@a"',
     "alerts.webhook_url: credentials in the address"),
    ("a token nobody is sent", 'alerts.alertmanager_token = "hunter2"',
     "alerts: `alertmanager_token` is set and `alertmanager_urls` is not"),
    ("a password nobody has", 'sources = [{kind="scrape", name="a", targets=["http://a"], '
     'password="hunter2"}]', "sources.0: `password` is set and `username` is not"),
    ("an interval", "alerts.interval_s = -5", "alerts.interval_s = -5: Input should be greater"),
    ("servers", 'kafka.bootstrap_servers = "a:9092,b:port"',
     "kafka.bootstrap_servers = 'a:9092,b:port': 'b:port' is not host:port."),
    ("an address as server", 'kafka.bootstrap_servers = "http://a:9092"',
     "kafka.bootstrap_servers = 'http://a:9092': 'http://a:9092' is not host:port."),
    ("a topic", 'sources = [{kind="log_scan", name="a", topics=["or ders"]}]',
     "sources.0.topics.0 = 'or ders': it must match"),
    ("a key of librdkafka", '[kafka.client]\n"security.protocl" = "SSL"',
     'kafka.client."security.protocl": librdkafka has no such setting. Did you mean '
     "security.protocol"),
    ("a secret's key", '[kafka.secrets]\n"sasl.pasword" = "hunter2"',
     'kafka.secrets."sasl.pasword": librdkafka has no such setting. Did you mean sasl.password'),
    ("a secret file's key", '[kafka.secret_files]\n"sasl.pasword" = "/hunter2"',
     'kafka.secret_files."sasl.pasword": librdkafka has no such setting.'),
    ("a value of librdkafka", '[kafka.client]\n"security.protocol" = "TLS"',
     'kafka.client."security.protocol": librdkafka refuses it: Invalid value'),
    ("a number of librdkafka", '[kafka.client]\n"socket.timeout.ms" = "0"',
     'kafka.client."socket.timeout.ms": librdkafka refuses it'),
    ("a callback", '[kafka.client]\nerror_cb = "x"',
     'kafka.client."error_cb": librdkafka has no such setting.'),
    ("the servers twice", '[kafka.client]\n"bootstrap.servers" = "a:1"',
     'kafka.client."bootstrap.servers": librdkafka refuses it: set `kafka.bootstrap_servers`'),
    ("a setting of Spark", '[spark.conf]\n"sql.shuffle.partitions" = "2"',
     'spark.conf."sql.shuffle.partitions": it must match'),
    ("a master", '[spark]\nmaster = "localhost"', "spark.master = 'localhost': write local[*]"),
    ("a master without a port", '[spark]\nmaster = "spark://m"',
     "spark.master = 'spark://m': write"),
    ("a memory", '[spark]\nexecutor_memory = "4"',
     "spark.executor_memory = '4': write a size with its unit: 512m, 4g"),
    ("a name of an archive", '[spark]\nenvironment = "/e.tar.gz#env"',
     "spark.environment = '/e.tar.gz#env': write the archive alone, without #name"),
    ("the master among Spark's own", '[spark.conf]\n"spark.master" = "yarn"',
     'spark.conf."spark.master": set `spark.master`'),
    ("another zone", '[spark.conf]\n"spark.sql.session.timeZone" = "CET"',
     'spark.conf."spark.sql.session.timeZone": it is always UTC: the lake\'s tables depend on it'),
    ("a deploy mode", '[spark.conf]\n"spark.submit.deployMode" = "cluster"',
     'spark.conf."spark.submit.deployMode": the driver is this process'),
    ("a secret among Spark's own", '[spark.conf]\n"spark.hadoop.fs.s3a.secret.key" = "hunter2"',
     'spark.conf."spark.hadoop.fs.s3a.secret.key": settings of Spark are on the command line'),
    ("an address of metrics", '[agent]\nmetrics_address = "9400"',
     "agent.metrics_address = '9400': write host:port"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_a_wrong_value_says_what_to_write(tmp_path, text, line):
    path = tmp_path / "acktrail.toml"
    path.write_text(text)
    done = CliRunner(env={"ACKTRAIL_CONFIG": None}).invoke(main, ["doctor", "--config", str(path)])
    assert (done.exit_code, done.stdout) == (2, "")
    head, told = done.stderr.splitlines()
    assert head == f"ConfigError: The settings ({path}, ACKTRAIL_*, --set) are wrong:"
    assert told.startswith(f"  {line}")
    assert SECRET not in told


@pytest.mark.parametrize(("variable", "meant"), [
    ("ACKTRAIL_LAKE_URI", "lake.uri"),
    ("ACKTRAIL_KAFKA__BOOTSTRAP_SERVER", "bootstrap_servers"),
    ("ACKTRAIL_CLUSTR", "cluster"),
])  # fmt: skip
def test_a_mistyped_variable_is_refused(tmp_path, monkeypatch, variable, meant):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=f"there is no such setting. Did you mean {meant}"):
        load(None, [], {variable: "x"})


TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from([*Settings.model_fields, "x"]), TREES, max_size=3))
def test_whatever_the_settings_hold_is_taken_or_explained(tree):
    """No traceback comes of any shape of settings."""
    from pydantic import ValidationError

    from acktrail.settings.problems import problem_lines

    try:
        Settings.model_validate(tree)
    except ValidationError as error:
        lines = problem_lines(error, Settings)
        assert lines
        assert all(line.strip() for line in lines)


def test_every_receiver_is_in_the_laws():
    assert {p.name for p in PLACES if p.path == "alerts"} == set(AlertSettings.model_fields)
