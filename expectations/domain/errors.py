"""Errors that no retry will cure."""

from __future__ import annotations

import pandas as pd

from expectations.domain.expectation import DomainExpectation, failure, instant, keys_of, texts
from expectations.result import Finding


class ExpectNoNonRetriableError(DomainExpectation):
    """No producer met an error that its client does not retry: the send has failed for good."""

    def findings(self, frame: pd.DataFrame) -> list[Finding]:
        """One finding for each topic and error."""
        known = frame["at"].isna() | (frame["at"] <= pd.Timestamp(self.asked_at))
        final = frame[(frame["retriable"].map(lambda r: r is False).astype(bool)) & known]
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
                because=(
                    f"{error} {len(rows)} time(s)"
                    + (f" on topic {topic}" if topic else "")
                    + ", a send that is not retried; the last on "
                    + (", ".join(texts(rows["client_id"])[:3]) or "an unnamed client")
                    + "."
                ),
                count=len(rows),
                keys=keys_of(rows, ("event_key",)),
                clients=texts(rows["client_id"]),
            )
            for (cluster, topic, error), rows in final.groupby(["cluster", "topic", "error"])
        ]
