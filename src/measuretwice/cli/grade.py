"""`lab grade`: a class's submissions, each measured anew and held against the lab's rubric."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from rich.console import Console

from measuretwice.base.clock import now
from measuretwice.base.cpus import usable_cpus
from measuretwice.base.errors import UserError
from measuretwice.base.files import write_text
from measuretwice.cli import terminal
from measuretwice.grading.contents import Reading
from measuretwice.grading.copies import lines, read_recorded
from measuretwice.grading.grade import choose_lab, grade
from measuretwice.grading.graded import Graded
from measuretwice.grading.output import canvas_csv, make_page, moodle_csv, render, row
from measuretwice.grading.roster import Roster, read_roster
from measuretwice.grading.rubric import Rubric, read_rubric
from measuretwice.grading.submissions import Submission, find_submissions
from measuretwice.grading.workers import read_all
from measuretwice.lab import Lab, find_labs, load_lab


def grade_command(
    root: Path,
    folder: Path,
    *,
    lab_name: str | None,
    roster_file: Path | None,
    deal_file: Path | None,
    assignment: str | None,
    out: Path | None,
    jobs: int | None,
    as_json: bool,
) -> int:
    """Grade and write; return 0, or 1 where there is something to look at."""
    roster = _roster(roster_file, deal_file)
    labs = _marked(root)
    wanted = _wanted(root, labs, lab_name, roster)
    submissions, others = find_submissions(folder, roster)
    target = _target(folder, out)
    readings = _read(root, submissions, jobs, as_json)
    lab = choose_lab(list(labs), readings, wanted)
    recorded = read_recorded(root, lab)
    graded = grade(lab, labs[lab], submissions, readings, roster, recorded)
    _write(target, lab, labs[lab], roster, graded, others, assignment)
    if as_json:
        document = {
            "lab": lab.name,
            "points": labs[lab].points,
            "not_taken": others,
            "students": [entry.to_json() for entry in graded],
        }
        print(json.dumps(document, indent=2))
    else:
        print_grades(terminal.console(sys.stdout), graded, others, labs[lab], target)
    return 1 if others or any(entry.odd for entry in graded) else 0


def _roster(roster_file: Path | None, deal_file: Path | None) -> Roster | None:
    if roster_file and deal_file:
        raise UserError("--roster and --deal: give one; what ./lab deal wrote is a roster, too")
    if deal_file:
        roster = read_roster(deal_file)
        if not roster.by_seed:
            raise UserError(f"--deal {deal_file}: has no seeds; ./lab deal makes such a file")
        return roster
    return read_roster(roster_file) if roster_file else None


def _marked(root: Path) -> dict[Lab, Rubric]:
    labs = [load_lab(root, name) for name in find_labs(root)]
    return {lab: rubric for lab in labs if (rubric := read_rubric(lab))}


def _wanted(
    root: Path, labs: dict[Lab, Rubric], lab_name: str | None, roster: Roster | None
) -> str | None:
    dealt = roster.lab if roster else None
    if lab_name is None and dealt is None:
        return None
    name = load_lab(root, lab_name or str(dealt)).name
    if dealt and name != dealt:
        raise UserError(f"--lab {lab_name}: the seeds were dealt for {dealt}")
    if name not in {lab.name for lab in labs}:
        raise UserError(f"--lab {name}: has no rubric.toml to grade by")
    return name


def _target(folder: Path, out: Path | None) -> Path:
    """Where the grades go: beside the submissions, never among them."""
    whole = folder.resolve()
    target = (out or whole.with_name(f"{whole.name}-grades")).resolve()
    if target == whole or target.is_relative_to(whole):
        raise UserError(f"--out {out}: is among the submissions; choose a folder beside them")
    if target.exists() and not target.is_dir():
        raise UserError(f"--out {target}: is a file; name a folder")
    return target


def _read(
    root: Path, submissions: list[Submission], jobs: int | None, quiet: bool
) -> list[Reading]:
    found: dict[int, Reading] = {}
    context, advance = terminal.counter("submissions", len(submissions), quiet)
    with context:
        parallel = min(jobs or len(usable_cpus()), len(submissions))
        sources = [submission.sources for submission in submissions]
        for place, reading in read_all(root, sources, parallel):
            found[place] = reading
            advance(place, "")
    return [found[place] for place in range(len(submissions))]


def _write(
    target: Path,
    lab: Lab,
    rubric: Rubric,
    roster: Roster | None,
    graded: list[Graded],
    others: list[str],
    assignment: str | None,
) -> None:
    title = assignment or f"Measure Twice: {lab.name}"
    page = make_page(lab.name, rubric.points, graded, others, now())
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--out {target}: can't be made ({error.strerror})") from None
    write_text(target / "grades.html", render(page))
    write_text(target / "grades-canvas.csv", canvas_csv(roster, graded, title, rubric.points))
    write_text(target / "grades-moodle.csv", moodle_csv(roster, graded, title))


def print_grades(
    out: Console, graded: list[Graded], others: list[str], rubric: Rubric, target: Path
) -> None:
    """Print a line a student, then what there is to say of each."""
    headings = ["student", "id", "runs", "predicted", "shown", "answered", "mended", "again", "certain", "possible", "look at"]  # fmt: skip
    terminal.print_rows(out, headings, [row(entry) for entry in graded], numeric=range(2, 10))
    for entry in graded:
        problem = [entry.problem] if entry.problem else []
        for line in [*problem, *entry.says, *entry.notes, *lines(entry.remarks)]:
            out.print(f"{entry.name}: {line}", markup=False, soft_wrap=True)
    for line in others:
        out.print(line, markup=False, soft_wrap=True)
    out.print(
        f"Points of {rubric.points:g}: certain by machine, possible by hand. "
        f"{target}/grades.html says why; grades-canvas.csv and grades-moodle.csv are for import.",
        markup=False,
        soft_wrap=True,
    )
