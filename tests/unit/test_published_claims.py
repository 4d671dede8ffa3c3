"""The published claims that a study may take up: each names a lab that can test it, and a work that is listed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from command_line import call_lab

from measuretwice.base.errors import UserError
from measuretwice.lab import CheckedParams, published_labs
from measuretwice.lab.load import read_claims
from measuretwice.lab.schema.results import PublishedClaim
from measuretwice.measure.fields import known

ROOT = Path(__file__).parents[2]
LABS = published_labs(ROOT)
CLAIMS = read_claims(ROOT)


def test_there_are_twenty_and_each_has_a_name_of_its_own() -> None:
    assert len(CLAIMS) == len({claim.id for claim in CLAIMS}) == 20


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_a_lab_can_test_it(claim: PublishedClaim) -> None:
    lab = LABS[claim.lab]
    assert int(claim.trial) in lab.trials
    for setting in (claim.a, claim.b):
        if setting is not None:
            CheckedParams(lab, {**claim.set, **setting.set}, claim.id)
    assert all(known(name) for name in claim.quantity.split(" / "))
    assert (claim.b is None) <= (claim.compare == "mean")


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_its_source_is_among_the_works(claim: PublishedClaim) -> None:
    works = (ROOT / "docs/reference/bibliography.md").read_text(encoding="utf-8")
    assert f"{{ #{claim.source} }}" in works
    assert re.search(rf"^\[?{re.escape(claim.by)}\b|^{re.escape(claim.by)}", works, re.MULTILINE)


def test_what_cant_be_read_is_named(tmp_path: Path) -> None:
    assert read_claims(tmp_path) == []
    (tmp_path / "labs").mkdir()
    (tmp_path / "labs/claims.toml").write_text('[[claims]]\nid = "a"\n', encoding="utf-8")
    with pytest.raises(UserError, match=r"claims\.toml: claims\.0\.title"):
        read_claims(tmp_path)


def test_each_says_how_long_its_runs_take() -> None:
    """The page has a column for it, where all do."""
    assert all(claim.run_s and 0.5 < claim.run_s < 60 for claim in CLAIMS)


@pytest.mark.slow
@pytest.mark.kernel
@pytest.mark.parametrize("arm", ["a", "b"])
def test_westwood_s_queue_doesn_t_overflow(tmp_path: Path, arm: str) -> None:
    """With a limit of 200 packets slow start overflowed it with these two seeds, and the checker blamed the loss ratio."""
    claim = next(claim for claim in CLAIMS if claim.id == "westwood-wireless")
    setting = claim.a if arm == "a" else claim.b
    assert setting
    changes = {**claim.set, **setting.set}
    words = [part for name, value in changes.items() for part in ("--set", f"{name}={value}")]
    runs = ["--seed", "2", "--repeat", "2", "--out", tmp_path]
    done = call_lab("run", claim.lab, "--trial", claim.trial, *words, *runs)
    assert done.returncode == 0, done.stderr
    checked = call_lab("check", tmp_path)
    assert checked.stdout.count(": no finding") == 2, checked.stdout
