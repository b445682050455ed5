"""`producer_reliability` counts the lines of expiries, and the batches they are of."""

# ruff: noqa: E501 - tables.

from __future__ import annotations

from pipelines.gold.producer_reliability import _lines

CASES = [
    # kind, event_key
    ("expired", "a"),
    ("expired", "a"),
    ("expired", "b"),
    ("retry", "c"),
]


def test_a_batch_that_each_of_its_records_tells_of_is_one(spark):
    columns = "cluster string, client_id string, topic string, hour string, kind string, event_key string, attempts_left long"
    rows = [("c", "till", "rates", "2026-01-31T07", kind, key, None) for kind, key in CASES]
    counted = _lines(spark.createDataFrame(rows, columns)).collect()
    assert [(r.expired_lines, r.expired_batches, r.retry_lines) for r in counted] == [(3, 2, 1)]
