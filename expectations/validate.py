"""Ask every suite of a lake: read, validate by Great Expectations, collect findings.

Time is an argument. A table that was never written, and a known gap in the evidence behind it,
make checks undecided, never a pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acktrail.contracts.vocabulary import Grade, Outcome
from acktrail.errors import AcktrailError
from expectations.docs import build_docs
from expectations.domain.expectation import missing
from expectations.engine import context, gx
from expectations.from_contract import structural
from expectations.gaps import known_gaps
from expectations.policy import Policy
from expectations.result import CheckResult, Finding
from expectations.suite import Check, Question, Suite

if TYPE_CHECKING:
    import pandas as pd

    from acktrail.lake import Lake

STRUCTURE = "fits_its_contract"
"""Name of the check that holds all structural expectations of a table."""
STRUCTURE_SENTENCE = "The table does not hold what its contract promises; answers may be wrong."


@dataclass(frozen=True)
class Asked:
    """Everything a validation needs besides the lake."""

    question: Question
    policy: Policy
    runbooks: str

    def runbook(self, check: Check) -> str:
        """The page for *check*: our own, or the one a user named."""
        return check.runbook or f"{self.runbooks.rstrip('/')}/{check.name}.md"

    def grade(self, check: Check) -> Grade:
        """The grade of *check*, which a policy may change."""
        return self.policy.grades.get(check.name, check.grade)

    def addressed(self, finding: Finding, check: Check) -> Finding:
        """*finding* with its check, who is told, and what expects it."""
        blind = finding.outcome is Outcome.UNDECIDED
        named = replace(
            finding,
            check=check.name,
            grade=Grade.WARN if blind else self.grade(check),
            runbook=self.runbook(check),
            owner=self.policy.owner_of(finding),
        )
        muted = self.policy.muted_by(named, self.question.as_of)
        if blind and finding.needs in self.policy.not_collected:
            muted = "not_collected"
        return replace(named, muted_by=muted)


def validate(
    suites: Sequence[Suite], lake: Lake, asked: Asked, docs: Path | None = None
) -> list[CheckResult]:
    """The results of all *suites*; Data Docs are built into *docs* where it is given."""
    gx_context = context()
    source = gx_context.data_sources.add_pandas("lake")
    gaps = known_gaps(lake, asked.question)
    results: list[CheckResult] = []
    for suite in suites:
        frame = suite.view(lake, asked.question)
        if frame is None:
            results.extend(_blind(suite, check, asked) for check in suite.checks)
            continue
        raw = _run(gx_context if docs else None, source, suite, frame, asked)
        results.extend(_read(suite, len(frame), raw, asked, gaps.get(suite.needs, ())))
    if docs is not None:
        build_docs(gx_context, docs)
    return results


def _run(
    documented: Any, source: Any, suite: Suite, frame: pd.DataFrame, asked: Asked
) -> list[Any]:
    """Great Expectations' results, in the order the expectations were given.

    *documented* is the context that keeps what Data Docs are built from; None to keep nothing.
    """
    expectations = structural(suite.table) if suite.structural else []
    expectations.extend(bound(check, asked) for check in suite.checks)
    batch = source.add_dataframe_asset(suite.name).add_batch_definition_whole_dataframe("window")
    for position, expectation in enumerate(expectations):
        expectation.meta = {"position": position}
    named = gx.ExpectationSuite(name=suite.name, expectations=expectations)
    given = {"dataframe": frame}
    if documented is None:
        ran = batch.get_batch(batch_parameters=given).validate(named, result_format="SUMMARY")
    else:
        named = documented.suites.add(named)
        definition = documented.validation_definitions.add(
            gx.ValidationDefinition(name=suite.name, data=batch, suite=named)
        )
        ran = definition.run(batch_parameters=given, result_format="SUMMARY")
    ordered = sorted(ran.results, key=lambda r: int(r.expectation_config.meta["position"]))
    for result in ordered:
        _require_no_exception(suite, result)
    return ordered


def bound(check: Check, asked: Asked) -> Any:
    """The expectation of *check* with the time and the thresholds of this question."""
    changes: dict[str, Any] = {"notes": f"{check.sentence} Runbook: {asked.runbook(check)}"}
    thresholds = getattr(check.expectation, "thresholds", None)
    if thresholds is not None:
        changes["as_of"] = asked.question.as_of.isoformat()
        changes["limits"] = (*asked.policy.limits(tuple(thresholds)), thresholds)
    return check.expectation.copy(update=changes)


def _require_no_exception(suite: Suite, result: Any) -> None:
    raised = result.exception_info or {}
    for info in (raised,) if "raised_exception" in raised else raised.values():
        if info.get("raised_exception"):
            raise AcktrailError(
                f"{suite.name}: {result.expectation_config.type} could not be evaluated: "
                f"{info.get('exception_message')}"
            )


def _read(
    suite: Suite, rows: int, raw: Sequence[Any], asked: Asked, gaps: Sequence[Finding]
) -> Iterable[CheckResult]:
    split = len(raw) - len(suite.checks)
    if suite.structural:
        yield _structure(suite, rows, raw[:split], asked)
    for check, result in zip(suite.checks, raw[split:], strict=True):
        found = _findings(suite, check, result, asked)
        failing = {f.cluster for f in found}
        found.extend(gap for gap in gaps if gap.cluster not in failing)
        yield _result(suite, check, rows, found, asked)


def _findings(suite: Suite, check: Check, result: Any, asked: Asked) -> list[Finding]:
    details = (result.result or {}).get("details") or {}
    if "findings" in details:
        return [Finding.from_json(f) for f in details["findings"]]
    if result.success:
        return []
    return [_plain(suite, check.name, [result], asked)]


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
        findings=tuple(asked.addressed(f, check) for f in found),
    )


def _structure(suite: Suite, rows: int, raw: Sequence[Any], asked: Asked) -> CheckResult:
    broken = [r for r in raw if not r.success]
    check = Check(None, Grade.FAIL, STRUCTURE_SENTENCE, named=STRUCTURE)
    found = [_plain(suite, "contract_broken", broken, asked)] if broken else []
    return _result(suite, check, rows, found, asked)


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
        starts_at=asked.question.as_of,
        ends_at=None,
        because=f"{suite.table.name}: {'; '.join(keys[:3])}.",
        count=len(broken),
        keys=keys,
    )


def _described(result: Any) -> str:
    kwargs = result.expectation_config.kwargs
    where = kwargs.get("column") or ", ".join(kwargs.get("column_list") or ())
    said = f"{result.expectation_config.type} {where}".strip()
    details = (result.result or {}).get("details") or {}
    if details.get("columns"):
        return ", ".join(f"{column} ({n} rows)" for column, n in details["columns"].items())
    count = (result.result or {}).get("unexpected_count")
    return f"{said} ({count} rows)" if count else said


def _blind(suite: Suite, check: Check, asked: Asked) -> CheckResult:
    """The result of a check whose table was never written."""
    finding = missing(
        cluster="",
        cause=f"no_{suite.needs}",
        starts_at=asked.question.as_of,
        because=(
            f"The lake holds no answers from {suite.needs}, so nothing can be said: collect and "
            "run `acktrail run`, or name it under `not_collected` in the policy file."
        ),
        keys=(check.name,),
        needs=suite.needs,
    )
    return _result(suite, check, 0, [finding], asked)
