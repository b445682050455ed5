"""The Java client's encoder: byte for byte what acktrail's own is, for vectors and at random."""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from acktrail.audit import wire
from acktrail.audit.send_errors import error_name, tier_of_error
from acktrail.contracts.vocabulary import Tier
from tests.integration.java_client import OLDEST, java

PAGE = Path("docs/wire.md").read_text(encoding="utf-8")
REPORTS = re.findall(r"```json\n(.*?)\n```", PAGE, re.DOTALL)
FIELDS = {
    "reporter": "reporter",
    "number": "number",
    "reported_ms": "reportedMs",
    "session": "session",
    "partition": "partition",
    "group": "group",
    "block": "block",
    "part": "part",
    "leader_epoch": "leaderEpoch",
    "first_offset": "firstOffset",
    "last_offset": "lastOffset",
    "records": "records",
    "ids": "ids",
    "assignment": "assignment",
    "errors": "errors",
    "settings": "settings",
    "minutes": "minutes",
    "began_ms": "beganMs",
    "ended_ms": "endedMs",
    "closed": "closed",
    "cluster_id": "clusterId",
    "outcomes": "outcomes",
    "dropped": "dropped",
    "metrics": "metrics",
}
TEXTS = ("orders", "Größe-1", 'a"b\\c', "tab\tnew\nline", "雪🙂", "\x00\x1f\x7f")


def answers(lines: Iterable[str]) -> list[str]:
    done = subprocess.run(
        [*java(OLDEST, "-Dfile.encoding=UTF-8"), "io.acktrail.WireLines"],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout.splitlines()


def joined(numbers: Iterable[int]) -> str:
    return " ".join(map(str, numbers))


def text(value: str) -> str:
    return value.encode("utf-16-be").hex()


def row_line(report: wire.Report) -> str:
    words = ["row", report.tier.value, text(report.topic)]
    for name, java_name in FIELDS.items():
        value = getattr(report, name)
        if value is None or value in ({}, ()):
            continue
        if isinstance(value, bytes):
            value = value.hex()
        elif isinstance(value, str):
            value = text(value)
        elif isinstance(value, bool):
            value = str(value).lower()
        elif isinstance(value, dict):
            plain = name in ("outcomes", "dropped", "metrics")
            value = "&".join(f"{text(k)}:{v if plain else text(v)}" for k, v in value.items())
        elif isinstance(value, tuple | list):
            value = joined(value)
        words.append(f"{java_name}={value}")
    return "\t".join(words)


def random_report(chance: random.Random) -> wire.Report:
    def some(*values):
        return chance.choice(values)

    ids = sorted(chance.sample(range(wire.BLOCK_IDS), chance.randrange(1, 50)))
    return wire.Report(
        reporter=f"{chance.getrandbits(128):032x}",
        tier=some(*Tier),
        topic=some(*TEXTS),
        number=chance.randrange(1 << 40),
        reported_ms=chance.randrange(1 << 41),
        session=some("", wire.new_session(1_790_000_000_000)),
        partition=some(-1, 0, 7),
        group=some("", *TEXTS),
        block=some(-1, 0, 1 << 33),
        part=some(0, 3),
        leader_epoch=some(None, 0, 4),
        first_offset=some(None, 0, 1 << 40),
        last_offset=some(None, 1 << 41),
        records=some(0, 17),
        ids=some(None, wire.encode_ids(ids)),
        assignment=some(None, 1),
        errors=some({}, {"TimeoutException(expired)": "3"}),
        settings=some({}, {"client_id": some(*TEXTS), some(*TEXTS): "x"}),
        minutes=some((), (29_000_000, 0, 29_000_001, 70_000)),
        began_ms=some(None, 5),
        ended_ms=some(None, 6),
        closed=some(False, True),
        cluster_id=some(None, "4L6g3nShT-eMCtK--X86sw"),
        outcomes=some({}, {"0": 5, "1": 9}),
        dropped=some({}, {"acked": 3}),
        metrics=some({}, {"record-send-total": float(chance.randrange(1000))}),
    )


def test_messages_are_those_of_the_page_and_of_the_encoder_here():
    chance = random.Random(22)
    wanted = [
        # Our reporters give offsets in the run list, and leave out what `steps_back` says.
        [replace(report, steps_back=None) for report in wire.decode_reports(page.encode())]
        for page in REPORTS
    ]
    wanted += [[random_report(chance) for _ in range(chance.randrange(1, 6))] for _ in range(200)]
    lines = [line for m in wanted for line in (*map(row_line, m), "message")]
    messages = [answer for answer in answers(lines) if answer]
    assert len(messages) == len(wanted)
    for message, reports in zip(messages, wanted, strict=True):
        assert message.encode() == wire.encode_reports(reports)
        assert wire.decode_reports(message.encode()) == reports


def random_ids(chance: random.Random) -> list[int]:
    """From a few runs to hardly any: both encodings of ids."""
    step = chance.choice((1, 2, 3, 50, 3000))
    ids, at = [], chance.randrange(3000)
    while at < wire.BLOCK_IDS:
        end = min(wire.BLOCK_IDS, at + chance.randrange(1, 2 * step))
        ids += range(at, end)
        at = end + chance.randrange(1, 1 + chance.choice((1, step)))
    return ids


def test_run_lists_are_those_of_the_encoder_here():
    chance = random.Random(23)
    lines, wanted = [], []
    for ids in ([], [0], [32767], list(range(wire.BLOCK_IDS))):
        lines.append(f"ids\t{joined(ids)}")
        wanted.append(wire.encode_ids(ids).hex())
    for _ in range(60):
        ids = random_ids(chance)
        lines.append(f"ids\t{joined(ids)}")
        wanted.append(wire.encode_ids(ids).hex())
        few = ids[: chance.randrange(1, 3000)]
        at, offsets = chance.randrange(1 << 40), []
        for _ in few:
            at += chance.choice((1, 1, 1, 1, 7, -3))
            offsets.append(max(at, 0))
        lines.append(f"offsets\t{joined(few)}\t{joined(offsets)}")
        wanted.append(wire.encode_ids(few, offsets).hex())
        lines.append(f"forget\t{wanted[-1]}")
        wanted.append(wire.encode_ids(few).hex())
        first, last = sorted(chance.sample(range(wire.BLOCK_IDS), 2))
        lines.append(f"range\t{first}\t{last}")
        wanted.append(wire.encode_ids(range(first, last + 1)).hex())
    assert answers(lines) == wanted


def test_ids_that_come_twice_keep_every_offset():
    lines = ["places\t5 6 5 7 5 6\t50 51 90 52 50 91"]
    first, second = (bytes.fromhex(one) for one in answers(lines)[0].split())
    assert first == wire.encode_ids([5, 6, 7], [50, 51, 52])
    assert second == wire.encode_ids([5, 6], [90, 91])


ERRORS = (
    ("TimeoutException", "Topic orders not present in metadata after 1000 ms."),
    ("TimeoutException", "Failed to update metadata after 60000 ms."),
    ("TimeoutException", "Failed to allocate 16384 bytes within the configured max blocking time"),
    ("TimeoutException", "Expiring 7 record(s) for orders-0:120000 ms has passed"),
    ("TimeoutException", "The request timed out."),
    ("RecordTooLargeException", "The message is 9 bytes when serialized which is larger than 1"),
    ("RecordTooLargeException", "The request included a message larger than the max"),
    ("NotEnoughReplicasException", ""),
    ("NotEnoughReplicasAfterAppendException", ""),
    ("TopicAuthorizationException", "Not authorized to access topics: [orders]"),
    ("ProducerFencedException", ""),
    ("SomethingNew", "of a later version"),
)


@pytest.mark.parametrize("package", ["org.apache.kafka.common.errors.", ""])
def test_errors_have_the_names_and_the_meaning_that_they_have_here(package):
    said = answers(f"error\t{package}{name}\t{message}" for name, message in ERRORS)
    for (name, message), answer in zip(ERRORS, said, strict=True):
        wanted = error_name(package + name, message)
        assert answer.split("\t") == [wanted, tier_of_error(wanted).value]


def test_every_error_that_means_not_written_is_known_to_both():
    source = Path("clients/java/src/main/java/io/acktrail/SendErrors.java").read_text()
    named = set(re.findall(r'^ {12}"([^"]+)"', source, re.MULTILINE))
    from acktrail.audit.send_errors import _NOT_WRITTEN

    assert named == {name for name in _NOT_WRITTEN if name.partition("(")[0].endswith("Exception")}


def test_a_session_has_its_start():
    (session,) = answers(["session\t1790000000123"])
    assert wire.session_started_ms(session) == 1_790_000_000_123
