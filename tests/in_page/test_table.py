"""The table of a page's runs: what a case asks for stands in it, and what each run's settings were."""

from __future__ import annotations

from pathlib import Path

import pytest

from measuretwice.in_page.answers import results_to_json
from measuretwice.lab import load_lab
from measuretwice.runs.recorded import results_of

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("name", "case", "asked", "answers"),
    [
        ("queues", 1, "ping's mean while the flows run", ["94.55 ms"]),
        ("queues", 4, "packets dropped by RED", ["69 packets"]),
        ("variants", 1, "mean round-trip time", ["69 ms"]),
        # The table has the goodput anyhow; and no value answers what this case asks.
        ("mathis", 2, "goodput", [None]),
        ("mathis", 13, "goodput over the model's", [None]),
    ],
)
def test_what_a_case_asks_for_stands_in_its_table(
    name: str, case: int, asked: str, answers: list[str | None]
) -> None:
    lab = load_lab(ROOT, name)
    folder = ROOT / "sample-data" / lab.folder.name / f"case-{case:02d}-broken"
    table = results_to_json(lab, results_of(lab, folder), case)
    assert table["asked"] == asked
    assert [run["answer"] for run in table["runs"]][: len(answers)] == answers


def test_each_run_has_all_settings_for_who_changes_one_later() -> None:
    lab = load_lab(ROOT, "queues")
    stages = ("broken", "fixed")
    folders = [ROOT / "sample-data" / lab.folder.name / f"case-01-{stage}" for stage in stages]
    results = [result for folder in folders for result in results_of(lab, folder)]
    rates = [run["settings"]["rate_mbit"] for run in results_to_json(lab, results, 1)["runs"]]
    assert rates == ["1000", "100"]
