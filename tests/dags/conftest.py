"""One Airflow, one Alertmanager and one lake with the recorded incident, for all tests here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from acktrail.cli.demo import incident
from tests.dags.airflow_session import AirflowSession
from tests.dags.alertmanager import Alertmanager
from tests.dags.place import Place, prepare


@pytest.fixture(scope="session")
def alertmanager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Alertmanager]:
    server = Alertmanager(tmp_path_factory.mktemp("alertmanager"))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory, alertmanager: Alertmanager) -> Place:
    """A lake with the evidence of the incident, and nothing made of it yet."""
    made = prepare(tmp_path_factory.mktemp("acktrail"), alertmanager)
    made.fill(incident())
    return made


@pytest.fixture(scope="session")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AirflowSession]:
    session = AirflowSession(tmp_path_factory.mktemp("airflow"))
    try:
        migrated = session.airflow("db", "migrate")
        assert migrated.code == 0, migrated.output
        yield session
    finally:
        session.close()
