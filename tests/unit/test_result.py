"""A run's result: verdicts, broken folders, and its row in the table after a run."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from measuretwice.base.errors import UserError
from measuretwice.cli.terminal import print_table
from measuretwice.course.wording import HEADINGS, row_of
from measuretwice.lab import Toolchain, load_lab, make_plan
from measuretwice.lab.schema.results import Expectation
from measuretwice.measure.expectations import judge
from measuretwice.runs.recorded import read_set
from measuretwice.runs.result import make_result, read_result

ROOT = Path(__file__).parents[2]


def test_judge_by_parameter_range_and_probability() -> None:
    relative = Expectation(label="", measured="rtt_min_ms", param="rtt_ms", tolerance_ratio=0.01)
    assert judge(relative, {"rtt_ms": 6}, {"rtt_min_ms": 6.05}, True).ok is True
    assert judge(relative, {"rtt_ms": 6}, {"rtt_min_ms": 6.07}, True).ok is False
    assert judge(relative, {"rtt_ms": 6}, {"rtt_min_ms": None}, True).ok is None
    binomial = Expectation(
        label="", measured="loss_ratio", param="loss_ratio", binomial_of="n", confidence=0.99
    )
    assert (
        judge(binomial, {"loss_ratio": 0.01}, {"loss_ratio": 0.0102, "n": 10**5}, True).ok is True
    )
    assert (
        judge(binomial, {"loss_ratio": 0.01}, {"loss_ratio": 0.0110, "n": 10**5}, True).ok is False
    )
    ranged = Expectation(label="", measured="ratio", min=1.0, max=1.45, only_comparable=True)
    assert judge(ranged, {}, {"ratio": 0.5}, True).ok is False
    assert judge(ranged, {}, {"ratio": 0.5}, False).ok is None


def test_a_full_bucket_may_go_beyond_the_links_rate() -> None:
    """In an honest run of Buffers at 7.13 Mbit/s, tbf's 32 kB were 0.18 % of what twenty seconds carried."""
    used = Expectation(label="", measured="utilisation", max=1.001)
    params = {"rate_mbit": 7.13, "burst_bytes": 32768, "duration_s": 20}
    assert judge(used, params, {"utilisation": 1.0019}, True).ok is True
    assert judge(used, params, {"utilisation": 1.0039}, True).ok is False
    assert judge(used, {**params, "rate_mbit": 100}, {"utilisation": 1.0019}, True).ok is False


@pytest.mark.parametrize(
    ("trial", "because"), [(7, None), (5, "timeouts rule"), (53, "fewer than 100")]
)
def test_what_the_model_does_not_cover_says_why(trial: int, because: str | None) -> None:
    lab = load_lab(ROOT, "mathis")
    plan = make_plan(lab, trial, seed=1, toolchain=Toolchain("virtual", "", {}, {}))
    result = make_result(lab, plan, {"goodput_bps": 3e7, "duration_s": 240.0})
    assert result.comparable is (because is None)
    if because:
        assert because in result.not_comparable_because
    else:
        assert result.ratio == pytest.approx(3e7 / 25.72e6, rel=0.01)


def test_folder_without_done_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text(json.dumps({"measured": {}}))
    assert read_result(tmp_path, load_lab(ROOT, "mathis")) is None


@pytest.mark.parametrize("text", ["", '{"measured": {', '{"other": 1}', '{"measured": 3}', "[]"])
def test_broken_folder_is_reported(tmp_path: Path, text: str) -> None:
    (tmp_path / "result.json").write_text(text)
    (tmp_path / "DONE").touch()
    with pytest.raises(UserError, match="delete the folder and run again"):
        read_result(tmp_path, load_lab(ROOT, "mathis"))


@pytest.mark.parametrize(("name", "has_model"), [("mathis", True), ("queues", False)])
def test_no_column_is_empty(name: str, has_model: bool, capsys: pytest.CaptureFixture[str]) -> None:
    lab = load_lab(ROOT, name)
    recorded = read_set(ROOT / "sample-data" / lab.folder.name / "case-01-broken")
    results = [run.result for run in recorded.runs]
    print_table(lab, results, verdicts=False)
    output = capsys.readouterr().out
    assert ("model" in output) is has_model
    assert "goodput" in output
    assert " - " not in output.splitlines()[2]


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

    first, fixed = ratio("case-10-broken"), ratio("case-01-fixed")
    assert (first[1], fixed[1]) == (False, False)
    # Whether it holds may be the question, of a first try and of all that is changed of it.
    assert "claim" not in first[0]
    result = read_set(ROOT / "sample-data" / lab.folder.name / "case-10-broken").runs[0].result
    tried = replace(result, params={**result.params, "sample_interval_s": 0.5})
    assert "claim" not in row_of(lab, tried)[HEADINGS.index("ratio")]
    assert fixed[0].endswith(" (no claim)")
