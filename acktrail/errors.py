"""Our errors.

* AcktrailError                 anything this project raises on purpose
  * TerminalError               trying again cannot help: fix something first
    - ConfigError               a setting is missing, unknown or wrong
    - UsageError                the command was called in a way it cannot serve
    - NoEvidence                the lake holds nothing that answers the question
    - ContractError             rows do not fit their table, or a table its contract
    - PositionConflict          another writer has moved this source's position
    - LakeDamaged               a table's files or log cannot be trusted
    - LakeInaccessible          this user or this file system cannot read or write the lake
    - UnsupportedTable          a table uses Delta features that are not supported
    - ArtifactError             a jar or program we need is not to be had, or is the wrong one
    - ChecksFailed              expectations failed; every alert was delivered first
    - LabError                  the lab could not do what a scenario asked
  * TransientError              trying again may help: the scheduler should retry
    - SourceUnavailable         a server, file system or topic did not answer
      - PartialResponse         it answered, and said that something is missing
      - RangeTooLarge           it found the range too large: ask for less at a time
    - SourceHeld                another process reads this source, and was there first
    - LakeBusy                  other writers kept winning; nothing was written
      - Overtaken               another writer changed what this commit was computed from
    - AlertUndelivered          a receiver did not take an alert; it stays in the outbox

An error says what happened, where, and what to do next. Its exit code says whether a scheduler
should try again.
"""

from __future__ import annotations


class AcktrailError(Exception):
    """Anything this project raises on purpose."""

    exit_code = 2


class TerminalError(AcktrailError):
    """Trying again cannot help: fix something first."""


class ConfigError(TerminalError):
    """A setting is missing, unknown or wrong."""


class UsageError(TerminalError):
    """The command was called in a way it cannot serve."""


class NoEvidence(TerminalError):
    """The lake holds nothing that answers the question; the message says what to collect or run."""


class ContractError(TerminalError):
    """Rows do not fit their table, or a table does not fit its contract."""


class PositionConflict(TerminalError):
    """Another writer has moved this source's position: stop, do not write."""


class LakeDamaged(TerminalError):
    """A table's files or log cannot be trusted; the message names the file and the remedy."""


class LakeInaccessible(TerminalError):
    """This user or this file system cannot read or write the lake; its tables are not damaged."""


class UnsupportedTable(TerminalError):
    """A table uses Delta features that are not supported."""


class ArtifactError(TerminalError):
    """A jar or program we need is not to be had, or is not what it should be."""


class ChecksFailed(TerminalError):
    """Expectations failed. Raised only after every alert was delivered."""

    exit_code = 1


class LabError(TerminalError):
    """The lab could not do what a scenario asked."""


class TransientError(AcktrailError):
    """Trying again may help: the scheduler should retry."""

    exit_code = 75  # EX_TEMPFAIL


class SourceUnavailable(TransientError):
    """A server, file system or topic did not answer."""


class PartialResponse(SourceUnavailable):
    """A server answered, and said that something is missing: nothing of it is used."""


class RangeTooLarge(SourceUnavailable):
    """A server found the range too large: ask for less at a time."""


class SourceHeld(TransientError):
    """Another process reads this source, and was there first; it may go away."""


class LakeBusy(TransientError):
    """Other writers kept winning; nothing was written."""


class Overtaken(LakeBusy):
    """Another writer changed what this commit was computed from: compute it again."""


class AlertUndelivered(TransientError):
    """A receiver did not take an alert; it stays in the outbox."""
