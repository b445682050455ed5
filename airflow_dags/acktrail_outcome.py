"""What an exit of the `acktrail` command means for a schedule. Standard library only.

| exit code             | meaning                                     | what the task does       |
| --------------------- | ------------------------------------------- | ------------------------ |
| 0                     | fine                                        | succeeds                 |
| 75, or ended by signal | something did not answer, or it was stopped | tries again by itself    |
| 1 with findings       | expectations failed; alerts were delivered  | fails, with the findings |
| 2, and anything else  | a person must change something              | fails, with the error    |
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

Record = dict[str, Any]

CHECKS_FAILED = 1
TRY_AGAIN = 75
SIGNALLED = range(129, 160)
"""A shell's way to say that a signal ended the command: 128 + its number."""
ERROR_LINES = 12
"""How much of the end of stderr may belong to the error."""
KEYS_SHOWN = 3
"""Of the evidence of one finding; the XCom `findings` has all."""

_NOT_EVALUATED = "check_not_evaluated"
"""State of a finding that says that the check itself could not be evaluated."""
_ERROR = re.compile(r"(?:[a-z_]+\.)*[A-Z]\w+: ")
"""The first line of an error: its type, then what, where and what to do."""


class Fate(Enum):
    """What becomes of the task."""

    FINE = "fine"
    TRY_AGAIN = "try again"
    CHECKS_FAILED = "checks failed"
    BROKEN = "broken"


@dataclass(frozen=True)
class Outcome:
    """What a command's exit means, and what to tell the person on call."""

    fate: Fate
    said: str
    """For the end of the task's log."""
    records: tuple[Record, ...] = ()
    """What it printed on stdout, one per line of JSON."""
    findings: tuple[Record, ...] = ()
    """The checks that failed; each has its sentence, its runbook and what it found."""


def outcome_of(code: int, stdout: str, stderr: Sequence[str]) -> Outcome:
    """What exit *code* means, given what was printed; *stderr* is its last lines."""
    records = read_records(stdout)
    if code == 0:
        return Outcome(Fate.FINE, "Done.", records)
    if code == TRY_AGAIN:
        return Outcome(Fate.TRY_AGAIN, f"Will be tried again: {error_in(stderr)}", records)
    if code < 0 or code in SIGNALLED:
        signal = -code if code < 0 else code - 128
        said = f"Signal {signal} ended the command, which is safe to repeat: will be tried again."
        return Outcome(Fate.TRY_AGAIN, said, records)
    failed = tuple(record for record in records if is_failed_check(record))
    if code == CHECKS_FAILED and failed:
        return Outcome(Fate.CHECKS_FAILED, tell(failed), records, failed)
    return Outcome(Fate.BROKEN, f"Exit code {code}: {error_in(stderr)}", records)


def read_records(stdout: str) -> tuple[Record, ...]:
    """The JSON objects among the lines of *stdout*."""
    records = []
    for line in stdout.splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            records.append(value)
    return tuple(records)


def is_failed_check(record: Record) -> bool:
    """Whether *record* is the answer of a check that must fail the command."""
    raised = any(_is_raised(finding) for finding in record.get("findings") or ())
    return raised or (record.get("outcome") == "fail" and record.get("grade") == "fail")


def _is_raised(finding: Record) -> bool:
    return finding.get("state") == _NOT_EVALUATED


def error_in(stderr: Sequence[str]) -> str:
    """The error at the end of *stderr*: from the line that names its type to the last one."""
    lines = [line.rstrip() for line in stderr if line.strip()][-ERROR_LINES:]
    if not lines:
        return "it printed no error."
    for start in reversed(range(len(lines))):
        if _ERROR.match(lines[start]):
            return "\n".join(lines[start:])
    return lines[-1]


def told(records: Sequence[Record]) -> list[str]:
    """What a command printed, for the log: a line for each record, and what was found."""
    lines = []
    for record in records:
        if "check" in record:
            lines.append(_check_line(record))
            lines += [f"  - {finding.get('because')}" for finding in record.get("findings") or ()]
            continue
        shown = [f"{key}={value}" for key, value in record.items() if value not in (None, "", [])]
        if len(shown) > 1:
            lines.append("  ".join(shown))
    return lines


def _check_line(record: Record) -> str:
    """A check that passed by its name; any other with the sentence that says why it matters."""
    name = f"{record.get('check')} ({record.get('table')})"
    if record.get("outcome") == "pass":
        return f"pass: {name}"
    grade = " of grade warn" if record.get("grade") == "warn" else ""
    return f"{record.get('outcome')}{grade}: {name}: {record.get('sentence')}"


def tell(failed: Sequence[Record]) -> str:
    """The checks that failed, as the person woken up should read them."""
    parts = [f"{len(failed)} check(s) failed. Every alert was delivered."]
    for record in failed:
        wrong = record.get("outcome") == "fail"
        said = record.get("sentence") if wrong else "It could not be evaluated."
        parts.append(f"{record.get('check')} ({record.get('table')}): {said}")
        for finding in record.get("findings") or ():
            failed_here = finding.get("outcome") == "fail" or _is_raised(finding)
            if failed_here and not finding.get("muted_by"):
                parts.append(f"  - {finding.get('because')}{_keys(finding)}")
        parts.append(f"  Runbook: {record.get('runbook')}")
    return "\n".join(parts)


def _keys(finding: Record) -> str:
    keys = [str(key) for key in finding.get("keys") or ()]
    shown = ", ".join(keys[:KEYS_SHOWN])
    return f" [{shown}{' …' if len(keys) > KEYS_SHOWN else ''}]" if keys else ""
