"""The table after a run: columns that say nothing aren't there."""

from dataclasses import replace
from pathlib import Path

import pytest

from measuretwice.cli.terminal import print_table
from measuretwice.course.wording import HEADINGS, row_of
from measuretwice.lab import load_lab
from measuretwice.runs.recorded import read_set

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("name", "has_model"), [("mathis", True), ("queues", False)])
def test_no_column_is_empty(name: str, has_model: bool, capsys: pytest.CaptureFixture[str]) -> None:
    lab = load_lab(ROOT, name)
    recorded = read_set(ROOT / "sample-data" / lab.folder.name / "case-01-broken")
    results = [run.result for run in recorded.runs]
    print_table(lab, results, verdicts=False)
    said = capsys.readouterr().out
    assert ("model" in said) is has_model
    assert "goodput" in said
    assert " - " not in said.splitlines()[2]


def test_a_share_is_written_as_people_write_it() -> None:
    lab = load_lab(ROOT, "mathis")
    run = read_set(ROOT / "sample-data" / lab.folder.name / "case-01-fixed").runs[0]
    row = dict(zip(HEADINGS, row_of(lab, run.result), strict=True))
    assert row["p\nset"] == "0.157"
    assert row["p\nmeasured"].startswith("0.15")


def test_a_fixed_run_says_where_the_model_makes_no_claim() -> None:
    lab = load_lab(ROOT, "mathis")

    def ratio(name: str) -> tuple[str, bool]:
        result = read_set(ROOT / "sample-data" / lab.folder.name / name).runs[0].result
        return row_of(lab, result)[HEADINGS.index("ratio")], result.comparable

    first, mended = ratio("case-10-broken"), ratio("case-01-fixed")
    assert (first[1], mended[1]) == (False, False)
    # Whether it holds may be the question, of a first try and of all that is changed of it.
    assert "claim" not in first[0]
    result = read_set(ROOT / "sample-data" / lab.folder.name / "case-10-broken").runs[0].result
    tried = replace(result, params={**result.params, "sample_interval_s": 0.5})
    assert "claim" not in row_of(lab, tried)[HEADINGS.index("ratio")]
    assert mended[0].endswith(" (no claim)")
