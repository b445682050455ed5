"""What the suites look at: a window of a table, read by delta-rs into pandas."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds

from acktrail.answers import sources as answers
from acktrail.contracts import Table
from acktrail.contracts.arrow import rows
from acktrail.contracts.bronze import AUDIT_REPORTS
from acktrail.contracts.gold import (
    DELIVERY_LEDGER,
    LOSS_EVENTS,
    LOSS_INCIDENTS,
    OFFSET_ACCOUNTS,
    PRODUCER_RELIABILITY,
    RETRY_BUDGETS,
    VERDICT_CHANGES,
)
from acktrail.contracts.runs import COVERAGE, RUNS, SOURCE_STATES
from acktrail.contracts.silver import (
    BROKER_METRICS,
    CLIENT_CONFIGS,
    CLIENTS,
    PRODUCER_EVENTS,
    UNREAD_RECORDS,
)
from acktrail.contracts.vocabulary import Tier
from acktrail.window import day_of, hour_of
from expectations.rate_samples import with_samples

if TYPE_CHECKING:
    import pandas as pd

    from acktrail.lake import Lake
    from expectations.suite import Question

_A_DAY = timedelta(days=1)


def retry_budgets(lake: Lake, question: Question) -> pd.DataFrame | None:
    """The chains of retries that were seen within the window."""
    opened = ds.field("opened_hour") >= hour_of(question.since - _A_DAY)
    return frame(lake, RETRY_BUDGETS, opened & (ds.field("last_at") >= question.since))


def producer_errors(lake: Lake, question: Question) -> pd.DataFrame | None:
    """The events of the window whose error is not retried."""
    lately = ds.field("hour") >= hour_of(question.since)
    return frame(lake, PRODUCER_EVENTS, lately & ~ds.field("retriable"))


def delivery_ledger(lake: Lake, question: Question) -> pd.DataFrame | None:
    """The accounts of the window, with what each producer's settings promise."""
    lately = ds.field("last_at").is_null() | (ds.field("last_at") >= question.since)
    ledger = frame(lake, DELIVERY_LEDGER, lately)
    return None if ledger is None else _with_promises(lake, ledger, question)


def loss_events(lake: Lake, question: Question) -> pd.DataFrame | None:
    """The loss events of the window."""
    return frame(lake, LOSS_EVENTS, _since("last_at", question), beside=DELIVERY_LEDGER)


def loss_incidents(lake: Lake, question: Question) -> pd.DataFrame | None:
    """The incidents of the window; none, where the ledger is kept and nothing was ever lost."""
    return frame(lake, LOSS_INCIDENTS, _since("ended_at", question), beside=DELIVERY_LEDGER)


def verdict_changes(lake: Lake, question: Question) -> pd.DataFrame | None:
    """The changes of the window."""
    return frame(lake, VERDICT_CHANGES, _since("changed_at", question), beside=DELIVERY_LEDGER)


def producer_reliability(lake: Lake, question: Question) -> pd.DataFrame | None:
    """The hours of the window up to the time asked about, with the samples of what is not 0."""
    hours = frame(lake, PRODUCER_RELIABILITY, _hours(question))
    return None if hours is None else with_samples(lake, hours)


_AT_ZERO = ("under-min-isr-partitions", "under-replicated-partitions", "offline-partitions")
_GROWING = (
    *("failed-produce-requests-total", "failed-fetch-requests-total"),
    *("request-errors-total", "isr-shrinks-total"),
)
_ASKED = ("Produce", "Fetch")


def broker_metrics(lake: Lake, question: Question) -> pd.DataFrame | None:
    """Samples of the window that are not 0 and should be; all of the last hour's gauges.

    Of a healthy cluster that is little, however many brokers and topics it has.
    """
    metric, lately = ds.field("metric"), hour_of(question.as_of - timedelta(hours=1))
    above = metric.isin(_AT_ZERO) & (ds.field("value") > 0)
    grown = metric.isin(_GROWING) & (ds.field("increase") > 0)
    # Answers without an error are most of all samples.
    answer = ds.field("error").is_null() | (
        ds.field("request").isin(_ASKED) & (ds.field("error") != "NONE")
    )
    newest = metric.isin(_AT_ZERO) & (ds.field("hour") >= lately)
    where = _hours(question) & (newest | above | (grown & answer))
    samples = frame(lake, BROKER_METRICS, where)
    if samples is None:
        return None
    import pandas as pd

    return samples[samples["at"] <= pd.Timestamp(question.as_of)]


def offset_accounts(lake: Lake, question: Question) -> pd.DataFrame | None:
    """The hours of the window up to the time asked about."""
    return frame(lake, OFFSET_ACCOUNTS, _hours(question))


def coverage(lake: Lake, question: Question) -> pd.DataFrame | None:
    """What the sources gave in the window, and when that was worked out."""
    import pandas as pd

    covered = frame(lake, COVERAGE, _hours(question))
    if covered is None:
        return None
    ran = lake.read(RUNS, ds.field("job") == COVERAGE.name, ["ended_at"]).to_pandas()
    latest = ran["ended_at"].max() if len(ran) else pd.NaT
    computed = pd.Series(latest, index=covered.index, dtype="datetime64[us, UTC]")
    return covered.assign(computed_at=computed)


def coverage_and_states(lake: Lake, question: Question) -> pd.DataFrame | None:
    """As *coverage*, with `read_at`: when an agent last reported that it reads the source."""
    import pandas as pd

    covered = coverage(lake, question)
    if covered is None:
        return None
    read = answers.read_at(lake, question.as_of)
    places = covered[["cluster", "source"]].itertuples(index=False, name=None)
    read_at = pd.Series([read.get(p) for p in places], covered.index, "datetime64[us, UTC]")
    return covered.assign(read_at=read_at)


def runs(lake: Lake, question: Question) -> pd.DataFrame | None:
    """The runs that were asked for within the window."""
    asked = ds.field("as_of")
    return frame(lake, RUNS, (asked >= question.since) & (asked <= question.as_of))


def unread_records(lake: Lake, question: Question) -> pd.DataFrame | None:
    """What looked like evidence in the window and could not be read."""
    lately = ds.field("day") >= day_of(question.since)
    return frame(lake, UNREAD_RECORDS, lately, beside=PRODUCER_EVENTS)


def clients(lake: Lake, question: Question) -> pd.DataFrame | None:
    """The clients seen within the window."""
    return frame(lake, CLIENTS, _since("last_seen_at", question))


def source_states(lake: Lake, question: Question) -> pd.DataFrame | None:
    """How each source stands; no row where a lake holds only what `acktrail ingest` read."""
    import pandas as pd

    if not lake.exists(SOURCE_STATES) and lake.is_empty():
        return None
    found = answers.source_states(lake, question.as_of)
    since = {
        name: pd.Series([row.pop(name) for row in found], dtype="datetime64[us, UTC]")
        for name in ("state_since_at", "unread_since_at")
    }
    return rows(SOURCE_STATES, found).to_pandas().assign(**since)


def frame(
    lake: Lake, table: Table, where: Any = None, beside: Table | None = None
) -> pd.DataFrame | None:
    """Rows of *table* as pandas, without lists of structs; None where the table does not exist.

    A job that ran and had nothing to write is an answer: so is an absent table where the one
    *beside* it, made from the same evidence, is there.
    """
    if not lake.exists(table) and not _ran(lake, table) and not (beside and lake.exists(beside)):
        return None
    found = lake.read(table, where, [column.name for column in table.flat])
    read: pd.DataFrame = found.to_pandas(maps_as_pydicts="lossy")
    return read


def _ran(lake: Lake, table: Table) -> bool:
    return lake.read(RUNS, ds.field("job") == table.name, ["job"]).num_rows > 0


def _hours(question: Question) -> ds.Expression:
    """The partitions of the window."""
    hour = ds.field("hour")
    return (hour >= hour_of(question.since)) & (hour <= hour_of(question.as_of))


def _since(column: str, question: Question) -> Any:
    return ds.field(column).is_null() | (ds.field(column) >= question.since)


def _with_promises(lake: Lake, ledger: pd.DataFrame, question: Question) -> pd.DataFrame:
    """*ledger* with `idempotent` and `ordered`: True, False, or None where nobody knows."""
    by_session = _promises_of_sessions(lake, question)
    by_client = _promises_of_clients(lake)
    nothing = (None, None)
    found = [
        by_session.get((cluster, session)) or by_client.get((cluster, client), nothing)
        for cluster, session, client in ledger[["cluster", "session", "client_id"]].itertuples(
            index=False, name=None
        )
    ]
    promised = ledger.assign(idempotent=None, ordered=None)
    promised["idempotent"] = [idempotent for idempotent, _ in found]
    promised["ordered"] = [ordered for _, ordered in found]
    return promised.astype({"idempotent": object, "ordered": object})


Promise = tuple[bool | None, bool | None]


def _promises_of_sessions(lake: Lake, question: Question) -> dict[tuple[str, str], Promise]:
    """From the settings that audited producers send with their heartbeats."""
    lately = (ds.field("day") >= day_of(question.since - _A_DAY)) & (
        ds.field("tier") == Tier.HEARTBEAT.value
    )
    found: dict[tuple[str, str], Promise] = {}
    wanted = ["cluster", "session", "settings"]
    for row in lake.read(AUDIT_REPORTS, lately, wanted).to_pylist():
        settings = dict(row["settings"] or ())
        said = settings.get("enable.idempotence")
        if said is None:
            continue
        idempotent = said.lower() == "true"
        in_flight = settings.get("max.in.flight.requests.per.connection") or settings.get(
            "max.in.flight"
        )
        found[(row["cluster"], row["session"])] = (idempotent, idempotent or in_flight == "1")
    return found


def _promises_of_clients(lake: Lake) -> dict[tuple[str, str], Promise]:
    """From the settings that producers printed when they started; the latest counts."""
    wanted = ["cluster", "client_id", "started_at", "idempotent", "ordered"]
    read = lake.read(CLIENT_CONFIGS, ds.field("role") == "producer", wanted).to_pylist()
    read.sort(key=lambda row: (row["started_at"] is not None, row["started_at"]))
    return {(r["cluster"], r["client_id"]): (r["idempotent"], r["ordered"]) for r in read}
