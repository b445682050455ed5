"""What a task of the ledger's job makes of its batches."""

from __future__ import annotations

import pyarrow as pa

from acktrail.aliases import Aliases
from acktrail.audit.wire import Sighting, encode_sightings
from acktrail.contracts.vocabulary import Tier
from pipelines.gold.delivery_ledger import account_sessions
from tests.worlds.evidence import Evidence
from tests.worlds.judged import session_rows

MINUTE = 1_800_000_000_000


def test_accounts_have_the_names_that_the_alias_rules_give():
    told = [Sighting("s", "t", q, Tier.ACKED, MINUTE, 0, offset=q) for q in range(3)]
    evidence = Evidence(encode_sightings(told, "p", 1, MINUTE))
    beat = {
        "kind": "heartbeat", "ended_ms": MINUTE, "number": 1, "reporter": "p", "minutes": [],
        "settings": {"client_id": "legacy-p", "host": "pod-7"}, "closed": True,
        "exited": False, "received_ms": MINUTE,
    }  # fmt: skip
    place = {"cluster": "c", "topic": "t", "slice": 0, "session": "s"}
    rows = [place | row for row in (beat, *session_rows(evidence, "s"))]
    batch = pa.RecordBatch.from_pylist(rows, pa.unify_schemas([_schema(row) for row in rows]))
    rules = [{"field": "client_id", "match": "^legacy-(.+)$", "client_id": r"\1", "host": "app"}]
    for aliases, names in ((Aliases(), ("legacy-p", "pod-7")), (Aliases(rules), ("p", "app"))):
        (made,) = account_sessions([batch], aliases)
        (account,) = made.to_pylist()
        assert (account["client_id"], account["host"]) == names


def _schema(row):
    return pa.RecordBatch.from_pylist([row]).schema
