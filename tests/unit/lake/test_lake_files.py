"""Data files: what the log says of them is true, so that readers may skip by it."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acktrail.contracts.arrow import rows
from acktrail.contracts.bronze import CLUSTER_CONFIGS, LOG_RECORDS, METRIC_SAMPLES
from acktrail.crashpoints import VARIABLE
from acktrail.lake import Lake, Position
from acktrail.lake.data_files import LONGEST_BOUND

NOW = datetime(2026, 1, 31, 7, tzinfo=UTC)


def sample(day: int, value: float, metric: str = "m", micros: int = 0) -> dict[str, object]:
    return {
        "cluster": "c", "source": "s", "metric": metric, "series": "x", "value": value,
        "at": NOW + timedelta(microseconds=micros), "read_at": NOW, "day": f"2026-01-{day:02}",
    }  # fmt: skip


SAMPLES = st.lists(
    st.builds(
        sample,
        st.integers(1, 3),
        st.floats(),
        st.text(max_size=LONGEST_BOUND + 2),
        st.integers(-(10**15), 10**15),
    ),
    max_size=6,
)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(batches=st.lists(SAMPLES, max_size=3), bound=st.floats(allow_nan=False))
def test_a_filtered_read_is_a_filter_of_the_whole(tmp_path_factory, batches, bound):
    """Bounds that were wrong would hide rows."""
    lake = Lake(tmp_path_factory.mktemp("lake"))
    for batch in batches:
        lake.append(METRIC_SAMPLES, rows(METRIC_SAMPLES, batch))
    everything = [row for batch in batches for row in batch]
    filters = [
        (ds.field("value") >= bound, lambda row: row["value"] >= bound),
        (ds.field("value") < bound, lambda row: row["value"] < bound),
        (ds.field("at") > NOW, lambda row: row["at"] > NOW),
        (ds.field("metric") <= "m", lambda row: row["metric"].encode() <= b"m"),
        (ds.field("day") == "2026-01-02", lambda row: row["day"] == "2026-01-02"),
        (ds.field("instance").is_null(), lambda _row: True),
    ]
    for where, wanted in filters:
        found = lake.read(METRIC_SAMPLES, where, ["day", "at", "metric"]).to_pylist()
        kept = [row for row in everything if wanted(row)]
        assert _keys(found) == _keys(kept), str(where)


def _keys(found) -> list[tuple]:
    return sorted((row["day"], row["at"], row["metric"]) for row in found)


def _added(lake: Lake, version: int) -> list[dict]:
    log = Path(lake.path(METRIC_SAMPLES)) / "_delta_log" / f"{version:020}.json"
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    return [entry["add"] for entry in entries if "add" in entry]


def test_one_file_per_partition_with_rows_nulls_and_bounds(tmp_path):
    lake = Lake(tmp_path)
    listed = [sample(1, math.nan), sample(2, -1.0, micros=7), sample(2, 3.5, "n" * 99)]
    version = lake.append(METRIC_SAMPLES, rows(METRIC_SAMPLES, listed))
    first, second = sorted(_added(lake, version), key=lambda add: add["path"])
    assert (first["partitionValues"], second["partitionValues"]) == (
        {"day": "2026-01-01"},
        {"day": "2026-01-02"},
    )
    about = json.loads(second["stats"])
    assert about["numRecords"] == 2
    assert (about["nullCount"]["value"], about["nullCount"]["instance"]) == (0, 2)
    assert (about["minValues"]["value"], about["maxValues"]["value"]) == (-1.0, 3.5)
    assert "value" not in json.loads(first["stats"])["minValues"], "NaN lies between no bounds"
    assert about["maxValues"]["at"] == "2026-01-31T07:00:00.000007Z"
    assert about["maxValues"]["metric"] == "n" * (LONGEST_BOUND - 1) + "o"
    assert second["size"] == (Path(lake.path(METRIC_SAMPLES)) / second["path"]).stat().st_size


def test_the_log_is_summed_up_often_and_keeps_positions(tmp_path):
    lake = Lake(tmp_path)
    lake.append(METRIC_SAMPLES, rows(METRIC_SAMPLES, []), [Position("quiet", None, 7)])
    for number in range(45):
        move = Position("busy", number or None, number + 1)
        lake.append(METRIC_SAMPLES, rows(METRIC_SAMPLES, [sample(1, number)]), [move])
    log = Path(lake.path(METRIC_SAMPLES)) / "_delta_log"
    assert len(list(log.glob("*.checkpoint.parquet"))) == 2
    standing = Lake(tmp_path).standing(METRIC_SAMPLES)
    assert (standing.of("quiet"), standing.of("busy"), standing.of("nobody")) == (7, 45, None)
    assert lake.read(METRIC_SAMPLES).num_rows == 45


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_an_object_store_is_written_the_same_way(tmp_path, scheme):
    """A URI goes through delta-rs's own store, a path through Arrow's files."""
    lake = Lake(f"{scheme}{tmp_path}")
    batch = rows(METRIC_SAMPLES, [sample(1, 1.0), sample(2, 2.0)])
    lake.append(METRIC_SAMPLES, batch, [Position("s", None, 1)])
    assert Lake(tmp_path).read(METRIC_SAMPLES).num_rows == 2
    assert Lake(f"{scheme}{tmp_path}").position(METRIC_SAMPLES, "s") == 1


_DIES = """
import sys
from acktrail.contracts.arrow import rows
from acktrail.lake import Lake, Position
from tests.unit.lake.test_lake_files import METRIC_SAMPLES, sample
lake = Lake(sys.argv[1])
for number in range(3):
    lake.append(
        METRIC_SAMPLES, rows(METRIC_SAMPLES, [sample(1, number)]),
        [Position("s", number or None, number + 1)],
    )
"""


def test_a_crash_between_the_files_and_the_commit_leaves_neither_rows_nor_position(tmp_path):
    died = subprocess.run(
        [sys.executable, "-c", _DIES, str(tmp_path)],
        env={
            **os.environ,
            VARIABLE: "lake.files_written#2",
            "PYTHONPATH": str(Path(__file__).parents[3]),
        },
        check=False,
        timeout=60,
    )
    assert died.returncode == 137
    lake = Lake(tmp_path)
    files = list(Path(lake.path(METRIC_SAMPLES)).rglob("part-*.parquet"))
    assert len(files) == 2, "the second file is there, and no commit names it"
    assert lake.read(METRIC_SAMPLES).column("value").to_pylist() == [0.0]
    assert lake.position(METRIC_SAMPLES, "s") == 1
    lake.append(METRIC_SAMPLES, rows(METRIC_SAMPLES, [sample(1, 1)]), [Position("s", 1, 2)])
    assert sorted(lake.read(METRIC_SAMPLES).column("value").to_pylist()) == [0.0, 1.0]


def test_a_grown_contract_adds_its_columns_and_says_so_once(tmp_path):
    from deltalake import write_deltalake

    from tests.unit.lake.test_lake import records

    lake = Lake(tmp_path)
    old = records(range(1)).drop_columns(["marker", "shipped_at"])
    write_deltalake(lake.path(LOG_RECORDS), old, partition_by=["day"])
    for number in (1, 2):
        lake.append(LOG_RECORDS, records(range(number, number + 1)))
    fresh = Lake(tmp_path)
    assert fresh.read(LOG_RECORDS).num_rows == 3
    assert fresh.version(LOG_RECORDS) == 3, "one commit for the columns, two for the rows"


def test_texts_with_line_ends_of_their_own_and_cut_in_a_filter(tmp_path: Path) -> None:
    lake, at = Lake(tmp_path), datetime(2026, 1, 31, tzinfo=UTC)
    names = ["two\u2028lines", "𝕏" * 50, "\x1c\x85"]
    records = [
        {
            "cluster": "c", "source": "s", "entity_kind": "topic", "entity": name, "at": at,
            "settings": [], "read_at": at, "day": "2026-01-31",
        }
        for name in names
    ]  # fmt: skip
    lake.append(CLUSTER_CONFIGS, rows(CLUSTER_CONFIGS, records))
    found = Lake(tmp_path).read(CLUSTER_CONFIGS, ds.field("entity").isin(names), ["entity"])
    assert sorted(found.column("entity").to_pylist()) == sorted(names)
