"""How to reach the cluster: the settings of librdkafka, secrets read at the last moment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from acktrail.errors import ConfigError
from acktrail.settings.model import KafkaSettings


def client_config(kafka: KafkaSettings, **ours: Any) -> dict[str, Any]:
    """What librdkafka is given: the settings as they are, with *ours* (dots for underscores).

    What the source itself needs cannot be overridden.
    """
    if not kafka.bootstrap_servers:
        raise ConfigError(
            "`kafka.bootstrap_servers` is not set, and a source reads from the cluster. Set it in "
            "the settings file, or ACKTRAIL_KAFKA__BOOTSTRAP_SERVERS."
        )
    config: dict[str, Any] = {"client.id": "acktrail", **kafka.client}
    config["bootstrap.servers"] = kafka.bootstrap_servers
    config |= {name: secret.get_secret_value() for name, secret in kafka.secrets.items()}
    for name, file in kafka.secret_files.items():
        try:
            config[name] = Path(file).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise ConfigError(f"The secret file {file} of {name}: {error.strerror}.") from None
    return config | {name.replace("_", "."): value for name, value in ours.items()}
