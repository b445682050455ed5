"""What librdkafka prints, and the programs built on it: kcat, confluent-kafka, node-rdkafka.

Source: librdkafka, src/rdkafka.c rd_kafka_log_print. A line has a severity, seconds since 1970, a
facility and the instance: `%3|1714557600.200|FAIL|orders-svc#producer-1| [thrd:...]: ...`. Its
produce retries are printed only with `debug` set, and it has no "attempts left".
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from acktrail.logs.layout import Layout, Text
from acktrail.logs.pattern import Fields, Found, Pattern, integer
from acktrail.logs.times import from_epoch, read_timestamp

_OWN_MARKS = ("%", "#producer-", "thrd:", "RDKAFKA-", "LOG-", "afka")
SEVERITIES = ("EMERG", "ALERT", "CRIT", "ERROR", "WARNING", "NOTICE", "INFO", "DEBUG")

# %3|1714557600.200|FAIL|orders-svc#producer-1| [thrd:b1:9092/1]: b1:9092/1: Connect to ... failed
_LINE = re.compile(
    r"(?:%?(?P<severity>[0-7])\|)?\|?"
    r"(?:(?P<seconds>\d{9,10})\.(?P<millis>\d{3})\||(?<=[0-7]\|)[^|\s]{1,30}\|)?"
    r"(?P<facility>[A-Z][A-Z_0-9]{1,20})\|(?:(?P<instance>[^|\n]{0,300})(?:\||(?<=#producer-\d)\Z))?"
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
# Its head, whole, with a masked time, or cut; glued to whatever stands before it.
AT_LINE = re.compile(
    r"(?:^|[^\w|])(?=(?:%[0-7]\|(?:[^|\s]{1,30}\|)?|(?<!-)[0-7]\|(?:[\d.…]{1,14}\|)?|"
    r"\|?\d{9,10}\.\d{3}\|)[A-Z][A-Z_0-9]{1,20}\||"
    r"\|?[A-Z][A-Z_0-9]{1,20}\|[^|\s]{0,200}#(?:producer|consumer)-\d)"
)
# Releases before 0.8.6, and the C++ example: 1433288004.747 RDKAFKA-3-FAIL: pay#producer-0: ...
_OLD_LINE = re.compile(
    r"(?:(?P<seconds>\d{9,10})\.(?P<millis>\d{3}) )?(?<!\w)(?:[A-Z]{1,12}-)?(?:RDKAFKA|LOG)-"
    r"(?P<severity>[0-7])-(?P<facility>[A-Z][A-Z_0-9]{1,20}): "
    r"(?:(?P<instance>[^:\[\]\n]{0,200}#(?:producer|consumer)-\d{1,6}): )?(?P<text>.{0,3000})",
    re.DOTALL,
)
_BROKER = r"\S{1,200}:\d{1,5}/(?:bootstrap|\d{1,9})\]?: "
_LOSING = (
    r"(?:Connect|Failed to connect) to |(?:Receive|Send) failed|Disconnected|Failed to resolve|"
    r"timed out: disconnect|Timed out \d{1,9} in-flight|brokers? (?:are|is) down|handshake failed"
)
_FACILITY = (
    r"(?<![\w.])(?P<facility>FAIL|BROKERFAIL|REQTMOUT|TERMINATE|FATAL|MSGSET|TIMEOUT|REQERR|RETRY"
    r"|ERROR)"
)
_INSTANCE = r"(?<![^\s\[\]|:,'\"])(?P<instance>[^\s\[\]|:,'\"]{0,200}#producer-\d{1,6})"
# What applications make of it in their log callbacks.
_RETOLD = tuple(
    re.compile(expression, re.DOTALL)
    for expression in (
        # .NET: message=[thrd:...]: ..., name=orders-svc#producer-1, facility=FAIL, level=Error
        r"message=(?P<text>\[thrd:.{0,2000}?), name=(?P<instance>[^,\n]{0,200}#producer-\d{1,6}), "
        r"facility=(?P<facility>[A-Z_]{2,20})\b",
        # confluent-kafka-python with logger=: REQTMOUT [orders-svc#producer-1] [thrd:...]: ...
        _FACILITY + r" {0,4}\[(?P<instance>[^\]\n]{0,200}#producer-\d{1,6})\] (?P<text>.{0,3000})",
        # .NET: orders-svc#producer-1: REQTMOUT - [thrd:...], orders-svc#producer-1,7,MSGSET,[thrd:
        #       orders-svc#producer-1 - FAIL (3) - [thrd:...
        _INSTANCE
        + r"(?:[:,] ?| - )(?:[0-7],)?"
        + _FACILITY
        + r"(?: \([0-7]\))?(?: - |[:,] ?)(?P<text>.{0,3000})",
        # [REQTMOUT] [thrd:...]: ..., [7,BROKERFAIL]: [thrd:...]: ..., fac: 'FAIL', message: '[thrd:
        _FACILITY
        + r"(?P<instance>(?!))?(?:\([0-7]\))?[^\w\s]{0,3}[\s|]{1,4}(?:message: ')?"
        + rf"(?=\[thrd:|{_BROKER})(?P<text>.{{0,3000}})",
        # fluent-bit: fluent-bit#producer-1: [thrd:...]: ...
        r"(?P<facility>(?!))?" + _INSTANCE + r"[:,|]? ?(?=\[thrd:)(?P<text>.{0,3000})",
    )
)
# b1:9092/bootstrap: Connect to ipv4#127.0.0.1:9092 failed: ... (after 3ms in state CONNECT)
_BARE = re.compile(
    r"(?P<facility>(?!))?(?P<instance>(?!))?(?<!\S)"
    rf"(?P<text>(?:.?thrd:)?{_BROKER}(?:{_BROKER})?(?:{_LOSING}).{{0,3000}})",
    re.DOTALL,
)
LOST = re.compile(_LOSING)
"""How a connection ends, where nobody names the facility."""
_ADDRESS = re.compile(r"\S{1,200}:\d{1,5}/(?:bootstrap|\d{1,9})\Z")
AFTER = re.compile(r"\(after (-?\d{1,18})ms")
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
_TERMINATING = re.compile(r"Producer terminating with (\d{1,18}) messages?\b")
_FATAL = re.compile(
    r"Fatal error: (?:Broker: |Local: )?(?P<error>[^:\n]{1,200})(?:: (?P<reason>.*))?"
)
FATAL_FOR = re.compile(
    r"ProduceRequest for (?P<topic>[A-Za-z0-9._-]{1,249}) \[(?P<partition>-?\d{1,9})\] with "
    r"(?P<records>\d{1,9}) message\(s\)"
)


def read_line(_: Text, text: str) -> Found | None:
    """A line of librdkafka's own, if it reports what became of a produce request."""
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
    if not _is_producers(instance, found, layout):
        return None
    instance = "" if _ADDRESS.match(instance) is not None else instance
    fields = _read_facility(found["facility"], found["text"])
    if fields is None:
        return None
    fields["client_id"] = instance or None
    return Found(fields, found.start(), layout)


def _is_producers(instance: str, found: re.Match[str], layout: Layout) -> bool:
    """Whether librdkafka speaks, and not for a consumer: others draw tables and name levels."""
    text = found.string
    if "#consumer-" in instance:
        return False
    if "#producer-" not in instance and _NOT_A_PRODUCER.search(text) is not None:
        return False
    lost = LOST.search(found["text"]) is not None
    if not lost and not any(mark in text for mark in _OWN_MARKS):
        return False
    return lost or not (layout.level is None and found["facility"] == "ERROR")


def _time(named: Mapping[str, str | None]) -> str | None:
    seconds, millis, date = named.get("seconds"), named.get("millis"), named.get("date")
    if seconds is not None and millis is not None:
        return from_epoch(int(seconds), int(millis))
    return None if date is None else read_timestamp(date)


def _framed(text: str) -> re.Match[str] | None:
    at = AT_LINE.search(text)
    if at is not None:
        return _LINE.match(text, at.end())
    if "RDKAFKA-" in text or "LOG-" in text:
        return _OLD_LINE.search(text)
    return _NET_LINE.search(text) if "#producer-" in text else None


_NOT_A_PRODUCER = re.compile(
    r"onsumer|\[thrd:GroupCoordinator|StorageKafka|component_kind=.{0,2}source|kafka_source|"
    r"(?:Fetch|Heartbeat|JoinGroup|SyncGroup|LeaveGroup|OffsetCommit|OffsetFetch|ListOffsets)Request"
)
"""Who prints this, and names no instance, has sent no message."""


def _retold(text: str) -> re.Match[str] | None:
    if _NOT_A_PRODUCER.search(text) is not None:
        return None
    found = (expression.search(text) for expression in _RETOLD)
    retold = next((one for one in found if one is not None), None)
    if retold is None and "Local: " not in text and "KafkaError" not in text:
        return _BARE.search(text)
    return retold


def _read_facility(facility: str | None, text: str) -> Fields | None:
    node = _NODE.search(text)
    fields: Fields = {"node": None if node is None else integer(node.group(1))}
    if facility == "FATAL" or (facility in (None, "ERROR") and "Fatal error: " in text):
        # src/rdkafka.c: Fatal error: Broker: Broker received an out of order sequence number: ...
        fatal = _FATAL.search(text)
        of = FATAL_FOR.search(text)
        if of is not None:
            fields |= {"topic": of["topic"], "partition": int(of["partition"])}
            fields["records"] = int(of["records"])
        return fields | {
            "kind": "fatal_sequence",
            "detail": "rd_fatal",
            "error": facility if fatal is None else fatal["error"].strip(),
            "message": None if fatal is None else fatal["reason"],
        }
    if facility in ("FAIL", "BROKERFAIL", "REQTMOUT", "ERROR") or (
        facility is None and LOST.search(text) is not None
    ):
        # src/rdkafka_broker.c: connection lost or refused, requests timed out.
        after = AFTER.search(text)
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
    return _read_debug(fields, text)


def _read_debug(fields: Fields, text: str) -> Fields | None:
    # src/rdkafka_request.c, debug=msg:
    #   orders [3]: MessageSet with 12 message(s) (MsgId 118, BaseSeq 117) encountered error:
    #   Broker: Not enough in-sync replicas (actions Retry,MsgNotPersisted)
    refused = _MESSAGE_SET.search(text)
    if refused is not None:
        kind = _kind_after(refused["actions"])
        if kind is None:
            return None
        return fields | {
            "kind": kind,
            "detail": "rd_msgset",
            "topic": refused["topic"],
            "partition": int(refused["partition"]),
            "records": int(refused["records"]),
            "error": _own_words(refused["error"]),
        }
    return _read_request(fields, text)


def _read_request(fields: Fields, text: str) -> Fields | None:
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


def _own_words(error: str) -> str:
    return error.removeprefix("Broker: ").removeprefix("Local: ").strip()


_DROPPED = re.compile(
    r"Producer terminating with (\d{1,18}) messages?(?: \(|: use flush| still in)"
)


def _read_terminating(shown: Text, text: str) -> Found | None:
    """Closed with messages in its queue; an application may have printed it without its head."""
    line = read_line(shown, text)
    if line is not None and line.fields["kind"] == "dropped_at_close":
        return line
    found = _DROPPED.search(text)
    if found is None:
        return None
    fields: Fields = {"kind": "dropped_at_close", "detail": "rd_terminate"}
    return Found(fields | {"records": int(found.group(1))}, found.start())


PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        "dropped_at_close",
        "rd_terminate",
        ("Producer terminating with",),
        _read_terminating,
        sure=("Producer terminating with ",),
        example="Producer terminating with 5 messages (3805 bytes) still in queue or transit: use "
        "flush() to wait for outstanding message delivery",
    ),
    Pattern(
        "connection_failure",
        "rd_fail",
        ("#producer-", "thrd:", "RDKAFKA-", "REQTMOUT", "/bootstrap: ", "ms in state "),
        read_line,
        example="%3|1714557600.200|FAIL|orders-svc#producer-1| [thrd:b1:9092/1]: b1:9092/1: "
        "Connect to ipv4#10.0.0.5:9092 failed: Connection refused (after 3ms in state CONNECT)",
        opens=("^% ",),
    ),
)
