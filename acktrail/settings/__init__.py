"""Settings: one TOML file and ACKTRAIL_* variables."""

from acktrail.settings.load import Loaded, load
from acktrail.settings.model import Settings

__all__ = ["Loaded", "Settings", "load"]
