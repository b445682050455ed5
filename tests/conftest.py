"""What all tests share: one Spark session per run, made when first asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import hypothesis
import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A busy machine makes an example slow, not wrong.
hypothesis.settings.register_profile("busy", deadline=None)
hypothesis.settings.load_profile("busy")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from acktrail.settings.spark import SparkSettings
    from pipelines import session

    built = session.build(SparkSettings(master="local[1]"))
    yield built
    session.stop(built)
