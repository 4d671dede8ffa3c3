"""Cases that an answer to a question solves, from a page alone."""

from __future__ import annotations

import pytest
from all_cases import CASES
from command_line import call_lab
from page_worker import Worker

from measuretwice.book.prediction import number_of
from measuretwice.lab import Lab
from measuretwice.lab.schema.cases import Pitfall
from measuretwice.runs.result import read_result

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


def found(
    worker: Worker, lab: str, folders: list[str], **written: dict[str, str]
) -> tuple[int, str]:
    """How many findings a page lists of these runs, and what it says below them."""
    answer = worker.ask("check", lab=lab, folders=folders, **written)
    return sum(len(document["findings"]) for document in answer["documents"]), answer["said"]


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
