"""Where the command under test lives: its settings, its lake, its Alertmanager."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from acktrail.cli.demo import CLUSTER, incident, recorded_until
from tests.dags.airflow_session import command_file
from tests.dags.alertmanager import Alertmanager


@dataclass
class Place:
    """What a worker finds: a command, a settings file and what it names."""

    command: Path
    config: Path
    lake: Path
    alertmanager: Alertmanager
    as_of: str
    """The end of the recorded incident."""

    def settings(self, lake: str = "lake") -> str:
        """A settings file in which nothing is wrong."""
        return (
            f'cluster = "{CLUSTER}"\n[lake]\nuri = "{self.lake.with_name(lake)}"\n'
            f'[spark]\nmaster = "local[2]"\n'
            f'[alerts]\nalertmanager_urls = ["{self.alertmanager.url}"]\n'
            'runbooks_url = "https://runbooks.example"\n'
        )

    def fill(self, evidence: Path) -> None:
        """Read recorded evidence into the lake; nothing is made of it yet."""
        subprocess.run(
            [self.command, "ingest", "lab", evidence, "--config", self.config],
            check=True,
            capture_output=True,
        )


def prepare(directory: Path, alertmanager: Alertmanager) -> Place:
    """A command with its settings in *directory*, and an empty lake."""
    made = Place(
        command_file(directory),
        directory / "acktrail.toml",
        directory / "lake",
        alertmanager,
        recorded_until(incident()).isoformat(),
    )
    made.config.write_text(made.settings(), encoding="utf-8")
    return made
