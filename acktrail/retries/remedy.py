"""What a person can do about retries, by their error."""

from __future__ import annotations

LACKS_REPLICAS = "NOT_ENOUGH_REPLICAS"
"""How the errors begin by which a leader reports that other brokers are missing."""
BRING_BACK = (
    "Bring the missing replicas back, or lower min.insync.replicas of the topic and accept "
    "the risk."
)


def remedy(error: str | None) -> str:
    """What to do while batches that end with *error* can still be saved."""
    if (error or "").startswith(LACKS_REPLICAS):
        return f"{BRING_BACK} Do not restart the producers: that drops what they hold."
    return (
        "Look at the broker that leads the partitions: is it up and reachable? Do not restart the "
        "producers: that drops what they hold."
    )
