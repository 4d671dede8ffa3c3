"""`lab grade`: a class's submissions, each measured anew and held against the lab's rubric."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from measuretwice.base.clock import now
from measuretwice.base.cpus import usable_cpus
from measuretwice.base.errors import UserError
from measuretwice.cli import terminal
from measuretwice.cli.grade_again import run_chosen
from measuretwice.cli.options import AS_JSON, PATH, root_folder
from measuretwice.cli.types import Runs
from measuretwice.grading.again import FILE as AGAIN_FILE
from measuretwice.grading.again import choose_runs, read_kept, remade_before
from measuretwice.grading.contents import Reading
from measuretwice.grading.exports import Export
from measuretwice.grading.grade import choose_lab, contents_of, look
from measuretwice.grading.grade import grade as grade_submissions
from measuretwice.grading.graded import Graded
from measuretwice.grading.kept import write_files
from measuretwice.grading.key import read_key
from measuretwice.grading.marking import FILE, add_places, places_of, read_marks, with_marks
from measuretwice.grading.output import CLASS_PAGE, ClassGrades, all_files, in_words, row
from measuretwice.grading.recorded import read_recorded
from measuretwice.grading.remarks import lines
from measuretwice.grading.roster import Roster, read_roster
from measuretwice.grading.rubric import Rubric, read_rubric
from measuretwice.grading.submissions import Submission, find_submissions
from measuretwice.grading.workers import read_all
from measuretwice.lab import Lab, find_labs, load_lab


@click.command()
@click.argument("folder", metavar="FOLDER", type=PATH)
@click.option("--lab", "lab_name", metavar="LAB", help="Which lab.  [default: the runs' own]")
@click.option(
    "--roster",
    "roster_file",
    type=PATH,
    metavar="ROSTER.csv",
    help="The class, as your learning management system exports it.",
)
@click.option(
    "--deal",
    "deal_file",
    type=PATH,
    metavar="DEALT.csv",
    help="The class with its seeds, as ./lab deal wrote it.",
)
@click.option(
    "--assignment",
    metavar="TITLE",
    help="The column's title in the CSV.  [default: the lab's name]",
)
@click.option(
    "--out",
    type=PATH,
    metavar="DIR",
    help="Folder for the grades.  [default: FOLDER-grades, beside it]",
)
@click.option(
    "--again",
    type=Runs(),
    help="Run this many runs of each submission again, disputed ones first, and compare the bytes.",
)
@click.option(
    "--costly", is_flag=True, help="With --again: also what takes more than a minute of CPU time."
)
@click.option(
    "--jobs",
    type=click.IntRange(1, 1024),
    help="Submissions, and runs, at a time.  [default: one a CPU]",
)
@AS_JSON
def grade(
    folder: Path,
    lab_name: str | None,
    roster_file: Path | None,
    deal_file: Path | None,
    assignment: str | None,
    out: Path | None,
    again: int | None,
    costly: bool,
    jobs: int | None,
    as_json: bool,
) -> int:
    """Grade a class's submissions as far as a machine can: runs, findings, points by the rubric.

    FOLDER holds a folder or archive for each student, as your learning management system packs
    them. Everything is measured again from the raw files; nothing in them is executed, nothing written
    among them. What --again runs is planned here, from the settings that a run's plan names. Exit 0 where all is well, 1 where there is something to look at.
    """
    root = root_folder()
    roster = _roster(roster_file, deal_file)
    labs = _marked(root)
    wanted = _wanted(root, labs, lab_name, roster)
    submissions, others = find_submissions(folder, roster)
    target = _target(folder, out)
    with tempfile.TemporaryDirectory(prefix="measuretwice-reports-") as name:
        known = next((lab for lab in labs if lab.name == wanted), None)
        readings = _read(root, submissions, jobs, as_json, Path(name), known)
        reports = {int(path.stem): path.read_bytes() for path in Path(name).glob("*.html")}
    lab = choose_lab(list(labs), readings, wanted)
    recorded, contents = read_recorded(root, lab), contents_of(lab, readings)
    kept = read_kept(target / AGAIN_FILE)
    remade = remade_before(contents, kept)
    remarks = look(lab, submissions, contents, roster, recorded, remade)
    ran: list[str] = []
    if again is not None:
        names = [submission.name for submission in submissions]
        chosen = choose_runs(names, contents, remarks, again)
        remade, ran = run_chosen(
            root, lab, chosen, remade, kept, target / AGAIN_FILE, costly, jobs, as_json
        )
        remarks = look(lab, submissions, contents, roster, recorded, remade)
    graded = grade_submissions(lab, labs[lab], submissions, readings, roster, remarks)
    # The lecturer's own: read before anything is written, and only ever added to.
    marks = read_marks(target / FILE, [place for place, _ in places_of(graded)])
    graded = [with_marks(entry, marks) for entry in graded]
    it = ClassGrades(lab, labs[lab], read_key(root, lab), roster, graded, others, now())
    title = assignment or f"Measure Twice: {lab.name}"
    files, export = all_files(it, title, reports, target, named=assignment is not None)
    add_places(target / FILE, places_of(graded))
    said = [*(roster.says if roster else ()), *ran, *it.advice, *marks.says]
    said += write_files(target, files)
    if as_json:
        print(json.dumps(_document(it, said), indent=2))
    else:
        print_grades(terminal.console(sys.stdout), it, said, export, target)
    return 1 if others or any(entry.odd for entry in graded) else 0


def _document(it: ClassGrades, said: list[str]) -> dict[str, Any]:
    return {
        "lab": it.lab.name,
        "points": it.rubric.points,
        "not_taken": it.others,
        "says": said,
        "students": [entry.to_json() for entry in it.graded],
    }


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
    root: Path,
    submissions: list[Submission],
    jobs: int | None,
    quiet: bool,
    reports: Path,
    lab: Lab | None,
) -> list[Reading]:
    found: dict[int, Reading] = {}
    context, advance = terminal.counter("submissions", len(submissions), quiet)
    with context:
        parallel = min(jobs or len(usable_cpus()), len(submissions))
        sources = [submission.counted for submission in submissions]
        for place, reading in read_all(root, sources, parallel, reports=reports, lab=lab):
            found[place] = reading
            advance(place, "")
    return [found[place] for place in range(len(submissions))]


def print_grades(
    out: Console, it: ClassGrades, said: Sequence[str], export: Export, target: Path
) -> None:
    """Print a line a student, then what there is to say of each, and what was written."""
    headings = ["student", "id", "runs", "predicted", "shown", "answered", "mended", "again", "certain", "possible", "so far", "look at"]  # fmt: skip
    terminal.print_rows(out, headings, [row(entry) for entry in it.graded], numeric=range(2, 11))
    column = f"a new column {export.column!r}" if export.added else f"the column {export.column!r}"
    for line in (
        *(line for entry in it.graded for line in _lines(entry)),
        *it.others,
        *said,
        f"Points of {it.rubric.points:g}: certain by machine, possible by hand. {in_words(it.graded)}.",
        f"{target}/{CLASS_PAGE} leads to a page to mark from for each student. Your marks go into {FILE} there; "
        f"run this again, and {export.name} has them in {column}, and feedback/ what goes back to the students.",
    ):
        out.print(line, markup=False, soft_wrap=True)


def _lines(entry: Graded) -> list[str]:
    problem = [entry.problem] if entry.problem else []
    return [
        f"{entry.name}: {line}"
        for line in (*problem, *entry.says, *entry.notes, *lines(entry.remarks))
    ]
