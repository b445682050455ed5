"""Against a real Prometheus with seven days of samples: none missing, none twice."""

from __future__ import annotations

import json
import math
import subprocess

import pytest

from acktrail.contracts.bronze import METRIC_SAMPLES
from acktrail.errors import ConfigError, PartialResponse, SourceUnavailable
from acktrail.lake import Lake
from acktrail.settings.sources import PrometheusSource
from ingest.http_access import HttpAccess
from ingest.registry import SourceContext
from ingest.sources.prometheus import PrometheusSamples
from ingest.sources.prometheus_api import Prometheus, selector
from tests.integration.servers import FaultyProxy, PrometheusServer, free_port

DAYS, STEP_S = 7, 30
START_MS = 1_767_225_600_000
END_MS = START_MS + DAYS * 86_400_000
NOW = END_MS / 1000 + 60
HARD = 'orders "eu"\\n} or up{'
SERIES = [
    ("kafka_producer_producer_metrics_record_error_total", 'client_id="a",instance="app-1:9404"'),
    ("kafka_producer_record_retry_total", 'clientId="b",instance="app-2:9404"'),
    ("kafka_server_BrokerTopicMetrics_Count", 'name="FailedProduceRequestsPerSec",instance="b1"'),
    ("kafka_server_BrokerTopicMetrics_Count", 'name="BytesInPerSec",instance="b1"'),
]


def value(series: int, n: int) -> float:
    return math.nan if series == 1 and n % 1000 == 7 else float(n * (series + 1))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    lines = []
    for i, (name, labels) in enumerate(SERIES):
        lines.append(f"# TYPE {name} unknown") if i != 3 else None
        for n in range(1, DAYS * 86_400 // STEP_S + 1):
            # Real scrapes are not on a grid: a phase per series, in milliseconds.
            at = START_MS + n * STEP_S * 1000 - 137 * i
            lines.append(f"{name}{{{labels}}} {value(i, n)} {at / 1000:.3f}")
    lines.append("# EOF\n")
    made = PrometheusServer(tmp_path_factory.mktemp("prometheus"), free_port())
    made.load("\n".join(lines))
    made.start()
    yield made
    made.stop()


@pytest.fixture
def proxy(server):
    made = FaultyProxy(server.port)
    yield made
    made.close()


def source(url: str, **more) -> PrometheusSamples:
    settings = PrometheusSource(
        kind="prometheus",
        name="prom",
        url=url,
        history_s=DAYS * 86_400 + 30,
        window_s=more.pop("window_s", 86_400),
        **more,
    )
    return PrometheusSamples(settings, SourceContext("test"), now=lambda: NOW)


def drain(made: PrometheusSamples, lake: Lake) -> None:
    made.open(lake)
    for batch in made.poll(600):
        assert batch.received == batch.rows.num_rows + sum(batch.dropped.values())
        lake.append(batch.table, batch.rows, batch.positions)


def expected() -> set[tuple[str, int, str]]:
    return {
        (SERIES[i][0], START_MS + n * STEP_S * 1000 - 137 * i, str(value(i, n)))
        for i in range(3)
        for n in range(1, DAYS * 86_400 // STEP_S + 1)
    }


def stored(lake: Lake) -> list[tuple[str, int, str]]:
    rows = lake.read(METRIC_SAMPLES, columns=["metric", "at", "value"])
    times = [round(at.timestamp() * 1000) for at in rows.column("at").to_pylist()]
    texts = [str(v) for v in rows.column("value").to_pylist()]
    return list(zip(rows.column("metric").to_pylist(), times, texts, strict=True))


def test_seven_days_none_missing_none_twice(server, tmp_path):
    lake = Lake(tmp_path)
    made = source(server.url)
    drain(made, lake)
    got = stored(lake)
    assert len(got) == len(set(got)) == 3 * DAYS * 86_400 // STEP_S
    assert set(got) == expected()
    assert made.health().notes == (), "a healthy server lacks most of the names that we know"


ABSENT = [
    # case, label values to match, metrics named, seconds read, the one note's beginning
    ("one side is not scraped", {"instance": "b1"}, None, 3600, "No producer metric was found."),
    ("named, by its rate", {}, ("record-error-rate", "record-error-total"), 3600, None),
    (
        "named and not there",
        {},
        ("record-error-total", "metadata-age"),
        3600,
        "No series for metad",
    ),
    ("read too little to know", {"instance": "b1"}, None, 120, None),
]


@pytest.mark.parametrize(
    ("match", "named", "seconds", "said"), [a[1:] for a in ABSENT], ids=[a[0] for a in ABSENT]
)
def test_what_is_missing_is_noted_where_a_person_can_act(
    server, tmp_path, match, named, seconds, said
):
    wanted = {} if named is None else {"metrics": named}
    settings = PrometheusSource(
        kind="prometheus", name="prom", url=server.url, history_s=seconds, match=match, **wanted
    )
    made = PrometheusSamples(settings, SourceContext("test"), now=lambda: NOW)
    drain(made, Lake(tmp_path))
    assert [note.startswith(said or "") for note in made.health().notes] == [True] * bool(said)


def test_nothing_is_called_missing_while_the_history_is_read(server, tmp_path):
    settings = PrometheusSource(
        kind="prometheus", name="prom", url=server.url, history_s=(DAYS + 1) * 86_400
    )
    made = PrometheusSamples(settings, SourceContext("test"), now=lambda: NOW)
    made.open(Lake(tmp_path))
    empty = 0
    for batch in made.poll(600):
        empty += batch.rows.num_rows == 0
        assert made.health().notes == ()
    assert empty > 1, "the history began before the first scrape"
    assert made.health().notes == ()


def test_killed_between_any_two_commits_and_opened_again(server, tmp_path):
    lake = Lake(tmp_path)
    for keep in (2, 0, 3, 99):
        made = source(server.url)
        made.open(lake)
        for n, batch in enumerate(made.poll(600)):
            if n >= keep:
                break  # asked for and never committed: the process died
            lake.append(batch.table, batch.rows, batch.positions)
        made.close()
    got = stored(lake)
    assert len(got) == len(set(got))
    assert set(got) == expected()


def test_a_range_query_on_a_grid_has_every_point_once(server):
    asked = Prometheus(server.url, HttpAccess())
    only = selector("kafka_producer_record_retry_total", {})
    (series,) = asked.on_grid(only, START_MS + 600_000, END_MS, 15)
    times = [at for at, _ in series.samples]
    assert times == list(range(START_MS + 615_000, END_MS + 1, 15_000))
    asked.close()


def _status(code):
    return lambda _status, _body: (code, b'{"status": "error", "error": "the reason is here"}')


def _warned(_status, body):
    return 200, json.dumps({**json.loads(body), "warnings": ["store-2 is not reachable"]}).encode()


def _partial(_status, body):
    return 200, json.dumps({**json.loads(body), "isPartial": True}).encode()


FAULTS = [
    # what the way to the server does             error
    ("503 for ever", _status(503), SourceUnavailable),
    ("429 for ever", _status(429), SourceUnavailable),
    ("warnings in the answer", _warned, PartialResponse),
    ("isPartial in the answer", _partial, PartialResponse),
    ("cut half way", lambda _s, _b: None, SourceUnavailable),
    ("half the JSON as if whole", lambda _s, b: (200, b[: len(b) // 2]), SourceUnavailable),
    ("an HTML page", lambda _s, _b: (200, b"<html>login</html>"), SourceUnavailable),
    ("JSON of another kind", lambda _s, _b: (200, b'{"data": null}'), SourceUnavailable),
    ("no data without success", lambda _s, _b: (200, b'{"status": "error"}'), SourceUnavailable),
    ("credentials refused", _status(401), ConfigError),
    ("not a Prometheus", _status(404), ConfigError),
]


@pytest.mark.parametrize(("fault", "error"), [f[1:] for f in FAULTS], ids=[f[0] for f in FAULTS])
def test_a_fault_is_an_error_and_never_short_data(proxy, tmp_path, fault, error):
    lake = Lake(tmp_path)
    proxy.fault = fault
    made = source(proxy.url, window_s=86_400 * 4)
    with pytest.raises(error) as raised:
        drain(made, lake)
    assert "%7B" not in str(raised.value), "a query in the form of an address"
    assert len(str(raised.value)) < 200
    assert "HTTP 503" not in str(raised.value) or "(the reason is here)" in str(raised.value)
    assert lake.position(METRIC_SAMPLES, made.app_id) is None
    proxy.fault = None
    drain(made, lake)
    assert len(stored(lake)) == len(expected())


def test_a_503_that_passes_is_retried_at_once(proxy, tmp_path):
    failures = iter([True, True])
    proxy.fault = lambda s, b: (503, b"starting") if next(failures, False) else (s, b)
    lake = Lake(tmp_path)
    drain(source(proxy.url, window_s=86_400 * 8), lake)
    assert len(stored(lake)) == len(expected())


def test_a_slow_server_is_a_timeout(proxy, tmp_path):
    proxy.delay_s = 1.5
    with pytest.raises(SourceUnavailable, match=": timed out\\. Check"):
        drain(source(proxy.url, timeout_s=0.3), Lake(tmp_path))


def test_a_restart_in_the_middle_loses_and_doubles_nothing(server, tmp_path):
    lake = Lake(tmp_path)
    made = source(server.url)
    made.open(lake)
    batches = iter(made.poll(600))
    for _ in range(3):
        batch = next(batches)
        lake.append(batch.table, batch.rows, batch.positions)
    server.stop()
    with pytest.raises(SourceUnavailable) as down:
        next(batches)
    assert str(down.value) == (
        f"No answer from Prometheus at {server.url}: connection refused. "
        "Check `url` of the source, and that the server runs."
    )
    server.start()
    drain(made, lake)
    assert len(stored(lake)) == len(expected())


def test_too_many_samples_makes_the_windows_shorter(tmp_path, server):
    second = PrometheusServer(server.directory, free_port(), ("--query.max-samples=12000",))
    server.stop()
    second.start()
    try:
        lake = Lake(tmp_path)
        drain(source(second.url, window_s=86_400 * 7), lake)
        assert len(stored(lake)) == len(expected())
    finally:
        second.stop()
        server.start()


def test_label_values_cannot_inject(server):
    asked = Prometheus(server.url, HttpAccess())
    for hard in (HARD, '"', "\\", '\\"} or {__name__=~".+"} #', "a\nb", "ü\0"):
        assert asked.raw(selector(".+", {"client_id": hard}), START_MS, END_MS) == []
    assert len(asked.raw(selector(".+", {"client_id": "a"}), START_MS, END_MS)) == 1
    with pytest.raises(ConfigError):
        selector(".+", {'x="1"} or {y': "z"})
    asked.close()


def test_credentials_are_sent_and_never_shown(proxy, tmp_path):
    token = tmp_path / "token"
    token.write_text("first-secret\n")
    made = source(proxy.url, bearer_token_file=str(token))
    drain(made, Lake(tmp_path / "lake"))
    assert proxy.requests[-1][1]["Authorization"] == "Bearer first-secret"
    basic = source(proxy.url, username="u", password="hidden-secret", window_s=86_400 * 8)
    drain(basic, Lake(tmp_path / "other"))
    assert proxy.requests[-1][1]["Authorization"].startswith("Basic ")
    assert "secret" not in repr(basic._settings) + repr(basic._server._access)
    proxy.fault = _status(401)
    with pytest.raises(ConfigError) as refused:
        drain(basic, Lake(tmp_path / "third"))
    assert "secret" not in str(refused.value)


def test_tls_is_verified_unless_told_otherwise(server, tmp_path):
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=prometheus", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    web = tmp_path / "web.yml"
    web.write_text(f"tls_server_config: {{cert_file: {certificate}, key_file: {key}}}\n")
    flags = (f"--web.config.file={web}",)
    secure = PrometheusServer(server.directory, free_port(), flags, scheme="https")
    server.stop()
    secure.start()
    try:
        whole = {"window_s": 86_400 * 8}
        with pytest.raises(ConfigError, match="ca_file"):
            drain(source(secure.url, **whole), Lake(tmp_path / "refused"))
        for name, how in (("ca", {"ca_file": str(certificate)}), ("off", {"verify_tls": False})):
            lake = Lake(tmp_path / name)
            drain(source(secure.url, **whole, **how), lake)
            assert len(stored(lake)) == len(expected())
    finally:
        secure.stop()
        server.start()
