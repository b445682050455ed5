"""JMX values as an exporter and as Jolokia say them."""

from __future__ import annotations

import itertools
import math
import os
import urllib.request
from contextlib import contextmanager

from acktrail import artifacts
from acktrail.contracts.bronze import METRIC_SAMPLES
from acktrail.lake import Lake
from acktrail.metrics.names import METRICS, read_name
from acktrail.settings.sources import ScrapeSource
from ingest.registry import build_source
from ingest.sources.exposition import read_text
from lab.steps import wait_until
from tests.integration.kafka_nodes import around, drain
from tests.integration.servers import free_port


def direct(port: int) -> dict[tuple, float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        text = answer.read().decode()
    return {(s.metric, s.labels): s.value for s in read_text(text, METRICS).samples}


@contextmanager
def with_jolokia():
    """Every JVM started within carries a Jolokia agent on the port given."""
    (jar,) = artifacts.resolve("jolokia").iterdir()
    port = free_port()
    os.environ["JAVA_TOOL_OPTIONS"] = f"-javaagent:{jar}=port={port},host=127.0.0.1"
    try:
        yield port
    finally:
        del os.environ["JAVA_TOOL_OPTIONS"]


def jolokia_says_what_the_exporter_says(
    nodes, port, exporter_port, directory, work=lambda: None
) -> None:
    """Both read the same beans, under other names: the same canonical values.

    *work* gives the JVM something to count: it registers its beans as they are first needed.
    """
    target = f"http://127.0.0.1:{port}/jolokia"
    settings = ScrapeSource(
        kind="scrape", name="jolokia", targets=(target,), format="jolokia", timeout_s=60
    )
    rounds = itertools.count()

    def compared() -> int:
        work()
        lake = Lake(directory / f"jolokia-{port}-{next(rounds)}")
        before = canonical(direct(exporter_port))
        drain(build_source(settings, around(nodes)), lake)
        after = canonical(direct(exporter_port))
        rows = lake.read(METRIC_SAMPLES).to_pylist()
        assert [r["scrape_error"] for r in rows if r["scrape_error"]] == []
        got = canonical({(r["metric"], tuple(sorted(r["labels"]))): r["value"] for r in rows})
        both = [key for key in got if key in before and key in after]
        for key in both:
            if key[0].endswith("-total"):
                assert before[key] <= got[key] <= after[key], key
        return len(both)

    assert wait_until(lambda: compared() > 12, 120, pause=1)


def canonical(samples: dict[tuple, float]) -> dict[tuple, float]:
    """Canonical name, and the labels that tell series apart, to value."""
    found = {}
    for (metric, labels), value in samples.items():
        named = dict(labels)
        meaning = read_name(metric, named)
        if meaning is not None and not math.isnan(value):
            kept = ("topic", "partition", "request", "error", "client_id", "node_id")
            place = tuple(named.get(label) for label in kept)
            found[meaning.name, meaning.scope, place] = value
    return found
