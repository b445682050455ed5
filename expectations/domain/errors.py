"""Errors that clients do not retry."""

from __future__ import annotations

import pandas as pd

from acktrail.alerts.finding import Finding
from expectations.domain.expectation import DomainExpectation, failure, instant, keys_of, texts

_NOT_FINAL = (
    *("retry", "split_retry", "invalid_metadata", "sequence_reset"),
    *("late_success", "reordered", "idempotence_disabled"),
)
"""Kinds of lines after which the client goes on with the same records, whatever the error is."""


class ExpectNoNonRetriableError(DomainExpectation):
    """No producer met an error that its client does not retry: the send has failed for good.

    An idempotent producer may retry OUT_OF_ORDER_SEQUENCE_NUMBER and UNKNOWN_PRODUCER_ID, though
    their class is not retriable: a line that announces a retry is not final.
    """

    def findings(self, frame: pd.DataFrame) -> list[Finding]:
        """One finding for each topic and error."""
        known = frame["at"].isna() | (frame["at"] <= pd.Timestamp(self.asked_at))
        refused = frame["retriable"].map(lambda r: r is False).astype(bool)
        final = frame[refused & known & ~frame["kind"].isin(_NOT_FINAL)]
        # A batch's failure is printed once per record, and is one failure.
        final = final.drop_duplicates(["cluster", "event_key"]).assign(
            topic=final["topic"].fillna(""), error=final["error"].fillna("unknown error")
        )
        return [
            failure(
                cluster=str(cluster),
                topic=str(topic),
                group="",
                state="non_retriable_error",
                cause=str(error),
                starts_at=instant(rows["at"].min(), self.asked_at),
                ends_at=None,
                because=_sentence(str(topic), str(error), rows),
                count=len(rows),
                keys=keys_of(rows, ("event_key",)),
                clients=texts(rows["client_id"]),
            )
            for (cluster, topic, error), rows in final.groupby(["cluster", "topic", "error"])
        ]


def _sentence(topic: str, error: str, rows: pd.DataFrame) -> str:
    clients = texts(rows["client_id"])
    who = ", ".join(clients[:3]) or "an unnamed client"
    more = f" and {len(clients) - 3} more" if len(clients) > 3 else ""
    times = f"{len(rows)} time{'' if len(rows) == 1 else 's'}"
    where = f" on topic {topic}" if topic else ""
    return f"{who}{more} reported {error}{where} {times}; clients do not retry it."
