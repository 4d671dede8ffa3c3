"""Cases that no changed setting solves, from a page alone: by how many runs there are, and by an answer to a question."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest
from all_cases import CASES, ROOT
from command_line import call_lab
from page_worker import Worker

from measuretwice.book.lab_book import read_notes
from measuretwice.book.prediction import number_of
from measuretwice.facts.sets import RecordedSets
from measuretwice.lab import Lab, first_try_cases, load_lab, select_trials
from measuretwice.lab.schema.cases import Pitfall
from measuretwice.runs.result import read_result
from measuretwice.site.macros import LabContext
from measuretwice.site.macros.cases import fix, to_change, try_fix

BY_DAY = "the same of cases with fewer runs"
JUDGED = [
    pytest.param(
        *case.values,
        id=case.id,
        # One of a single run, and one of several.
        marks=[] if case.id in ("queues-2", "queues-5") else [pytest.mark.nightly(BY_DAY)],
    )
    for case in CASES
    if case.values[1].judgement
]  # fmt: skip


def test_a_page_has_the_field_for_how_many_runs_where_its_words_name_it() -> None:
    """And from behind the diagnosis, where the commands for a terminal stand, a link leads there."""
    for lab_name, name in (
        ("mathis", "cherry-picking"),
        ("variants", "one-server"),
        ("buffers", "one-run"),
    ):
        lab = load_lab(ROOT, lab_name)
        here, elsewhere = (LabContext(ROOT, lab, runs_here=there) for there in (True, False))
        assert "&quot;kind&quot;: &quot;fix&quot;" in try_fix(here, name)
        assert fix(here, name).endswith("[Change it](#try-your-fix).")
        assert " or *How many runs*" in to_change(here, name)
        assert "data-here" not in try_fix(elsewhere, name)
        assert "*How many runs*" not in to_change(elsewhere, name)


def found(
    worker: Worker, lab: str, folders: list[str], **written: dict[str, str]
) -> tuple[int, str]:
    """How many findings a page lists of these runs, and what it says below them."""
    answer = worker.ask("check", lab=lab, folders=folders, **written)
    return sum(len(document["findings"]) for document in answer["documents"]), answer["said"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lab_name", "name", "repeat"),
    [
        # As often as the first try had one trial at most.
        ("mathis", "cherry-picking", 3),
        ("variants", "one-server", 5),
        pytest.param("buffers", "one-run", 30, marks=pytest.mark.nightly(BY_DAY)),
    ],
)
def test_a_case_is_solved_by_how_many_runs_there_are(
    worker: Worker, lab_name: str, name: str, repeat: int
) -> None:
    lab = load_lab(ROOT, lab_name)
    pitfall = lab.pitfall(name)
    case, trials = lab.case_number(pitfall), select_trials(lab, str(pitfall.trials))
    begin = f"{lab.folder.name}/case-{case:02d}"
    sets = (f"{begin}-broken", f"{begin}-fixed")
    first = worker.run_all(lab_name, *sets, case=case, seed=1, predicted="5")
    findings, said = found(worker, lab_name, first)
    assert findings
    assert "write down your diagnosis" in said
    diagnoses = {str(case): "how many runs there were"}
    _, said = found(worker, lab_name, first, diagnoses=diagnoses)
    assert "No setting is to change, but how many runs there are" in said
    assert "“How many runs”" in said
    assert "./lab" not in said
    # Without the field's number the same runs are there already.
    assert all(job["finished"] for job in worker.ask("plan", lab=lab_name, case=case)["jobs"])

    planned = worker.ask("plan", lab=lab_name, case=case, repeat=repeat)["jobs"]
    # As --repeat has it: seeds count up from the book's, and folders are called by them.
    wanted = [(trial, seed) for seed in range(1, repeat + 1) for trial in trials]
    assert [(job["trial"], job["seed"]) for job in planned] == wanted
    assert all(
        job["folder"].startswith(f"case-{case:02d}-trial-{job['trial']:02d}-seed{job['seed']}-")
        for job in planned
    )
    kept = {job["folder"] for job in planned if job["finished"]}
    assert kept <= {*first}
    assert len(kept) >= len(trials)
    runs = worker.run_all(lab_name, *sets, case=case, repeat=repeat, predicted="6")
    findings, said = found(worker, lab_name, sorted({*first, *runs}))
    assert findings == 0
    assert f"Case {case} is solved" in said
    place = worker.runs / lab_name
    notes = read_notes((place / "lab-book.md").read_text(encoding="utf-8"))[case]
    assert (notes.fixed, len(notes.of("Run"))) == (True, len({*first, *runs}))
    assert notes.of("Prediction") == ["5", "6"]
    # Some of the runs have a mean of their own, which is no second outcome.
    found(worker, lab_name, [run for run in runs if f"-seed{repeat}-" not in run])
    again = read_notes((place / "lab-book.md").read_text(encoding="utf-8"))[case]
    assert again.of("Outcome") == notes.of("Outcome")
    at_the_terminal = call_lab("check", *sorted(place.glob("case-*")))
    assert at_the_terminal.returncode == 0
    assert f"Case {case} is solved" in at_the_terminal.stdout
    # Means and, of two trials, the interval are said on the page, at a terminal and in the report, in the same words.
    [concluded] = re.findall(r"Means of .*[^.]", said)
    assert ("its 95 % interval is" in concluded) == (len(trials) == 2)
    assert concluded in at_the_terminal.stdout
    assert call_lab("report", str(place)).returncode == 0
    assert concluded.partition(". ")[0].replace("'", "&#39;") in (place / "report.html").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(("lab", "pitfall"), JUDGED)
def test_what_an_answer_has_solved_is_no_fault_any_more(
    worker: Worker, lab: Lab, pitfall: Pitfall
) -> None:
    """As at a terminal: no finding is listed of what the right answer is about."""
    case, judgement = lab.case_number(pitfall), pitfall.judgement
    assert judgement is not None
    recorded = f"{lab.folder.name}/case-{case:02d}-broken"
    folders = worker.run_all(lab.name, recorded, case=case, seed=1)
    diagnoses = {str(case): "what was wrong with it"}
    findings, _ = found(worker, lab.name, folders, diagnoses=diagnoses)
    assert findings
    answer = judgement.right
    if judgement.number:
        results = [read_result(worker.runs / lab.name / folder, lab) for folder in folders]
        number = number_of(judgement.number, [result for result in results if result])
        assert number is not None
        answer += f", {number:.5g}"
    assert worker.ask("judge", lab=lab.name, case=case, answer=answer)["problems"] == []
    findings, said = found(worker, lab.name, folders)
    assert findings == 0
    assert f"Case {case} is solved: answered right: " in said
    at_the_terminal = call_lab("check", *(worker.runs / lab.name / folder for folder in folders))
    assert at_the_terminal.returncode == 0, at_the_terminal.stdout
    # A page says where the first try is repeated; a terminal is there.
    repeats = f"./lab start {lab.name} repeats your first try"
    moves = case in first_try_cases(lab)
    assert (f"In a terminal, {repeats}" in said) is moves
    assert (f"\n{repeats}" in at_the_terminal.stdout) is moves


def test_an_answer_by_the_recorded_runs_is_in_the_book_handed_in(
    worker: Worker, tmp_path: Path
) -> None:
    lab = load_lab(ROOT, "queues")
    number = RecordedSets(ROOT, lab).judged_number("wrong-metric")
    right, packed = f"c, {number:.4g} times", tmp_path / "saved.zip"
    written = {
        "diagnoses": {"2": "the sum can't differ"},
        "judged": {"2": f"a, 3\n{right}\nz, 3", "5": "b, 3", "99": "a", "1": "a"},
        "answered": {"2": right},
    }
    saved = worker.ask("archive", lab="queues", to=str(packed), **written)
    assert (saved["runs"], saved["report"]) == (0, False)
    worker.ask("archive", lab="queues", to=str(packed), **written)
    with zipfile.ZipFile(packed) as archive:
        notes = read_notes(archive.read("queues/lab-book.md").decode())
    # Of case 5 nothing is diagnosed, case 1 asks nothing.
    assert [*notes] == [2]
    assert notes[2].judgements == [
        "a, 3 (by the recorded runs)",
        f"{right} (by the recorded runs)",
    ]
    [outcome] = notes[2].of("Outcome")
    assert outcome.startswith("answered right by the recorded runs: How long a packet waits")
    # By runs of one's own it is answered once more.
    folders = worker.run_all("queues", "05-queues/case-02-broken", case=2, seed=1)
    assert "answered right by the recorded runs" in found(worker, "queues", folders)[1]
    answer = f"c, {number:.4g} times"
    assert worker.ask("judge", lab="queues", case=2, answer=answer)["problems"] == []
    assert "Case 2 is solved: answered right: " in found(worker, "queues", folders)[1]
