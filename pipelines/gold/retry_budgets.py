"""retry_budgets: which batches are being retried, and when their budget ends.

Evidence is spread over the hours it can concern, and the rules see one client and one hour at a
time, with what lies before and after it. So a partition is a function of the evidence around its
hour, whatever runs brought that evidence in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F

from acktrail.contracts.arrow import rows as arrow_rows
from acktrail.contracts.bronze import AUDIT_REPORTS, CLUSTER_STATES
from acktrail.contracts.gold import RETRY_BUDGETS
from acktrail.contracts.silver import CLIENT_CONFIGS, CLIENT_METRICS, PRODUCER_EVENTS
from acktrail.retries.audited_chains import SESSION_TIERS
from acktrail.retries.client_budgets import (
    AUDIT,
    CONFIG,
    ERRORS,
    EVENT,
    LEADER_BUCKET_S,
    LEADERLESS_BUCKET_S,
    LOWEST_QUEUE_MS,
    QUEUE,
    RETRIES,
    SETTLING,
    ClientHour,
    Leaders,
    budgets_of_hour,
)
from acktrail.retries.client_settings import SETTINGS, VERSION
from acktrail.window import hour_of
from pipelines.arrow_rows import by_key, rows_of
from pipelines.audit_names import after_aliases
from pipelines.gold.budgets_touched import (
    KINDS,
    NEAR,
    ONE_HOUR,
    QUEUE_METRIC,
    chains_concerned,
    evidence_around,
    hour_begun,
    settings_around,
)
from pipelines.gold.settings_in_force import SETTINGS_IN_FORCE
from pipelines.job import Fold, Options
from pipelines.spark_schema import loose, no_rows, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_GROUP = ("cluster", "client", "opened_hour")
"""What the rules see together."""
_SPARK_HOUR = "yyyy-MM-dd'T'HH"
_TOTALS = {"record-error-total": ERRORS, "record-retry-total": RETRIES}
_COLUMNS = {
    "tag": "string",
    "cluster": "string",
    "client": "string",
    "opened_hour": "string",
    "host": "string",
    "key": "string",
    "at": "timestamp",
    "kind": "string",
    "detail": "string",
    "topic": "string",
    "partition": "bigint",
    "correlation_id": "bigint",
    "attempts_left": "bigint",
    "error": "string",
    "retriable": "boolean",
    "category": "string",
    "node": "bigint",
    "records": "bigint",
    "elapsed_ms": "bigint",
    "origin": "string",
    "value": "double",
    "total": "double",
    "instance": "string",
    "settings": "map<string,string>",
    "report": "struct<reporter:string,session:string,topic:string,partition:bigint,tier:string,"
    "block:bigint,part:bigint,number:bigint,ids:binary,settings:map<string,string>,"
    "minutes:array<bigint>,began_at:timestamp,ended_at:timestamp,closed:boolean,"
    "reported_at:timestamp>",
}
"""All evidence in one frame, so that one grouping serves the rules; *tag* says what a row is."""

# Frames are made from SQL text: the planner takes a whole row in one call, and a round of
# `acktrail watch` is mostly planning.
_IS_SIGN = f"at IS NOT NULL AND kind IN ({', '.join(repr(kind) for kind in KINDS)})"
_WHOLE_CLIENT = "topic IS NULL AND node IS NULL"
_LONG_QUEUE = f"(metric = '{QUEUE_METRIC}' AND value >= {LOWEST_QUEUE_MS})"
_IS_TOTAL = f"metric IN ({', '.join(repr(metric) for metric in _TOTALS)})"
_GROWTH = f"({_IS_TOTAL} AND increase IS NOT NULL)"
_FILE = "regexp_replace(record_key, '/[^/]*$', '')"
_EVENT = {"tag": f"'{EVENT}'", "key": "event_key", "origin": _FILE}
_TAGS = " ".join(f"WHEN '{m}' THEN '{tag}'" for m, tag in {**_TOTALS, QUEUE_METRIC: QUEUE}.items())
_SAMPLE = {
    # Totals give their growth, the rest their value.
    "tag": f"CASE metric {_TAGS} END",
    "key": "concat_ws('/', source, series, CAST(unix_millis(at) AS string))",
    "value": f"CASE WHEN {_IS_TOTAL} THEN increase ELSE value END",
    "total": f"CASE WHEN {_IS_TOTAL} THEN value END",
}
_SETTINGS = {**SETTINGS, VERSION: "client_version"}
_LED = "max_by(leader, at) FILTER (WHERE leader >= 0) AS leader"
_SECOND = f"CAST(floor(unix_timestamp(at) / {LEADERLESS_BUCKET_S}) * {LEADERLESS_BUCKET_S} AS long)"
_WITHOUT = f"collect_set({_SECOND}) FILTER (WHERE leader < 0) AS without"
_REPLICAS = "max_by(replicas, at) FILTER (WHERE leader < 0) AS replicas"
_PAIRS = ", ".join(f"'{name}', CAST({column} AS string)" for name, column in _SETTINGS.items())
_CONFIG = {
    "tag": f"'{CONFIG}'",
    "key": "record_key",
    "at": "started_at",
    "origin": _FILE,
    "settings": f"map_filter(map({_PAIRS}), (name, value) -> value IS NOT NULL)",
}
_TIERS = ", ".join(sorted(repr(tier.value) for tier in SESSION_TIERS))
_PRODUCERS = f"session <> '' AND tier IN ({_TIERS})"
_BEAT = "tier = 'heartbeat'"
_SESSION = "concat_ws('\\n', cluster, session)"
_MINUTES = "filter(minutes, (n, place) -> place % 2 = 0 AND n BETWEEN 0 AND 100000000)"
_BEGUN = f"coalesce(began_at, timestamp_seconds(array_min({_MINUTES}) * 60), ended_at, reported_at)"
_REPORTED = f"CASE WHEN {_BEAT} THEN reported_at ELSE coalesce(ended_at, reported_at) END"
_REPORT = ", ".join(f"'{name}', `{name}`" for name in re.findall(r"(\w+):", _COLUMNS["report"]))
_AUDIT = {
    "tag": f"'{AUDIT}'",
    "key": "''",
    "at": _REPORTED,
    "settings": "NULL",
    "report": f"named_struct({_REPORT})",
}


def budget_retries(
    inputs: Mapping[str, DataFrame], keys: frozenset[str] | None, options: Options
) -> DataFrame:
    """The budgets of the chains opened in the hours *keys* (all: None)."""
    metrics = _near(inputs[CLIENT_METRICS.name], keys).where(_WHOLE_CLIENT)
    events = _near(inputs[PRODUCER_EVENTS.name], keys).where(_IS_SIGN)
    found = _found(events, metrics)
    hours = _hours(found, keys)
    if not hours:
        return no_rows(events.sparkSession, RETRY_BUDGETS)
    ours = F.expr("coalesce(client_id, '')").isin(sorted({row["client"] for row in found}))
    samples = metrics.where(f"{_LONG_QUEUE} OR {_GROWTH}").where(ours)
    configs = inputs.get(SETTINGS_IN_FORCE, inputs[CLIENT_CONFIGS.name])
    evidence = (
        _spread(_shaped(events, _EVENT), hours)
        .union(_spread(_shaped(samples, _SAMPLE), hours))
        .union(_configs(configs.where(ours), hours, found))
    )
    reports = after_aliases(_reports(inputs[AUDIT_REPORTS.name], hours), options)
    sessions = _sessions(reports, found)
    if sessions:
        evidence = evidence.union(_audits(reports, sessions, hours))
    leaders = _leaders(inputs[CLUSTER_STATES.name], found)
    # Not `applyInArrow`: in Spark 4.1 each of its tasks leaves an Arrow allocator of some megabytes
    # behind, and a watch runs this every few seconds.
    rules = _rules(dict(options.inventory), leaders)
    together = evidence.repartition(*_GROUP).sortWithinPartitions(*_GROUP)
    return together.mapInArrow(rules, loose(RETRY_BUDGETS))


def _found(events: DataFrame, metrics: DataFrame) -> list[Any]:
    """Which clients, topics and files have signs, in which hours: not more than gold will have.

    Collected, so that all other evidence stays out of the shuffle; a quiet fleet has none.
    """
    what = ("coalesce(client_id, '') AS client", "topic", "date_trunc('hour', at) AS hour")
    printed = events.selectExpr(*what, f"{_FILE} AS origin")
    queues = metrics.where(_LONG_QUEUE).selectExpr(*what, "CAST(NULL AS string) AS origin")
    return printed.union(queues).distinct().collect()


def _hours(found: Sequence[Any], keys: frozenset[str] | None) -> list[str]:
    """The hours that can have chains: of *keys*, where given."""
    near = {hour_of(row["hour"].astimezone(UTC) + n * ONE_HOUR) for row in found for n in NEAR}
    return sorted(near if keys is None else near & keys)


def _leaders(states: DataFrame, found: Sequence[Any]) -> Leaders:
    """Who led each partition that has signs, and when nobody did, by the cluster's answers.

    A client that lost a broker names no partition: for it, all that nobody led.
    """
    topics = sorted({row["topic"] for row in found if row["topic"]})
    asked = F.col("topic").isin(topics)
    if any(not row["topic"] for row in found):
        asked |= F.col("leader") < 0
    times = [row["hour"].astimezone(UTC) for row in found]
    at = F.col("at")
    near = (at >= F.lit(min(times))) & (at < F.lit(max(times) + 2 * ONE_HOUR))
    bucket = F.expr(f"floor(unix_timestamp(at) / {LEADER_BUCKET_S})").alias("bucket")
    each = states.where(near & asked).groupBy("cluster", "topic", "partition", bucket)
    answers = each.agg(F.expr(_LED), F.expr(_WITHOUT), F.expr(_REPLICAS)).collect()
    by_place = {(r["cluster"], r["topic"], r["partition"], r["bucket"]): r for r in answers}
    alone = {place: r for place, r in by_place.items() if r["without"]}
    return Leaders(
        {place: r["leader"] for place, r in by_place.items() if r["leader"] is not None},
        {place: sorted(r["without"]) for place, r in alone.items()},
        {place: sorted(r["replicas"] or ()) for place, r in alone.items()},
    )


def _rules(
    inventory: Mapping[str, Mapping[str, str]],
    leaders: Leaders,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The rules as Spark calls them: all evidence by client and hour in, the budgets out."""

    def budgets(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for (cluster, client, hour), rows in by_key(rows_of(batches), _GROUP):
            found = budgets_of_hour(
                ClientHour(cluster, client, hour_begun(hour)), rows, inventory, leaders
            )
            place = {"cluster": cluster, "client_id": client, "opened_hour": hour}
            made = [
                {**asdict(budget), "evidence": list(budget.evidence), "host": host, **place}
                for host, budget in found
            ]
            yield from arrow_rows(RETRY_BUDGETS, made).to_batches()

    return budgets


def _shaped(frame: DataFrame, given: Mapping[str, str]) -> DataFrame:
    """*frame* with the common columns: *given*, else its own, else null."""
    own = frozenset(frame.columns)
    chosen = {"client": "coalesce(client_id, '')", **given}
    return frame.selectExpr(
        *(
            f"CAST({chosen.get(name, f'`{name}`' if name in own else 'NULL')} AS {kind}) "
            f"AS `{name}`"
            for name, kind in _COLUMNS.items()
        )
    )


def _spread(frame: DataFrame, hours: Sequence[str]) -> DataFrame:
    """Each row once for every hour whose chains it can concern; of *hours* only."""
    own = "date_trunc('hour', at)"
    early = f"CASE WHEN at < {own} + {_span(SETTLING)} THEN {own} - {_span(ONE_HOUR)} END"
    concerned = f"array_compact(array({early}, {own}, {own} + {_span(ONE_HOUR)}))"
    texts = f'transform({concerned}, h -> date_format(h, "{_SPARK_HOUR}"))'
    wanted = f"array_intersect({texts}, {_array(hours)})"
    return frame.selectExpr(*_with_hour(f"explode({wanted})"))


def _configs(configs: DataFrame, hours: Sequence[str], found: Sequence[Any]) -> DataFrame:
    """For each client and hour: its starts until then, as far as they can be in force.

    The last before the hour on each host, all since, and all that are in a file with signs.
    """
    producers = configs.where("role = 'producer' AND started_at IS NOT NULL")
    shaped = _shaped(producers, _CONFIG)
    of_host = "PARTITION BY cluster, client, host ORDER BY at, key"
    files = _array(sorted({row["origin"] for row in found if row["origin"]}))
    begins = f'to_timestamp(h, "{_SPARK_HOUR}")'
    until = f"{begins} + {_span(ONE_HOUR + SETTLING)}"
    last = f"next_at IS NULL OR next_at >= {begins} - {_span(ONE_HOUR)}"
    in_force = f"at < {until} AND ({last} OR array_contains({files}, origin))"
    wanted = f"filter({_array(hours)}, h -> {in_force})"
    followed = shaped.selectExpr("*", f"lead(at) OVER ({of_host}) AS next_at")
    return followed.selectExpr(*_with_hour(f"explode({wanted})"))


def _reports(reports: DataFrame, hours: Sequence[str]) -> DataFrame:
    """What producers reported since the first of *hours* can be concerned; read after it was."""
    since = hour_begun(hours[0]) - ONE_HOUR
    day = f"{since - timedelta(days=1):%Y-%m-%d}"
    late = (F.col("reported_at") >= F.lit(since)) | (F.col("ended_at") >= F.lit(since))
    return reports.where((F.col("day") >= day) & late).where(_PRODUCERS)


def _sessions(reports: DataFrame, found: Sequence[Any]) -> dict[str, str]:
    """The audit sessions of clients with signs, and whose each is. Collected: mostly none."""
    clients = sorted({row["client"] for row in found if row["client"]})
    if not clients:
        return {}
    whose = F.expr("settings['client_id']")
    beats = reports.where(_BEAT).where(whose.isin(clients))
    named = beats.select(F.expr(_SESSION).alias("session"), whose.alias("client")).distinct()
    return {row["session"]: row["client"] for row in sorted(named.collect())}


def _audits(reports: DataFrame, sessions: Mapping[str, str], hours: Sequence[str]) -> DataFrame:
    """The reports of *sessions*, each once for every hour whose chains it can concern."""
    names, clients = (", ".join(map(quoted, texts)) for texts in (sessions, sessions.values()))
    client = f"map_from_arrays(array({names}), array({clients}))[{_SESSION}]"
    ours = reports.selectExpr("*", f"{client} AS client_id").where("client_id IS NOT NULL")
    begins = f'to_timestamp(h, "{_SPARK_HOUR}")'
    until = f"{begins} + {_span(ONE_HOUR + SETTLING)}"
    near = f"{_BEGUN} < {until} AND {_REPORTED} >= {begins} - {_span(ONE_HOUR)}"
    wanted = ours.selectExpr("*", f"explode(filter({_array(hours)}, h -> {near})) AS _hour")
    return _shaped(wanted, {**_AUDIT, "opened_hour": "_hour"})


def _with_hour(hour: str) -> list[str]:
    return [f"{hour} AS `{n}`" if n == "opened_hour" else f"`{n}`" for n in _COLUMNS]


def _array(texts: Sequence[str]) -> str:
    return f"CAST(array({', '.join(map(quoted, texts))}) AS array<string>)"


def _near(frame: DataFrame, keys: frozenset[str] | None) -> DataFrame:
    """The partitions of *frame* that can concern the hours *keys*."""
    if keys is None:
        return frame
    near = {hour_of(hour_begun(key) + n * ONE_HOUR) for key in keys for n in NEAR}
    return frame.where(F.col("hour").isin(sorted(near)))


def _span(length: timedelta) -> str:
    return f"INTERVAL {int(length.total_seconds())} SECOND"


JOB = Fold(
    inputs=(PRODUCER_EVENTS, CLIENT_CONFIGS, CLIENT_METRICS, CLUSTER_STATES, AUDIT_REPORTS),
    output=RETRY_BUDGETS,
    touched=chains_concerned,
    transform=budget_retries,
    needed=evidence_around,
    summaries=settings_around,
)
