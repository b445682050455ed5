"""Variants of the recorded incident, through the real jobs: nothing false, and gone on with."""

from __future__ import annotations

import json

import pytest

from acktrail.operate import lab_variants
from acktrail.operate.lab_variants import score_variants, write_variants
from lab import record, variants
from lab.variant_score import BEGIN, END, by_kind
from pipelines import session
from tests.laws.incident import INCIDENT

KEPT = ("full", "clock of payments-api -90 s", "asked after 220 s")


@pytest.fixture
def few(monkeypatch, spark):
    """A few variants of all, on the session of the tests."""
    of_all = variants.variants_of
    chosen = lambda place: [v for v in of_all(place) if v.name in KEPT]  # noqa: E731
    monkeypatch.setattr(variants, "variants_of", chosen)
    monkeypatch.setattr(session, "build", lambda: spark)
    monkeypatch.setattr(session, "stop", lambda _spark: None)


@pytest.mark.usefixtures("few")
def test_variants_of_the_recorded_incident(tmp_path, monkeypatch, capsys):
    evidence = tmp_path / "demo-incident"
    record.replay(INCIDENT, evidence)
    places, results = {"demo-incident": evidence}, tmp_path / "results"
    scores = score_variants(places, results, tmp_path / "scratch")
    assert {each.variant for each in scores} == set(KEPT)
    for each in scores:
        assert (each.score.false_losses, each.score.false_skips) == (0, 0), each.variant
        assert each.score.residual == 0
    kinds = {kind.kind: kind for kind in by_kind(scores)}
    assert kinds["full"].found > 0
    assert kinds["one clock -90 s"].found >= 0.95 * kinds["full"].found
    assert 0 < kinds["asked during the run"].known <= kinds["full"].known
    page = tmp_path / "page.md"
    page.write_text(f"{BEGIN}\n{END}\n")
    write_variants(scores, "json", page)
    assert len(json.loads(capsys.readouterr().out)["variants"]) == len(KEPT)
    assert "| full | 1 | 0 | 0 |" in page.read_text()

    # Interrupted before one result was written: that one is made, the others are taken as they are.
    (lost,) = results.rglob("clock-of-*.json")
    kept = lost.read_text()
    lost.unlink()
    done = []

    def written_again(views, *_rest):
        done.extend(view.variant.name for view in views)
        lost.write_text(kept)

    monkeypatch.setattr(lab_variants, "_score", written_again)
    assert score_variants(places, results, tmp_path / "scratch") == scores
    assert done == ["clock of payments-api -90 s"]
