"""An empty answer is good news only where something was audited: what each lake answers."""

from __future__ import annotations

import csv
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from deltalake import write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from acktrail.answers import losses
from acktrail.audit.wire import Report, row_of_report
from acktrail.cli import main
from acktrail.contracts import Table
from acktrail.contracts.arrow import rows
from acktrail.contracts.bronze import AUDIT_REPORTS, CLUSTER_STATES, LOG_RECORDS, METRIC_SAMPLES
from acktrail.contracts.gold import DELIVERY_LEDGER, RETRY_BUDGETS
from acktrail.contracts.silver import AUDIT_PARTS, PRODUCER_EVENTS
from acktrail.contracts.vocabulary import State, Tier
from acktrail.lake import Change, Lake, Position
from acktrail.terminal.output import write_rows

AT = datetime(2026, 1, 31, 7, 0, tzinfo=UTC)
ZERO = {
    **dict.fromkeys(losses.STATES, 0), "residual": 0, "duplicates": 0, "redelivered": 0,
    "out_of_order": 0, "ghosts": 0, "forwarded": 0,
}  # fmt: skip


def account(**values: object) -> dict:
    made = {
        "cluster": "c", "session": "s", "topic": "payments", "group": "", "block": 0,
        "client_id": "pay", "sent": 1000, "acked": 1000, **ZERO, "delivered": 1000,
        "findings": [], "open": False, "bucket": "x00.0", "first_at": AT, "last_at": AT,
    }  # fmt: skip
    return made | values


def write(lake: Lake, table: Table, records: list[dict]) -> None:
    """Spark writes these tables; a test may stand in for it in a lake of its own."""
    partition = list(table.partition) or None
    write_deltalake(lake.path(table), rows(table, records), partition_by=partition)


def state(topic: str) -> dict:
    return {
        "cluster": "c", "source": "k", "topic": topic, "topic_id": "t", "partition": 0, "at": AT,
        "read_at": AT, "day": "2026-01-31",
    }  # fmt: skip


def report(topic: str) -> dict:
    made = Report("r", Tier.HEARTBEAT, topic, 1, 1, session="s")
    return row_of_report(made, "c", "audits", AT)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """payments and clicks are audited and healthy; refunds reported, orders only exists."""
    lake = Lake(tmp_path_factory.mktemp("lake"))
    write(lake, DELIVERY_LEDGER, [
        account(), account(group="billing"), account(block=1, sent=500, delivered=500),
        account(topic="clicks", last_at=AT + timedelta(seconds=12)),
    ])  # fmt: skip
    lake.append(CLUSTER_STATES, rows(CLUSTER_STATES, [state("payments"), state("orders")]))
    lake.append(AUDIT_REPORTS, rows(AUDIT_REPORTS, [report("payments"), report("refunds")]))
    return lake


def ask(lake: Lake, *words: str) -> Result:
    return CliRunner().invoke(main, [*words, "--lake", lake.uri])


NOT_AUDITED = "NoEvidence: orders is not audited; nothing is known about its messages."
CASES = [
    # words, exit code, stdout, and how stderr begins
    ((), 0,
     "No losses: 2 topics audited, 2,500 messages, evidence until 2026-01-31T07:00:12Z.", ""),
    (("--topic", "payments"), 0,
     "No losses on payments: 1 topic audited, 1,500 messages, evidence until 2026-01-31T07:00:00Z.",
     ""),
    (("--topic", "orders"), 2, "", NOT_AUDITED),
    (("--cluster", "c", "--topic", "orders"), 2, "", NOT_AUDITED),
    (("--topic", "refunds"), 2, "",
     "NoEvidence: Audit reports of refunds are in the lake, but no run has read them yet."),
    (("--topic", "pyments"), 2, "",
     "UsageError: No evidence in this lake names topic pyments. Did you mean payments?"),
    (("--topic", "zz"), 2, "",
     "UsageError: No evidence in this lake names topic zz. Known: clicks, orders, payments and 1"),
    (("--cluster", "prod"), 2, "",
     "UsageError: No evidence in this lake names cluster prod. Known: c."),
    (("--since", "2026-02-01"), 0, "",
     "There is no audit evidence at or after 2026-02-01T00:00:00Z. The newest is of 2026-01-31T07"),
    (("--topic", "payments", "--since", "2026-02-01"), 0, "",
     "There is no audit evidence of payments at or after 2026-02-01T00:00:00Z."),
    (("--format", "json"), 0, "",
     "Audit evidence ends at 2026-01-31T07:00:12Z; nothing is known about later messages."),
    (("--topic", "orders", "--format", "json"), 2, "", NOT_AUDITED),
]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "code", "stdout", "stderr"), CASES, ids=[str(c[0]) for c in CASES]
)
def test_losses_without_a_row(lake, words, code, stdout, stderr):
    done = ask(lake, "losses", *words)
    assert (done.exit_code, done.stdout.strip()) == (code, stdout)
    assert done.stderr.startswith(stderr) if stderr else not done.stderr
    assert done.stderr.count("\n") <= 1, "one line"


@pytest.mark.parametrize(("words", "code", "_out", "stderr"), CASES, ids=[str(c[0]) for c in CASES])
def test_ledger_refuses_the_same_questions(lake, words, code, _out, stderr):
    done = ask(lake, "ledger", *words)
    assert done.exit_code == code
    if code:
        assert done.stderr.startswith(stderr)
        assert not done.stdout


def test_csv_of_no_losses_is_a_header(lake):
    done = ask(lake, "losses", "--format", "csv")
    assert done.stdout.splitlines() == [",".join(losses.INCIDENT_COLUMNS)]


def test_what_is_undecided_is_no_all_clear(tmp_path):
    lake = Lake(tmp_path)
    write(lake, DELIVERY_LEDGER, [
        account(delivered=980, pending=20), account(group="g", delivered=970, pending=20,
                                                    inconclusive=10),
    ])  # fmt: skip
    said = ask(lake, "losses").stdout
    assert said.startswith("No losses found: 1 topic audited, 1,000 messages, ")
    assert "of them 20 pending and 10 inconclusive" in said


@pytest.mark.parametrize("state", losses.INCIDENT_STATES)
def test_losses_that_no_incident_lists_yet_are_no_all_clear(state, tmp_path):
    """A run that was killed between the ledger and the incidents."""
    lake = Lake(tmp_path)
    write(lake, DELIVERY_LEDGER, [account(delivered=996, **{state: 4}), account(topic="clicks")])
    done = ask(lake, "losses")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "The ledger has 4 lost messages that loss_incidents does not list" in done.stderr
    assert ask(lake, "losses", "--topic", "clicks").exit_code == 0
    assert ask(lake, "ledger").exit_code == 0


def test_reports_that_came_after_the_run_are_counted(tmp_path):
    lake = Lake(tmp_path)
    write(lake, DELIVERY_LEDGER, [account(last_at=datetime.now(UTC))])
    lake.append(AUDIT_REPORTS, rows(AUDIT_REPORTS, [report("payments")]))
    read = lake.version(AUDIT_REPORTS)
    noted = json.dumps({"job": "audit_parts", "run": 0, "consumed": {"audit_reports": read}})
    lake.create(AUDIT_PARTS)
    change = Change((Position("audit_parts", None, 0),), {"userMetadata": noted})
    lake.put(AUDIT_PARTS, [], change)
    assert not ask(lake, "losses").stderr
    lake.append(AUDIT_REPORTS, rows(AUDIT_REPORTS, [report("payments")] * 2))
    assert ask(lake, "losses").stderr == (
        "2 audit reports came in after the last `acktrail run`; "
        "this answer does not include them.\n"
    )


RUN_FIRST = "NoEvidence: Table {} does not exist yet. Run `acktrail run`.\n"
BEFORE_A_RUN = {
    # what the lake has: what each question says
    "audits": (AUDIT_REPORTS, {
        "losses": RUN_FIRST.format("loss_incidents"), "ledger": RUN_FIRST.format("delivery_ledger"),
        "explain x": RUN_FIRST.format("loss_incidents"),
        "budgets": "NoEvidence: This lake has no client logs and no metrics; nothing",
    }),
    "logs": (LOG_RECORDS, {
        "losses": "NoEvidence: This lake has no audits; nothing is known about lost messages.",
        "ledger": "NoEvidence: This lake has no audits; nothing is known about lost messages.",
        "losses --topic a": "UsageError: No evidence in this lake names topic a. It names none at "
                            "all. log_records could not be searched yet: run `acktrail run` first.",
        "budgets": RUN_FIRST.format("retry_budgets"),
    }),
    "metrics": (METRIC_SAMPLES, {"budgets": RUN_FIRST.format("retry_budgets")}),
}  # fmt: skip


@pytest.mark.parametrize(("table", "answers"), BEFORE_A_RUN.values(), ids=BEFORE_A_RUN)
def test_a_lake_that_no_run_has_read_answers_nothing(table, answers, tmp_path):
    lake = Lake(tmp_path)
    lake.create(table)
    if table is AUDIT_REPORTS:
        lake.append(table, rows(table, [report("payments")]))
    for words, said in answers.items():
        done = ask(lake, *words.split())
        assert (done.exit_code, done.stdout) == (2, ""), words
        assert done.stderr.startswith(said), (words, done.stderr)


def test_budgets_of_a_time_without_evidence(tmp_path):
    lake = Lake(tmp_path)
    lake.create(RETRY_BUDGETS)
    done = ask(lake, "budgets", "--as-of", "2026-01-31T07:00Z")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr.startswith("There is no client log and no metric from 2026-01-30T07:00:00Z")
    event = {
        "cluster": "c", "source": "l", "record_key": "r", "event_key": "e", "kind": "retry",
        "at": AT, "hour": "2026-01-31T06",
    }  # fmt: skip
    lake.append(PRODUCER_EVENTS, rows(PRODUCER_EVENTS, [event]))
    for view in ((), ("--fleet",)):
        done = ask(lake, "budgets", "--as-of", "2026-01-31T07:00Z", *view)
        assert done.stdout == "No producer is close to exhausting its retries.\n"
        assert not done.stderr


@st.composite
def ledgers(draw: st.DrawFn) -> list[dict]:
    """Accounts of a few places, with any numbers in any state."""
    found = []
    for block in range(draw(st.integers(1, 4))):
        counts = {s: draw(st.sampled_from((0, 0, 0, 1, 7, 32_768))) for s in losses.STATES}
        residual = draw(st.sampled_from((0, 0, 0, -3, 2)))
        found.append(
            account(
                cluster=draw(st.sampled_from(("c", "d"))), block=block,
                topic=draw(st.sampled_from(("a", "b"))), **counts, residual=residual,
                sent=sum(counts.values()) + residual, duplicates=draw(st.sampled_from((0, 5))),
            )
        )  # fmt: skip
    return found


@given(found=ledgers(), blocks=st.booleans())
def test_the_printed_states_of_a_line_add_up_to_sent(found, blocks, tmp_path_factory):
    """For any ledger; a count that is 0 in every line has no column."""
    place = Path(tmp_path_factory.getbasetemp() / "printed")
    columns = losses.shown_columns(found, blocks)
    with place.open("w+") as out:
        write_rows(found, columns, "csv", out)
        out.seek(0)
        printed = list(csv.DictReader(out))
    for line in printed:
        states = [s.value for s in State if s.value in line]
        assert sum(int(line[s]) for s in (*states, "residual") if s in line) == int(line["sent"])
    for name in columns[columns.index("delivered") + 1 :]:
        assert any(int(line[name]) for line in printed)
