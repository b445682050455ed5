"""Errors that clients do not retry."""

from __future__ import annotations

import pandas as pd

from acktrail.alerts.finding import Finding
from acktrail.contracts.vocabulary import Outcome
from expectations.domain.expectation import DomainExpectation, instant, keys_of, texts
from expectations.stretches import Stretch, stretches

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
        """One finding for each topic, error and time."""
        known = frame["at"].isna() | (frame["at"] <= pd.Timestamp(self.asked_at))
        refused = frame["retriable"].map(lambda r: r is False).astype(bool)
        final = frame[refused & known & ~frame["kind"].isin(_NOT_FINAL)]
        # A batch's failure is printed once per record, and is one failure.
        final = final.drop_duplicates(["cluster", "event_key"]).assign(
            topic=final["topic"].fillna(""), error=final["error"].fillna("unknown error")
        )
        return [
            self._finding((str(cluster), str(topic), str(error)), stretch, rows)
            for (cluster, topic, error), rows in final.groupby(["cluster", "topic", "error"])
            for stretch in stretches(
                [instant(at, self.asked_at) for at in rows["at"]], self.asked_at
            )
        ]

    def _finding(
        self, place: tuple[str, str, str], stretch: Stretch, rows: pd.DataFrame
    ) -> Finding:
        cluster, topic, error = place
        times = rows["at"].map(lambda at: instant(at, self.asked_at))
        inside = rows[(times >= stretch.starts_at) & (times <= stretch.last_at)]
        said = _sentence(topic, error, inside)
        return Finding(
            outcome=Outcome.FAIL,
            cluster=cluster,
            topic=topic,
            group="",
            state="non_retriable_error",
            cause=error,
            starts_at=stretch.starts_at,
            ends_at=stretch.ends_at,
            because=f"{said}; clients do not retry it.",
            what=f"{said}; clients do not retry it",
            past=said,
            fix=f"Sending again fails until the cause is fixed: see {error} in the runbook.",
            count=len(inside),
            keys=keys_of(inside, ("event_key",)),
            clients=texts(inside["client_id"]),
            hosts=texts(inside["host"]) if "host" in inside.columns else (),
        )


def _sentence(topic: str, error: str, rows: pd.DataFrame) -> str:
    clients = texts(rows["client_id"])
    who = ", ".join(clients[:3]) or "an unnamed client"
    more = f" and {len(clients) - 3} more" if len(clients) > 3 else ""
    times = f"{len(rows)} time{'' if len(rows) == 1 else 's'}"
    where = f" on topic {topic}" if topic else ""
    return f"{who}{more} reported {error}{where} {times}"
