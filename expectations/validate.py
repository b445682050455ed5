"""Validate every suite on a lake: read its table, run Great Expectations, collect findings.

Time is an argument. A table that does not exist yet, a known gap in the evidence behind it, and a
check that raises an error are undecided, never a pass. One such check never stops the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acktrail.alerts.finding import (
    NOT_COLLECTED,
    NOT_EVALUATED,
    WAITING,
    CheckResult,
    Finding,
    scope_of,
)
from acktrail.contracts.runs import COVERAGE
from acktrail.contracts.vocabulary import Grade, Outcome
from acktrail.errors import TransientError
from acktrail.policy import KINDS, Policy
from expectations.client_owners import with_owners
from expectations.domain.evidence import STALE
from expectations.domain.expectation import missing, not_collected
from expectations.domain.structure import structural
from expectations.engine import build_docs, context, gx
from expectations.gaps import missing_evidence
from expectations.stale import NOTHING_WAITS, PENDING_CAUSE, Waiting
from expectations.suite import Check, Question, Suite

if TYPE_CHECKING:
    import pandas as pd

    from acktrail.lake import Lake

STRUCTURE = "fits_its_contract"
"""Name of the check that holds all structural expectations of a table."""
_STRUCTURE_CHECK = Check(
    None,
    Grade.FAIL,
    "The table does not hold what its contract promises; answers may be wrong.",
    named=STRUCTURE,
)


@dataclass(frozen=True)
class Asked:
    """Everything a validation needs besides the lake."""

    as_of: datetime
    policy: Policy
    runbooks: str
    """Address of the runbooks of our own checks."""
    waiting: Waiting = NOTHING_WAITS
    """Evidence that is not in the answers yet."""

    @property
    def question(self) -> Question:
        """The moment and the window that are asked about."""
        return Question(self.as_of, self.policy.window)

    def runbook(self, check: Check) -> str:
        """The page for *check*: our own, or the one a user named."""
        return check.runbook or f"{self.runbooks.rstrip('/')}/{check.name}.md"

    def grade(self, check: Check) -> Grade:
        """The grade of *check*, which a policy may change."""
        return self.policy.grade_of(check.name, check.grade)

    def addressed(self, finding: Finding, suite: Suite, check: Check) -> Finding:
        """*finding* with its check, its owner, what mutes it, and who must look again to end it.

        A check that cannot be evaluated keeps its grade, and nothing mutes it.
        """
        waits = finding.cause.startswith(PENDING_CAUSE)
        raised = finding.state == NOT_EVALUATED
        blind = finding.outcome is Outcome.UNDECIDED and not raised
        named = replace(
            finding,
            check=check.name,
            grade=Grade.WARN if blind else self.grade(check),
            runbook=self.runbook(check),
            owner=self.policy.owner_of(finding),
            found_by=(WAITING if waits else scope_of(suite.table.name, check.name),),
        )
        muted = "" if raised else self.policy.muted_by(named, self.as_of)
        if blind and finding.needs in self.policy.not_collected:
            muted = NOT_COLLECTED
        return replace(named, muted_by=muted)


def validate(
    suites: Sequence[Suite], lake: Lake, asked: Asked, docs: Path | None = None
) -> list[CheckResult]:
    """The results of all *suites*; Data Docs are built into *docs* where it is given."""
    gx_context = context()
    source = gx_context.data_sources.add_pandas("lake")
    gaps = _gaps(suites, lake, asked)
    results: list[CheckResult] = []
    for suite in suites:
        unknown = [*asked.waiting.before(suite.table, suite.needs), *gaps.get(suite.needs, ())]
        try:
            frame = suite.view(lake, asked.question)
            raw = None if frame is None else _run(gx_context, docs, source, suite, frame, asked)
        except TransientError:
            raise
        except Exception as error:  # a damaged table, or a fault of ours
            results.extend(_unreadable(suite, error, asked))
            continue
        if frame is None or raw is None:
            found = unknown[:1] or [_absent(suite, asked)]
            results.extend(_result(suite, check, 0, found, asked) for check in suite.checks)
            continue
        results.extend(_results(suite, len(frame), raw, asked, unknown))
    if docs is not None:
        build_docs(gx_context, docs)
    return with_owners(lake, results, asked.policy, asked.question)


def _gaps(suites: Sequence[Suite], lake: Lake, asked: Asked) -> Mapping[str, Sequence[Finding]]:
    """What is missing, by the kind of evidence; where that cannot be read, every kind is."""
    try:
        return missing_evidence(lake, asked.question, asked.waiting.inputs_of(COVERAGE))
    except TransientError:
        raise
    except Exception as error:
        unknown = not_evaluated(COVERAGE.name, _could_not_read(COVERAGE.name, error), asked)
        return {suite.needs: [unknown] for suite in suites}


def _run(
    gx_context: Any,
    docs: Path | None,
    source: Any,
    suite: Suite,
    frame: pd.DataFrame,
    asked: Asked,
) -> list[Any]:
    """Great Expectations' results, in the order the expectations were given.

    With *docs*, *gx_context* keeps what Data Docs are built from.
    """
    expectations = structural(suite.table) if suite.structural else []
    expectations.extend(bound(check, asked) for check in suite.checks)
    batch = source.add_dataframe_asset(suite.name).add_batch_definition_whole_dataframe("window")
    for position, expectation in enumerate(expectations):
        expectation.meta = {"position": position}
    named = gx.ExpectationSuite(name=suite.name, expectations=expectations)
    given = {"dataframe": frame}
    if docs is None:
        ran = batch.get_batch(batch_parameters=given).validate(named, result_format="SUMMARY")
    else:
        named = gx_context.suites.add(named)
        definition = gx_context.validation_definitions.add(
            gx.ValidationDefinition(name=suite.name, data=batch, suite=named)
        )
        ran = definition.run(batch_parameters=given, result_format="SUMMARY")
    return sorted(ran.results, key=lambda r: int(r.expectation_config.meta["position"]))


def bound(check: Check, asked: Asked) -> Any:
    """The expectation of *check* with the time and the thresholds of this question."""
    changes: dict[str, Any] = {"notes": f"{check.sentence} Runbook: {asked.runbook(check)}"}
    thresholds = getattr(check.expectation, "thresholds", None)
    if thresholds is not None:
        changes["as_of"] = asked.as_of.isoformat()
        changes["limits"] = (*asked.policy.limits(tuple(thresholds)), thresholds)
    return check.expectation.copy(update=changes)


def _error_of(result: Any) -> str | None:
    """What an expectation raised, as `KeyError: 'cluster'`; None where it was evaluated."""
    raised = result.exception_info or {}
    for info in (raised,) if "raised_exception" in raised else raised.values():
        if info.get("raised_exception"):
            trace = str(info.get("exception_traceback") or "").strip().splitlines()
            return trace[-1] if trace else str(info.get("exception_message"))
    return None


def _results(
    suite: Suite, rows: int, raw: Sequence[Any], asked: Asked, unknown: Sequence[Finding]
) -> Iterable[CheckResult]:
    """The results of a suite; what is *unknown* makes undecided what did not fail."""
    split = len(raw) - len(suite.checks)
    if suite.structural:
        broken = [r for r in raw[:split] if not r.success]
        found = [_plain(suite, "contract_broken", broken, asked)] if broken else []
        yield _result(suite, _STRUCTURE_CHECK, rows, found, asked)
    for check, result in zip(suite.checks, raw[split:], strict=True):
        error = _error_of(result)
        if error is not None:
            raised = not_evaluated(check.name, f"{check.name} raised {error}.", asked)
            yield _result(suite, check, rows, [raised], asked)
            continue
        details = (result.result or {}).get("details") or {}
        if "findings" in details:  # an expectation of ours
            found = [Finding.from_json(f) for f in details["findings"]]
        else:
            found = [] if result.success else [_plain(suite, check.name, [result], asked)]
        if any(u.cause.startswith(PENDING_CAUSE) for u in unknown):
            # A source is not stale while what it gave waits for a run.
            found = [f for f in found if f.state != STALE]
        failing = {f.cluster for f in found}
        found.extend(gap for gap in unknown if gap.cluster not in failing)
        yield _result(suite, check, rows, found, asked)


def _result(
    suite: Suite, check: Check, rows: int, found: Iterable[Finding], asked: Asked
) -> CheckResult:
    return CheckResult(
        table=suite.table.name,
        check=check.name,
        grade=asked.grade(check),
        rows_checked=rows,
        sentence=check.sentence,
        runbook=asked.runbook(check),
        findings=tuple(asked.addressed(f, suite, check) for f in found),
    )


def scopes_of(suites: Iterable[Suite]) -> set[str]:
    """Everything that *suites* can look at, as `alerts_due` takes it."""
    return {
        scope_of(suite.table.name, check.name)
        for suite in suites
        for check in (*suite.checks, *((_STRUCTURE_CHECK,) if suite.structural else ()))
    }


def _plain(suite: Suite, state: str, broken: Sequence[Any], asked: Asked) -> Finding:
    """The finding of expectations that are Great Expectations' own."""
    keys = tuple(_described(r) for r in broken)
    return Finding(
        outcome=Outcome.FAIL,
        cluster="",
        topic="",
        group="",
        state=state,
        cause=suite.table.name,
        starts_at=asked.as_of,
        ends_at=None,
        because=f"{suite.table.name}: {'; '.join(keys[:3])}.",
        count=len(broken),
        keys=keys,
    )


def _described(result: Any) -> str:
    kwargs = result.expectation_config.kwargs
    where = kwargs.get("column") or ", ".join(kwargs.get("column_list") or ())
    said = f"{result.expectation_config.type} {where}".strip()
    error = _error_of(result)
    if error is not None:
        return f"{said} raised {error}"
    details = (result.result or {}).get("details") or {}
    if details.get("columns"):
        return ", ".join(f"{column} ({n} rows)" for column, n in details["columns"].items())
    count = (result.result or {}).get("unexpected_count")
    return f"{said} ({count} rows)" if count else said


def _absent(suite: Suite, asked: Asked) -> Finding:
    """Why the checks on a table that does not exist yet are undecided."""
    because = f"Table {suite.table.name} does not exist yet. Run `acktrail run`."
    if suite.needs == "evidence":
        because = "Nothing was collected yet. Start the agents, then run `acktrail run`."
    return missing(
        cluster="",
        cause=f"no_{suite.needs}",
        starts_at=asked.as_of,
        because=not_collected(suite.needs) if suite.needs in KINDS else because,
        needs=suite.needs,
    )


def _unreadable(suite: Suite, error: Exception, asked: Asked) -> Iterable[CheckResult]:
    """The results of a suite whose table cannot be read: one finding, in every check of it."""
    found = not_evaluated(suite.table.name, _could_not_read(suite.name, error), asked)
    checks = (_STRUCTURE_CHECK, *suite.checks) if suite.structural else suite.checks
    return [_result(suite, check, 0, [found], asked) for check in checks]


def _could_not_read(name: str, error: Exception) -> str:
    return f"{name} could not be read: {type(error).__name__}: {error}"


def not_evaluated(cause: str, because: str, asked: Asked) -> Finding:
    """The finding that a check could not be evaluated, so that nothing is known of it."""
    return Finding(
        outcome=Outcome.UNDECIDED,
        cluster="",
        topic="",
        group="",
        state=NOT_EVALUATED,
        cause=cause,
        starts_at=asked.as_of,
        ends_at=None,
        because=f"{because} The other checks were evaluated. Report this text as a fault of "
        "acktrail unless it names something to mend.",
    )
