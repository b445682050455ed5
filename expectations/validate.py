"""Ask every suite of a lake: read, validate by Great Expectations, collect findings.

Time is an argument. A table that was never written makes its checks undecided, never a pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acktrail.contracts.vocabulary import Grade, Outcome
from acktrail.errors import AcktrailError
from expectations.alert import UNDECIDED
from expectations.engine import context, gx
from expectations.from_contract import structural
from expectations.policy import Policy
from expectations.result import CheckResult, Finding
from expectations.suite import Check, Question, Suite

if TYPE_CHECKING:
    import pandas as pd

    from acktrail.lake import Lake

STRUCTURE = "fits_its_contract"
"""Name of the check that holds all structural expectations of a table."""
_STRUCTURE_SENTENCE = "The table does not hold what its contract promises; answers may be wrong."


@dataclass(frozen=True)
class Asked:
    """Everything a validation needs besides the lake."""

    question: Question
    policy: Policy
    runbooks: str

    def runbook(self, check: str) -> str:
        """The page for *check*."""
        return f"{self.runbooks.rstrip('/')}/{check}.md"


def validate(
    suites: Sequence[Suite], lake: Lake, asked: Asked, docs: Path | None = None
) -> list[CheckResult]:
    """The results of all *suites*; Data Docs are built into *docs* where it is given."""
    gx_context = context()
    source = gx_context.data_sources.add_pandas("lake")
    results: list[CheckResult] = []
    for suite in suites:
        frame = suite.view(lake, asked.question)
        if frame is None:
            results.extend(_blind(suite, check, asked) for check in suite.checks)
            continue
        raw = _run(gx_context, source, suite, frame, asked)
        results.extend(_read(suite, frame, raw, asked))
    if docs is not None:
        build_docs(gx_context, docs)
    return results


def _run(
    gx_context: Any, source: Any, suite: Suite, frame: pd.DataFrame, asked: Asked
) -> list[Any]:
    """Great Expectations' results, in the order the expectations were given."""
    expectations = []
    if suite.structural:
        expectations.extend(structural(suite.table))
    expectations.extend(bound(check, asked) for check in suite.checks)
    batch = source.add_dataframe_asset(suite.name).add_batch_definition_whole_dataframe("window")
    named = gx_context.suites.add(gx.ExpectationSuite(name=suite.name, expectations=expectations))
    definition = gx_context.validation_definitions.add(
        gx.ValidationDefinition(name=suite.name, data=batch, suite=named)
    )
    ran = definition.run(batch_parameters={"dataframe": frame}, result_format="SUMMARY")
    by_id = {result.expectation_config.id: result for result in ran.results}
    ordered = [by_id[expectation.id] for expectation in named.expectations]
    for result in ordered:
        _require_no_exception(suite, result)
    return ordered


def bound(check: Check, asked: Asked) -> Any:
    """The expectation of *check* with the time and the thresholds of this question."""
    changes: dict[str, Any] = {"notes": check.sentence}
    if hasattr(check.expectation, "as_of"):
        changes["as_of"] = asked.question.as_of.isoformat()
        changes["limits"] = tuple(asked.policy.limits(tuple(check.expectation.thresholds)))
    return check.expectation.copy(update=changes)


def _require_no_exception(suite: Suite, result: Any) -> None:
    raised = result.exception_info or {}
    nested = raised.values() if "raised_exception" not in raised else (raised,)
    for info in nested:
        if info.get("raised_exception"):
            raise AcktrailError(
                f"{suite.name}: {result.expectation_config.type} could not be evaluated: "
                f"{info.get('exception_message')}"
            )


def _read(
    suite: Suite, frame: pd.DataFrame, raw: Sequence[Any], asked: Asked
) -> Iterable[CheckResult]:
    split = len(raw) - len(suite.checks)
    if suite.structural:
        yield _structure(suite, frame, raw[:split], asked)
    for check, result in zip(suite.checks, raw[split:], strict=True):
        grade = asked.policy.grades.get(check.name, check.grade)
        details = (result.result or {}).get("details") or {}
        found = [Finding.from_json(f) for f in details.get("findings", ())]
        yield CheckResult(
            table=suite.table.name,
            check=check.name,
            grade=grade,
            rows_checked=len(frame),
            sentence=check.sentence,
            runbook=asked.runbook(check.name),
            findings=tuple(_addressed(f, check.name, grade, asked) for f in found),
        )


def _addressed(finding: Finding, check: str, grade: Grade, asked: Asked) -> Finding:
    """*finding* with the names of who is told, and of the window that expects it."""
    named = replace(
        finding,
        check=check,
        grade=Grade.WARN if finding.outcome is Outcome.UNDECIDED else grade,
        runbook=asked.runbook(check),
        owner=asked.policy.owner_of(finding),
    )
    return replace(named, muted_by=asked.policy.muted_by(named, asked.question.as_of))


def _structure(suite: Suite, frame: pd.DataFrame, raw: Sequence[Any], asked: Asked) -> CheckResult:
    broken = [r for r in raw if not r.success]
    keys = tuple(_described(r) for r in broken)
    finding = Finding(
        outcome=Outcome.FAIL,
        cluster="",
        topic="",
        group="",
        state="contract_broken",
        cause=suite.table.name,
        starts_at=asked.question.as_of,
        ends_at=None,
        because=f"{suite.table.name} breaks its contract: {'; '.join(keys[:3])}.",
        count=len(broken),
        keys=keys,
    )
    return CheckResult(
        table=suite.table.name,
        check=STRUCTURE,
        grade=Grade.FAIL,
        rows_checked=len(frame),
        sentence=_STRUCTURE_SENTENCE,
        runbook=asked.runbook(STRUCTURE),
        findings=(_addressed(finding, STRUCTURE, Grade.FAIL, asked),) if broken else (),
    )


def _described(result: Any) -> str:
    kwargs = result.expectation_config.kwargs
    where = kwargs.get("column") or ", ".join(kwargs.get("column_list") or ())
    count = (result.result or {}).get("unexpected_count")
    said = f"{result.expectation_config.type} {where}".strip()
    return f"{said} ({count} rows)" if count else said


def _blind(suite: Suite, check: Check, asked: Asked) -> CheckResult:
    """The result of a check whose table was never written."""
    told = suite.needs not in asked.policy.not_collected
    finding = Finding(
        outcome=Outcome.UNDECIDED,
        cluster="",
        topic="",
        group="",
        state=UNDECIDED,
        cause=f"no_{suite.table.name}",
        starts_at=asked.question.as_of,
        ends_at=None,
        because=(
            f"{suite.table.name} was never written, so nothing can be said about it: collect "
            f"{suite.needs or 'its evidence'} and run `acktrail run`, or name it under "
            "`not_collected` in the policy file."
        ),
        keys=(check.name,),
    )
    addressed = _addressed(finding, check.name, Grade.WARN, asked)
    grade = asked.policy.grades.get(check.name, check.grade)
    return CheckResult(
        table=suite.table.name,
        check=check.name,
        grade=grade,
        rows_checked=0,
        sentence=check.sentence,
        runbook=asked.runbook(check.name),
        findings=(addressed if told else replace(addressed, muted_by="not_collected"),),
    )


def build_docs(gx_context: Any, directory: Path) -> None:
    """Great Expectations' Data Docs of what was just validated, as files in *directory*."""
    for site in list(gx_context.get_site_names()):
        gx_context.delete_data_docs_site(site)
    gx_context.add_data_docs_site(
        "acktrail",
        {
            "class_name": "SiteBuilder",
            "store_backend": {
                "class_name": "TupleFilesystemStoreBackend",
                "base_directory": str(directory.absolute()),
            },
            "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
        },
    )
    gx_context.build_data_docs()
