"""What the lake knows of a fault once it is over: what was lost in the end, and corrected verdicts.

It is asked when an alert is resolved, so it may read tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

import pyarrow.compute as pc
import pyarrow.dataset as ds

from acktrail.alerts.alert import Alert
from acktrail.alerts.grouping import NEAR
from acktrail.alerts.symptom import Symptom
from acktrail.alerts.text import lost_in_the_end
from acktrail.contracts.gold import DELIVERY_LEDGER, VERDICT_CHANGES
from acktrail.lake import Lake

_WORDS = {
    "lost_after_ack": "acknowledged and gone",
    "lost_unacked": "sent with acks=0 and not stored",
    "rejected": "refused, the application got an error",
    "lost_indeterminate": "in doubt and not stored",
    "lost_in_crash": "lost with their producer",
    "unaccounted": "without any outcome",
    "skipped_by_consumer": "skipped by their group",
    "expired_before_read": "deleted before their group read them",
}
_LATE = timedelta(minutes=10)
"""Accounts that end this long before the fault do not cover it."""
_NOBODY_KNOWS = datetime(9999, 1, 1, tzinfo=UTC)
"""When an account ends that gives no time: it may cover any fault."""


@dataclass(frozen=True)
class LakeHindsight:
    """Asks one lake."""

    lake: Lake
    since: datetime | None = None
    """Where the window of the checks begins; None: not known."""

    def outcome(self, alert: Alert) -> str:
        """What was lost in the end; where nothing is known to be, whether anybody would know."""
        # What is older than the window is not asked about any more, and lost all the same.
        old = [s for s in alert.symptoms if s.loss and s.over and self._is_old([s])]
        corrected = bool(old) and bool(self._correction(alert, {s.topic for s in old}))
        stands = () if corrected else (replace(s, over=False) for s in old)
        lost = lost_in_the_end([*alert.symptoms, *stands])
        if lost:
            counts = (f"{n:,} {_WORDS.get(state, state)}" for state, n in sorted(lost.items()))
            return f"Lost in the end: {', '.join(counts)}."
        topics = sorted({s.topic for s in alert.symptoms if s.topic})
        if not topics:
            return ""
        unaudited = [t for t in topics if not self._is_audited(alert, t)]
        if unaudited:
            named = ", ".join(unaudited[:3]) + (" and more" if len(unaudited) > 3 else "")
            verb = "is" if len(unaudited) == 1 else "are"
            return f"Whether messages were lost is not known: {named} {verb} not audited."
        return "No message is known to be lost so far; audits may still find losses."

    def withdrawn(self, alert: Alert, losses: Sequence[Symptom]) -> str:
        """A corrected verdict with its reason, or the end of the window."""
        corrected = self._correction(alert, {s.topic for s in losses})
        if corrected:
            return f"The verdict was corrected: {corrected}"
        if self._is_old(losses):
            return "Resolved because the loss is older than the policy's window."
        return "Later evidence withdrew the loss: `verdict_changes` has what changed."

    def _is_old(self, losses: Sequence[Symptom]) -> bool:
        """Whether all of *losses* are from before the window."""
        ends = [s.ended_at or s.began_at for s in losses]
        return self.since is not None and bool(ends) and max(ends) < self.since

    def _is_audited(self, alert: Alert, topic: str) -> bool:
        until = self._audited_until.get((alert.cluster, topic))
        return until is not None and until >= alert.starts_at - NEAR - _LATE

    @cached_property
    def _audited_until(self) -> dict[tuple[str, str], datetime]:
        """When the last account of each topic ends, of all clusters; read once for all alerts."""
        rows = self.lake.read(DELIVERY_LEDGER, columns=["cluster", "topic", "last_at"])
        ends: Any = rows.column("last_at")
        ends = pc.fill_null(ends, _NOBODY_KNOWS)
        known = rows.select(["cluster", "topic"]).append_column("last_at", ends)
        last = known.group_by(["cluster", "topic"]).aggregate([("last_at", "max")])
        return {(r["cluster"], r["topic"]): r["last_at_max"] for r in last.to_pylist()}

    def _correction(self, alert: Alert, topics: set[str]) -> str:
        where = (
            (ds.field("changed_at") >= alert.starts_at)
            & (ds.field("cluster") == alert.cluster)
            & ds.field("topic").isin(sorted(topics))
        )
        wanted = ["changed_at", "before_state", "after_state", "because"]
        rows = self.lake.read(VERDICT_CHANGES, where, wanted).to_pylist()
        states = {s.state for s in alert.symptoms if s.gone}
        changed = [r for r in rows if r["before_state"] in states]
        if not changed:
            return ""
        last = max(changed, key=lambda r: r["changed_at"])
        after = last["after_state"] or "not lost"
        why = f" ({last['because']})" if last["because"] else ""
        return f"{last['before_state']} became {after}{why}."
