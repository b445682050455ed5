"""One Airflow, one Alertmanager and one lake with the recorded incident, for all tests here."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from acktrail.commands.demo import CLUSTER, incident, recorded_until
from tests.dags.airflow_session import AirflowSession, command_file
from tests.dags.alertmanager import Alertmanager


@dataclass
class Place:
    """Where the command under test finds its settings, and the lake they name."""

    command: Path
    config: Path
    lake: Path
    alertmanager: Alertmanager
    as_of: str

    def settings(self) -> str:
        """A settings file in which nothing is wrong."""
        return (
            f'cluster = "{CLUSTER}"\n[lake]\nuri = "{self.lake}"\n'
            f'[spark]\nmaster = "local[2]"\n'
            f'[alerts]\nalertmanager_urls = ["{self.alertmanager.url}"]\n'
            'runbooks_url = "https://runbooks.example"\n'
        )


@pytest.fixture(scope="session")
def alertmanager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Alertmanager]:
    server = Alertmanager(tmp_path_factory.mktemp("alertmanager"))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory, alertmanager: Alertmanager) -> Place:
    """A lake with the evidence of the incident, and nothing made of it yet."""
    directory = tmp_path_factory.mktemp("acktrail")
    made = Place(
        command_file(directory),
        directory / "acktrail.toml",
        directory / "lake",
        alertmanager,
        recorded_until(incident()).isoformat(),
    )
    made.config.write_text(made.settings(), encoding="utf-8")
    subprocess.run(
        [made.command, "ingest", "lab", incident(), "--config", made.config],
        check=True,
        capture_output=True,
    )
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
