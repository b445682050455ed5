"""How many records a chain puts at stake, where metrics or audits tell."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

from acktrail.retries.audited_chains import Audits
from acktrail.retries.chain_endings import retried_batch
from acktrail.retries.chains import Chain
from acktrail.retries.error_counter import CounterSample
from acktrail.retries.signs import RETRY, Sign, epoch_ms


class Stakes:
    """Audits know the records still open; metrics give the mean size of a retried batch."""

    def __init__(
        self,
        signs: Iterable[Sign],
        audits: Audits,
        retried: Sequence[CounterSample],
    ) -> None:
        self._lines = sorted(s.at for s in signs if s.kind == RETRY)
        self._audits = audits
        self._retried = sorted(retried, key=lambda r: (r.at, r.key))
        self._ats = [r.at for r in self._retried]

    def of(self, chain: Chain) -> int | None:
        """Records in doubt: as the audits said then, as printed, else as retried on average."""
        audited = self._audited(chain)
        if audited is not None:
            return audited
        printed = [s.records for s in chain.signs if s.records is not None]
        return max(printed) if printed else self._mean_batch(chain)

    def _audited(self, chain: Chain) -> int | None:
        batch = retried_batch(chain)
        return None if batch is None else self._audits.in_doubt(batch, epoch_ms(chain.last.at))

    def _mean_batch(self, chain: Chain) -> int | None:
        """Records retried in the samples that hold the chain's lines, per line printed in them.

        record-retry-total counts the records of a batch anew with each retry, and each retry
        prints one line: so the ratio is the size of a batch.
        """
        if chain.first.kind != RETRY:
            return None
        start = bisect_left(self._ats, chain.first.at)
        stop = bisect_left(self._ats, chain.last.at) + 1
        samples = self._retried[start:stop]
        records = sum(r.increase for r in samples)
        if not samples or records <= 0:
            return None
        begun = bisect_right(self._lines, min(r.since for r in samples))
        ended = bisect_right(self._lines, samples[-1].at)
        return max(1, round(records / max(1, ended - begun)))
