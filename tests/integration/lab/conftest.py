"""One cluster for the scenarios here: each mends what it breaks, and has topics of its own."""

from __future__ import annotations

import pytest

from lab.cluster import cluster


@pytest.fixture(scope="package")
def nodes():
    with cluster() as running:
        yield running
