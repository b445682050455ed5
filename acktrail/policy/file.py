"""Read the policy file: YAML that a user edits."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from acktrail.errors import ConfigError
from acktrail.policy.model import Policy
from acktrail.settings.problems import problem_lines


def read_policy(path: Path | None) -> Policy:
    """The policy in *path*; the default one for None."""
    if path is None:
        return Policy()
    import yaml

    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except FileNotFoundError:
        raise ConfigError(f"The policy file {path} does not exist.") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path} is not readable YAML: {error}") from None
    if not isinstance(raw, dict):
        raise ConfigError(f"{path} must hold settings (`owners:`, `thresholds:` ...), not a list.")
    try:
        return Policy.model_validate(raw)
    except ValidationError as error:
        lines = "\n".join(f"  {line}" for line in problem_lines(error, Policy))
        raise ConfigError(f"{path}: the policy is wrong:\n{lines}") from None
