"""Why a place cannot be used, wherever it is: an object store or a directory."""

from __future__ import annotations

from acktrail.errors import AcktrailError
from acktrail.lake.directory_access import access_error
from acktrail.lake.store import is_remote
from acktrail.lake.store_errors import store_error


def refusal(path: str, error: Exception) -> AcktrailError | None:
    """Our error where the store or the operating system refused *path*; None for any other."""
    return store_error(path, error) if is_remote(path) else access_error(path, error)
