"""The page with a finished report: it is what the kit's commands make, and tells no case but the one that it names."""

from __future__ import annotations

import shutil
from datetime import datetime
from pathlib import Path

import pytest
from command_line import call_lab
from finished_report import RECORDED, lines_from_files, play, what_she_does, write_answers

from measuretwice.base.files import read_object
from measuretwice.book.lab_book import BOOK, LabBook
from measuretwice.lab import load_lab
from measuretwice.runs.folder import digest_of, raw_folder
from measuretwice.runs.recorded import RecordedRun, read_set
from measuretwice.site.macros import LabContext, SiteContext
from measuretwice.site.macros.excerpts import finished_report, report_parts

ROOT = Path(__file__).parents[2]
PLAYED = what_she_does()
LAB = load_lab(ROOT, PLAYED["lab"])
SAMPLES = ROOT / "sample-data" / LAB.folder.name


def recorded() -> dict[str, RecordedRun]:
    """Her first run, and that after her change."""
    runs = {}
    for name in PLAYED["sets"]:
        [runs[name]] = read_set(SAMPLES / name).runs
    return runs


def test_the_report_is_what_the_command_writes_of_the_recorded_runs(tmp_path: Path) -> None:
    runs = tmp_path / "runs" / LAB.name
    ended = []
    for name, run in recorded().items():
        shutil.copytree(SAMPLES / name / run.name, runs / run.run)
        ended.append(read_object(runs / run.run / "provenance.json")["ended"])
    shutil.copyfile(RECORDED / "lab-book.txt", runs / BOOK)
    made = str(int(datetime.fromisoformat(max(ended)).timestamp()))
    report = ("report", runs, "--author", PLAYED["author"])
    assert call_lab(*report, SOURCE_DATE_EPOCH=made).returncode == 0
    write_answers(runs / "report.md", PLAYED)
    assert call_lab(*report, SOURCE_DATE_EPOCH=made).returncode == 0
    of_page = finished_report(
        SiteContext(ROOT, {LAB.name: LabContext(ROOT, LAB)}, instructor=False)
    )
    commands = of_page.pop("commands")
    assert of_page == report_parts((runs / "report.html").read_text(encoding="utf-8"))
    assert all(step["command"] in commands for step in PLAYED["steps"])
    # A case's runs stand in the order in which they were made.
    assert "loss-percent" in of_page["first_try"]
    assert "The checker found nothing" in of_page["fixed"]


def test_the_lab_book_is_of_the_recorded_runs_and_earns_full_marks(tmp_path: Path) -> None:
    shutil.copyfile(RECORDED / "lab-book.txt", tmp_path / BOOK)
    notes = LabBook(tmp_path, LAB).notes(PLAYED["case"])
    assert [text.split(":")[0] for text in notes.of("Run")] == [r.run for r in recorded().values()]
    assert notes.predicted_first
    assert (notes.hints, notes.shown, notes.fixed) == (0, False, True)
    assert LAB.case(PLAYED["case"]).is_named_in(notes.diagnosis or "")


def test_the_lines_that_she_quotes_stand_in_her_first_run_s_files() -> None:
    [(name, run), _] = recorded().items()
    with raw_folder(SAMPLES / name / run.name) as raw:
        said = "".join(path.read_text(errors="replace") for path in raw.glob("*/*"))
    quoted = [line for answer in PLAYED["answers"].values() for line in lines_from_files(answer)]
    assert len(quoted) == 2
    assert [line for line in quoted if line not in said] == []


@pytest.mark.nightly("the runs by ./lab record --verify; what is made of them: this file")
@pytest.mark.kernel
@pytest.mark.slow
def test_played_again_it_is_the_same(tmp_path: Path) -> None:
    runs = play(tmp_path)
    assert (runs / BOOK).read_text() == (RECORDED / "lab-book.txt").read_text()
    for run in recorded().values():
        assert digest_of(runs / run.run / "raw") == run.raw_sha256


@pytest.mark.slow
def test_the_page_says_first_which_case_it_tells(student: Path) -> None:
    article = (student / "modules/report/index.html").read_text().partition("<article")[2]
    before, _, after = article.partition('<details class="example">')
    assert "names the cause of one case" in before
    assert f"case-{PLAYED['case']:02d}" in before
    assert "report-part" in after
