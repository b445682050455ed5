"""What librdkafka prints, and the programs built on it: kcat, confluent-kafka, node-rdkafka.

Source: librdkafka, src/rdkafka.c rd_kafka_log_print. A line has a severity, seconds since 1970, a
facility and the instance: `%3|1714557600.200|FAIL|orders-svc#producer-1| [thrd:...]: ...`. Its
produce retries are printed only with `debug` set, and it has no "attempts left".
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pipelines.reading.errors import RDKAFKA_WORDS
from pipelines.reading.layout import Layout
from pipelines.reading.pattern import Fields, integer
from pipelines.reading.times import from_epoch, read_timestamp

MARKS = ("|", "#producer-", "[thrd:", "RDKAFKA-", "LOG-")
"""One of them stands in every line of librdkafka's own."""
SEVERITIES = ("EMERG", "ALERT", "CRIT", "ERROR", "WARNING", "NOTICE", "INFO", "DEBUG")

# %3|1714557600.200|FAIL|orders-svc#producer-1| [thrd:b1:9092/1]: b1:9092/1: Connect to ... failed
_LINE = re.compile(
    r"(?:%?(?P<severity>[0-7]))?\|"
    r"(?:(?P<seconds>\d{9,10})\.(?P<millis>\d{3})\||[.…]{1,3}\|)?"
    r"(?P<facility>[A-Z][A-Z_0-9]{1,20})\|(?P<instance>[^|\n]{0,300})\|"
    r"(?:\.\.\.)? ?(?P<text>.{0,3000})",
    re.DOTALL,
)
# Confluent.Kafka for .NET before 1.0: 7|2026-01-31 09:05:52.402|pay#producer-1|FAIL| [thrd:...
_NET_LINE = re.compile(
    r"(?P<severity>[0-7])\|(?P<date>20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3})\|"
    r"(?P<instance>[^|\n]{0,300}#\w{1,10}-\d{1,6})\|(?P<facility>[A-Z][A-Z_0-9]{1,20})\| ?"
    r"(?P<text>.{0,3000})",
    re.DOTALL,
)
_AT_LINE = re.compile(
    r"(?:^|[\s>`'\"(])(?:%?[0-7]\|(?:\d{9,10}\.\d{3}\||[.…]{1,3}\|)?|\|\d{9,10}\.\d{3}\|)"
    r"[A-Z][A-Z_0-9]{1,20}\|"
)
# Releases before 0.8.6, and the C++ example: 1433288004.747 RDKAFKA-3-FAIL: pay#producer-0: ...
_OLD_LINE = re.compile(
    r"(?:(?P<seconds>\d{9,10})\.(?P<millis>\d{3}) )?(?<!\w)(?:[A-Z]{1,12}-)?(?:RDKAFKA|LOG)-"
    r"(?P<severity>[0-7])-(?P<facility>[A-Z][A-Z_0-9]{1,20}): "
    r"(?:(?P<instance>[^:\[\]\n]{0,200}#(?:producer|consumer)-\d{1,6}): )?(?P<text>.{0,3000})",
    re.DOTALL,
)
_FACILITY = (
    r"(?<![\w.])(?P<facility>FAIL|BROKERFAIL|REQTMOUT|TERMINATE|FATAL|MSGSET|TIMEOUT|REQERR|RETRY"
    r"|ERROR)"
)
_INSTANCE = r"(?<![^\s\[\]|:,'\"])(?P<instance>[^\s\[\]|:,'\"]{0,200}#producer-\d{1,6})"
# What applications make of it in their log callbacks.
_RETOLD = tuple(
    re.compile(expression + r"(?P<text>.{0,3000})", re.DOTALL)
    for expression in (
        # confluent-kafka-python with logger=: REQTMOUT [orders-svc#producer-1] [thrd:...]: ...
        _FACILITY + r" {0,4}\[(?P<instance>[^\]\n]{0,200}#producer-\d{1,6})\] ",
        # .NET: orders-svc#producer-1: REQTMOUT - [thrd:...], orders-svc#producer-1,7,MSGSET,[thrd:
        _INSTANCE + r"[:,] ?(?:[0-7],)?" + _FACILITY + r"(?: - |[:,] ?)",
        # [REQTMOUT] [thrd:...]: ..., [7,BROKERFAIL]: [thrd:...]: ..., fac: 'FAIL', message: '[thrd:
        _FACILITY
        + r"(?P<instance>(?!))?(?:\([0-7]\))?[^\w\s]{0,3}[\s|]{1,4}(?:message: ')?(?=\[thrd:)",
        # fluent-bit: fluent-bit#producer-1: [thrd:...]: ...
        r"(?P<facility>(?!))?" + _INSTANCE + r"[:,]? ?(?=\[thrd:)",
    )
)
_LOST = re.compile(
    r"(?:Connect|Failed to connect) to |(?:Receive|Send) failed|Disconnected|Failed to resolve|"
    r"timed out: disconnect|Timed out \d{1,9} in-flight|brokers? (?:are|is) down|handshake failed"
)
"""How a connection ends, where nobody names the facility."""
_AFTER = re.compile(r"\(after (-?\d{1,18})ms")
_NODE = re.compile(r"(?:^|: |\[thrd:)\S{1,200}:\d{1,5}/(\d{1,9})(?:\]|:)")
_MESSAGE_SET = re.compile(
    r"(?P<topic>[A-Za-z0-9._-]{1,249}) \[(?P<partition>-?\d{1,9})\]: MessageSet with "
    r"(?P<records>\d{1,9}) message\(s\) (?:\(MsgId \d{1,18}, BaseSeq -?\d{1,18}\) )?"
    r"encountered error: "
    r"(?P<error>.{1,300}?) \(actions (?P<actions>[^)]{0,200})\)"
)
_REQUEST_FAILED = re.compile(
    r"ProduceRequest failed: (?P<error>[^\n]{1,300}?): (?:explicit )?actions (?P<actions>\S{1,200})"
)
_RETRYING = re.compile(r"Retrying ProduceRequest \([^)\n]{0,200}\bretry \d{1,9}/\d{1,12}")
_TRIED_AGAIN = re.compile(r"Retry|Refresh")
"""Actions after which messages go back to their queue: src/rdkafka_request.c."""
_ACTION_BITS = ((4 | 8, "retry"), (1, "send_failed"))
"""The same as old releases print them: Permanent 1, Ignore 2, Refresh 4, Retry 8."""
_TIMED_OUT = re.compile(
    r"(?P<topic>[A-Za-z0-9._-]{1,249}) \[(?P<partition>-?\d{1,9})\]: timed out "
    r"(?P<sent>\d{1,9})\+(?P<queued>\d{1,9}) message\(s\)"
)
_TERMINATING = re.compile(r"Producer terminating with (\d{1,18}) messages? \(")
_FATAL = re.compile(
    r"Fatal error: (?:Broker: |Local: )?(?P<error>[^:\n]{1,200})(?:: (?P<reason>.*))?"
)
_FATAL_FOR = re.compile(
    r"ProduceRequest for (?P<topic>[A-Za-z0-9._-]{1,249}) \[(?P<partition>-?\d{1,9})\] with "
    r"(?P<records>\d{1,9}) message\(s\)"
)


def read_line(text: str) -> tuple[Fields, Layout, int] | None:
    """A line of librdkafka's own, if it speaks of a produce request's fate, and its place."""
    found = _framed(text)
    if found is not None:
        severity = found["severity"]
        level = None if severity is None else SEVERITIES[int(severity)]
        layout = Layout(level=level, ts=_time(found.groupdict()))
    else:
        found, layout = _retold(text), Layout()
    if found is None:
        return None
    instance = (found["instance"] or "").strip()
    if "#consumer-" in instance:
        return None
    if layout.level is None and found["facility"] == "ERROR" and not _LOST.search(found["text"]):
        return None  # an application's level
    fields = _read_facility(found["facility"], found["text"])
    if fields is None:
        return None
    fields["client_id"] = instance or None
    return fields, layout, found.start()


def _time(named: Mapping[str, str | None]) -> str | None:
    seconds, millis, date = named.get("seconds"), named.get("millis"), named.get("date")
    if seconds is not None and millis is not None:
        return from_epoch(int(seconds), int(millis))
    return None if date is None else read_timestamp(date)


def _framed(text: str) -> re.Match[str] | None:
    at = _AT_LINE.search(text)
    if at is not None:
        return _LINE.search(text, at.start())
    if "RDKAFKA-" in text or "LOG-" in text:
        return _OLD_LINE.search(text)
    return _NET_LINE.search(text) if "#producer-" in text else None


def _retold(text: str) -> re.Match[str] | None:
    if ("#producer-" not in text and "[thrd:" not in text) or "onsumer" in text:
        return None
    found = (expression.search(text) for expression in _RETOLD)
    return next((one for one in found if one is not None), None)


def _read_facility(facility: str | None, text: str) -> Fields | None:
    node = _NODE.search(text)
    fields: Fields = {"node": None if node is None else integer(node.group(1))}
    if facility in ("FAIL", "BROKERFAIL", "REQTMOUT", "ERROR") or (
        facility is None and _LOST.search(text) is not None
    ):
        # src/rdkafka_broker.c: connection lost or refused, requests timed out.
        after = _AFTER.search(text)
        detail = f"rd_{(facility or 'fail').lower()}"
        fields |= {"kind": "connection_failure", "detail": detail}
        fields |= {"error": facility, "message": text.strip()[:500] or None}
        fields["elapsed_ms"] = None if after is None else int(after.group(1))
        return fields
    if facility == "TERMINATE" or (facility is None and "Producer terminating" in text):
        # src/rdkafka.c: Producer terminating with 41 messages (5412 bytes) still in queue or ...
        count = _TERMINATING.search(text)
        if count is None:
            return None
        return fields | {
            "kind": "dropped_at_close",
            "detail": "rd_terminate",
            "error": facility,
            "records": int(count.group(1)),
        }
    if facility == "FATAL" or (facility is None and "Fatal error: " in text):
        # src/rdkafka.c: Fatal error: Broker: Broker received an out of order sequence number: ...
        fatal = _FATAL.search(text)
        of = _FATAL_FOR.search(text)
        if of is not None:
            fields |= {"topic": of["topic"], "partition": int(of["partition"])}
            fields["records"] = int(of["records"])
        return fields | {
            "kind": "fatal_sequence",
            "detail": "rd_fatal",
            "error": facility if fatal is None else fatal["error"].strip(),
            "message": None if fatal is None else fatal["reason"],
        }
    return _read_debug(fields, text)


def _read_debug(fields: Fields, text: str) -> Fields | None:
    # src/rdkafka_request.c, debug=msg:
    #   orders [3]: MessageSet with 12 message(s) (MsgId 118, BaseSeq 117) encountered error:
    #   Broker: Not enough in-sync replicas (actions Retry,MsgNotPersisted)
    refused = _MESSAGE_SET.search(text)
    if refused is not None:
        return fields | {
            "kind": _kind_after(refused["actions"]),
            "detail": "rd_msgset",
            "topic": refused["topic"],
            "partition": int(refused["partition"]),
            "records": int(refused["records"]),
            "error": _own_words(refused["error"]),
        }
    # debug=broker: ProduceRequest failed: Broker: Not leader for partition: actions Refresh,...
    failed = _REQUEST_FAILED.search(text)
    if failed is not None:
        kind, error = _kind_after(failed["actions"]), _own_words(failed["error"])
        if kind is None:
            return None
        return fields | {"kind": kind, "detail": "rd_reqerr", "error": error}
    # debug=protocol: Retrying ProduceRequest (v7, 190 bytes, retry 1/5, prev CorrId 1) in ...
    if _RETRYING.search(text) is not None:
        return fields | {"kind": "retry", "detail": "rd_retry"}
    # src/rdkafka_broker.c, debug=msg:
    #   orders [3]: timed out 3+9 message(s) (MsgId 118..129): message.timeout.ms exceeded
    late = _TIMED_OUT.search(text)
    if late is not None:
        return fields | {
            "kind": "expired",
            "detail": "rd_msg_timeout",
            "topic": late["topic"],
            "partition": int(late["partition"]),
            "records": int(late["sent"]) + int(late["queued"]),
            "error": "Message timed out",
        }
    return None


def _kind_after(actions: str) -> str | None:
    """What becomes of the messages; None where it is decided elsewhere."""
    if actions.startswith("0x"):
        bits = int(actions, 16) if re.fullmatch(r"0x[0-9a-f]{1,8}", actions) else 0
        return next((kind for mask, kind in _ACTION_BITS if bits & mask), None)
    return "retry" if _TRIED_AGAIN.search(actions) is not None else "send_failed"


_KAFKA_ERROR = re.compile(r"KafkaError\{code=(?P<code>_?[A-Z][A-Z_]{2,60})[,}.…]")
_WORDS = re.compile(r"\b(?:Broker|Local): (?P<error>[A-Z][^\n\"“”'\]\[{}|:,;.]{2,120})")
_GO_PARTITION = re.compile(r"\b(?P<topic>[A-Za-z0-9._-]{1,249})\[(?P<partition>\d{1,9})\]@")
_DELIVERY = re.compile(
    r"(?i)deliver(?:y|ed)?\b.{0,40}\bfail|fail.{0,40}\bdeliver|\bproduc(?:e|er|ing)\b|"
    r"Message production error|ProduceException|\bsend|\bvalue:|MessageProduction|\bpublish|"
    r"^\W{0,8}% ERROR: Local: "
)
_NOT_DELIVERY = re.compile(
    r"onsumer|onsuming|ubscri|eserializ|\bfetch|\bFetch|PARTITION_EOF|commit"
)
_OTHER_REQUEST = re.compile(r"\bMetadata ?[Rr]equest failed: (?:Local|Broker): ")
"""A request that carries no message."""
_DOWN = {"_TRANSPORT", "_ALL_BROKERS_DOWN", "_RESOLVE", "Broker transport failure"}
_DOWN |= {"All broker connections are down", "Host resolution failure"}
_EXPIRED = {"Message timed out", "_MSG_TIMED_OUT"}
_ONLY_PRODUCERS = {"_QUEUE_FULL", "Queue full", "_PURGE_QUEUE", "_PURGE_INFLIGHT"}
_ONLY_PRODUCERS |= {"_GAPLESS_GUARANTEE", "MSG_SIZE_TOO_LARGE", "Message size too large"}
_ONLY_PRODUCERS |= {"_UNKNOWN_PARTITION", "NOT_ENOUGH_REPLICAS", "Not enough in-sync replicas"}
_ONLY_PRODUCERS |= {"Broker failed to validate record", "All broker connections are down"}
"""What no fetch ends with (or nearly so): nothing else need say that it was a delivery."""


def read_callback(text: str) -> Fields | None:
    """What an application printed of a delivery report's error, or kcat of its own."""
    code = _KAFKA_ERROR.search(text)
    words = _WORDS.search(text)
    if code is not None:
        error = code["code"]
    elif words is not None:
        error = _known_words(words["error"])
    else:
        return None
    if _AT_LINE.search(text) is not None or _OTHER_REQUEST.search(text) is not None:
        return None  # librdkafka's own words about something else than a message
    if error in _EXPIRED:
        kind = "expired"
    elif _NOT_DELIVERY.search(text) is not None or not (
        error in _ONLY_PRODUCERS or _DELIVERY.search(text) is not None
    ):
        return None
    else:
        kind = "connection_failure" if error in _DOWN else "send_failed"
    fields: Fields = {"kind": kind, "detail": "rd_delivery_report", "error": error}
    after = _AFTER.search(text)
    fields["elapsed_ms"] = None if after is None else int(after.group(1))
    place = _GO_PARTITION.search(text)
    if place is not None:
        fields |= {"topic": place["topic"], "partition": int(place["partition"])}
    return fields


def _known_words(text: str) -> str:
    """The error's own words, without what an application printed behind them."""
    for known in RDKAFKA_WORDS:
        if text.startswith(known) and not text[len(known) : len(known) + 1].isalpha():
            return known
    error = text if "(s)" in text else text.partition("(")[0].partition(")")[0]
    return error.strip()


def _own_words(error: str) -> str:
    return error.removeprefix("Broker: ").removeprefix("Local: ").strip()
