"""A lab's runs, its lab book and a report as one file, as hand-ins are taken."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

from measuretwice.base.errors import UserError
from measuretwice.base.files import pack_zip
from measuretwice.course.report import opened_for_report, read_report_runs, write_report
from measuretwice.in_page.answers import ArchiveAnswer
from measuretwice.lab import Lab, read_questions
from measuretwice.live.session import FACTS
from measuretwice.report.answers import as_answer
from measuretwice.runs.folder import DONE


def pack(root: Path, lab: Lab, runs: Path, to: Path, answers: Mapping[str, str]) -> ArchiveAnswer:
    """Write all that `runs` holds of a lab to the zip file `to`, and return what there was.

    `answers` go into the report, by the numbers of the lab's questions. Where no run can be reported on,
    what there is comes without a report. Hidden files are left out.
    """
    place = runs / lab.name
    report = place / "report.html"
    # What an earlier one has of answers stands on the page, too, unless it was taken back there.
    report.with_suffix(".md").unlink(missing_ok=True)
    with (
        contextlib.suppress(UserError),
        opened_for_report(root, [place], report) as (opened, page),
    ):
        about = read_report_runs(root, opened.targets, page)
        write_report(about, answers=_by_question(lab, answers))
    files = [path for path in sorted(place.rglob("*")) if path.is_file() and _is_shown(path, place)]
    if not files:
        raise UserError(f"nothing of {lab.name} is kept in this browser")
    to.write_bytes(pack_zip({path.relative_to(runs).as_posix(): path for path in files}))
    return {
        "name": f"{lab.name}-runs.zip",
        "runs": sum(path.name == DONE for path in files),
        "live": sum(path.name == FACTS for path in files),
        "report": report in files,
    }


def _by_question(lab: Lab, answers: Mapping[str, str]) -> dict[str, str]:
    """The answers by the questions' texts, as a report has them."""
    questions = {str(number): text for number, text in enumerate(read_questions(lab), start=1)}
    return {
        questions[number]: tidied
        for number, text in answers.items()
        if number in questions and (tidied := as_answer(text))
    }


def _is_shown(path: Path, place: Path) -> bool:
    return not any(part.startswith(".") for part in path.relative_to(place).parts)
