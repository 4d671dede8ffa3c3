"""A student's own runs over the recorded steps: the file opened as it is, and no cause in it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import watched_page

from measuretwice.course.own_figure import own_figure
from measuretwice.lab import first_try_cases, load_lab
from measuretwice.runs.first_try_history import Try
from measuretwice.runs.result import read_result

ROOT = Path(__file__).parents[2]
LAB = load_lab(ROOT, "mathis")
SAMPLES = ROOT / "sample-data/01-mathis"


@pytest.fixture
def tried(tmp_path: Path) -> tuple[Path, list[Try]]:
    """Two states of somebody's first try: recorded runs in place of runs made here, for they are the same."""
    tries = []
    for cases, step in (((), "step-1-first-try"), ((1, 6), "step-7-offloads")):
        names = []
        for run in sorted((SAMPLES / step).glob("trial-*")):
            names.append(f"{run.name}-{step}")
            (tmp_path / names[-1]).mkdir()
            for name in ("result.json", "DONE"):
                shutil.copyfile(run / name, tmp_path / names[-1] / name)
        tries.append(Try(cases, 1, tuple(names), f"{len(names)} marks", supports=False))
    return tmp_path, tries


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page without a network, that fails the test if its console complains."""
    with watched_page(
        browser, offline=True, levels=("error", "warning"), viewport={"width": 1100, "height": 900}
    ) as page:
        yield page


def data_of(path: Path) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', path.read_text())
    assert found
    return dict(json.loads(found[1]))


OWN = """[...document.querySelectorAll(".mine > path")].map(mark => {
  const {trial, goodput_mbit} = mark.__data__.datum; return [trial, goodput_mbit];
})"""


@pytest.mark.slow
def test_own_runs_lie_over_the_recorded(page: Any, tried: tuple[Path, list[Try]]) -> None:
    folder, tries = tried
    path = own_figure(ROOT, LAB, folder, tries, opened=(1, 6))
    assert path is not None
    page.goto(path.as_uri())
    page.wait_for_selector(".interactive.drawn")
    for n in (1, 0):
        page.select_option("#interactive-own", str(n))
        page.wait_for_function(
            f"document.querySelector('.status').innerText.includes('Yours, {tries[n].after}:')"
        )
        page.wait_for_timeout(50)
        wanted = {}
        for name in tries[n].runs:
            result = read_result(folder / name, LAB)
            assert result
            wanted[result.trial] = float(f"{result.measured['goodput_bps'] / 1e6:.6g}")  # type: ignore[operator]
        assert dict(page.evaluate(OWN)) == wanted
    page.check("#interactive-step-6")
    page.select_option("#interactive-trial", "9")
    assert "yours" in page.inner_text(".card")
    assert "--set" not in page.inner_text("body")
    page.select_option("#interactive-own", "-1")
    page.wait_for_timeout(50)
    assert page.evaluate(OWN) == []
    labels = page.inner_text(".switches ol")
    assert "loss in per cent" in labels
    assert "offloads off" in labels
    assert "Case 5: far too slow" in labels
    # Narrow, nothing sticks out.
    page.set_viewport_size({"width": 360, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_the_file_holds_no_cause_that_is_not_found(tried: tuple[Path, list[Try]]) -> None:
    folder, tries = tried
    path = own_figure(ROOT, LAB, folder, tries[:1], opened=())
    assert path is not None
    data = data_of(path)
    text = " ".join([json.dumps(data), path.read_text().split("<main>")[1].split("</main>")[0]])
    assert "--set" not in text
    # What is seen is said, and keys name columns.
    for words in [*(pitfall.symptom for pitfall in LAB.file.pitfalls), *data["keys"]]:
        text = text.replace(words, "")
    for pitfall in LAB.file.pitfalls:
        for word in (pitfall.id, *pitfall.key_words):
            assert not re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text, re.IGNORECASE), (
                word
            )
    assert [step["title"] for step in data["steps"]] == ["first try", *[None] * 7]
    found = own_figure(ROOT, LAB, folder, tries, opened=first_try_cases(LAB))
    assert found is not None
    data = data_of(found)
    assert all(step["title"] for step in data["steps"])
    assert "--set mtu_bytes=1500" in json.dumps(data["steps"][0])


def test_a_lab_without_a_model_has_no_such_figure(tmp_path: Path) -> None:
    assert own_figure(ROOT, load_lab(ROOT, "queues"), tmp_path, [], opened=()) is None
    assert [*tmp_path.iterdir()] == []
