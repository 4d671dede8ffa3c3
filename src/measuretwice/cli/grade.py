"""`lab grade`: a class's submissions, each measured anew and compared with the lab's rubric; and runs of it run again.
`lab deal`: a seed for each student of it, and the commands that go with it."""

from __future__ import annotations

import json
import resource
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from measuretwice.backends import REPEATING
from measuretwice.backends.backend import Backend
from measuretwice.backends.virtual import Virtual
from measuretwice.base.errors import UserError
from measuretwice.base.files import now, usable_cpus, write_bytes
from measuretwice.cli import terminal
from measuretwice.cli.options import AS_JSON, PATH, Runs, root_folder
from measuretwice.execute.batch import expected_seconds, open_batch
from measuretwice.execute.job import Job
from measuretwice.grading.evidence import read_recorded
from measuretwice.grading.gradebook import (
    FILE,
    Export,
    add_lines,
    mark_lines,
    read_marks,
    with_marks,
)
from measuretwice.grading.integrity import Rerun, RunKey, find_remarks, lines_of
from measuretwice.grading.output import (
    CLASS_PAGE,
    ClassGrades,
    all_files,
    progress_in_words,
    terminal_row,
    write_files,
)
from measuretwice.grading.reader import read_all
from measuretwice.grading.rerun import FILE as RERUNS_FILE
from measuretwice.grading.rerun import (
    FILE_BYTES,
    WALL_S,
    ChosenRun,
    FinishedReruns,
    choose_runs,
    compare,
    known_reruns,
    plan_key,
    plan_runs,
    read_finished,
    run_again,
)
from measuretwice.grading.results import Graded, choose_lab, contents_of
from measuretwice.grading.results import grade as grade_submissions
from measuretwice.grading.roster import (
    SEEDS_EACH,
    Roster,
    deal_seeds,
    dealt_file,
    read_roster,
    refuse_other_seeds,
)
from measuretwice.grading.rubric import Rubric, read_key, read_rubric
from measuretwice.grading.submission import Reading, Submission, find_submissions
from measuretwice.lab import Lab, find_labs, load_lab

FAILED = "could not be run again: see the output of ./lab grade"


@click.command()
@click.argument("folder", metavar="FOLDER", type=PATH)
@click.option("--lab", "lab_name", metavar="LAB", help="The lab.  [default: the runs' own]")
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
    help="Folder for the grades.  [default: FOLDER-grades, next to it]",
)
@click.option(
    "--again",
    type=Runs(),
    help="Run this many runs of each submission again, disputed ones first, and compare the bytes.",
)
@click.option(
    "--costly",
    is_flag=True,
    help="With --again, also run what takes more than a minute of CPU time.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1, 1024),
    help="Submissions, and runs, in parallel.  [default: one per CPU]",
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
    them. Everything is measured again from the raw files. Nothing in them is executed, and nothing is
    written there. Runs of --again are planned here, from the settings that a run's plan names. Exit status: 0 if all is
    well, 1 if there is something to look at.
    """
    root = root_folder()
    roster = _roster(roster_file, deal_file)
    labs = _marked(root)
    wanted = _wanted(root, labs, lab_name, roster)
    submissions, others = find_submissions(folder, roster)
    target = _target(folder, out)
    with tempfile.TemporaryDirectory(prefix="measuretwice-reports-") as name:
        wanted_lab = next((lab for lab in labs if lab.name == wanted), None)
        readings = _read(root, submissions, jobs, as_json, Path(name), wanted_lab)
        reports = {int(path.stem): path.read_bytes() for path in Path(name).glob("*.html")}
    lab = choose_lab(list(labs), readings, wanted)
    recorded, contents = read_recorded(root, lab), contents_of(lab, readings)
    finished = read_finished(target / RERUNS_FILE)
    reruns = known_reruns(contents, finished)
    remarks = find_remarks(lab, submissions, contents, roster, recorded, reruns)
    ran: list[str] = []
    if again is not None:
        names = [submission.name for submission in submissions]
        chosen = choose_runs(names, contents, remarks, again)
        reruns, ran = run_chosen(
            root, lab, chosen, reruns, finished, target / RERUNS_FILE, costly, jobs, as_json
        )
        remarks = find_remarks(lab, submissions, contents, roster, recorded, reruns)
    graded = grade_submissions(lab, labs[lab], submissions, readings, roster, remarks)
    # The lecturer's own: read before anything is written, and only ever added to.
    lines = mark_lines(graded)
    marks = read_marks(target / FILE, lines)
    graded = [with_marks(entry, marks) for entry in graded]
    grades = ClassGrades(lab, labs[lab], read_key(root, lab), roster, graded, others, now())
    title = assignment or f"Measure Twice: {lab.name}"
    files, export = all_files(grades, title, reports, target, named=assignment is not None)
    add_lines(target / FILE, lines)
    notes = [*(roster.says if roster else ()), *ran, *grades.advice, *marks.says]
    notes += write_files(target, files)
    if as_json:
        print(json.dumps(_document(grades, notes), indent=2))
    else:
        print_grades(terminal.console(sys.stdout), grades, notes, export, target)
    return 1 if others or any(entry.odd for entry in graded) else 0


def _document(grades: ClassGrades, notes: list[str]) -> dict[str, Any]:
    return {
        "lab": grades.lab.name,
        "points": grades.rubric.points,
        "not_taken": grades.others,
        "says": notes,
        "students": [entry.to_json() for entry in grades.graded],
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
    """Return the path to write the grades to: beside the submissions, never among them."""
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
    readings: dict[int, Reading] = {}
    context, advance = terminal.counter("submissions", len(submissions), quiet)
    with context:
        parallel = min(jobs or len(usable_cpus()), len(submissions))
        sources = [submission.counted for submission in submissions]
        for index, reading in read_all(root, sources, parallel, reports=reports, lab=lab):
            readings[index] = reading
            advance(index, "")
    return [readings[index] for index in range(len(submissions))]


def print_grades(
    out: Console, grades: ClassGrades, notes: Sequence[str], export: Export, target: Path
) -> None:
    """Print a line a student, then what there is to say of each, and what was written."""
    headings = ["student", "id", "runs", "predicted", "shown", "answered", "fixed", "again", "certain", "possible", "so far", "look at"]  # fmt: skip
    terminal.print_rows(
        out, headings, [terminal_row(entry) for entry in grades.graded], numeric=range(2, 11)
    )
    column = f"a new column {export.column!r}" if export.added else f"the column {export.column!r}"
    for line in (
        *(line for entry in grades.graded for line in _lines(entry)),
        *grades.others,
        *notes,
        f"Points of {grades.rubric.points:g}: certain by machine, possible by hand. {progress_in_words(grades.graded)}.",
        f"{target}/{CLASS_PAGE} leads to a page to mark from for each student. Your marks go into {FILE} there; "
        f"run this again, and {export.name} has them in {column}, and feedback/ what goes back to the students.",
    ):
        out.print(line, markup=False, soft_wrap=True)


def _lines(entry: Graded) -> list[str]:
    problem = [entry.problem] if entry.problem else []
    return [
        f"{entry.name}: {line}"
        for line in (*problem, *entry.says, *entry.notes, *lines_of(entry.remarks))
    ]


def run_chosen(
    root: Path,
    lab: Lab,
    chosen: Sequence[ChosenRun],
    before: dict[RunKey, Rerun],
    finished: FinishedReruns,
    path: Path,
    costly: bool,
    at_once: int | None,
    quiet: bool,
) -> tuple[dict[RunKey, Rerun], list[str]]:
    """Run the chosen runs again that aren't known from `before`; return what came of all, and lines to print.

    What has ended stands in `path` at once: after Ctrl-C the same command goes on from there.
    """
    todo = [choice for choice in chosen if choice.key not in before]
    began_s, failed = _children_s(), []
    reruns = dict(before)
    for kind, choices in _by_place(todo).items():
        with tempfile.TemporaryDirectory(prefix="measuretwice-again-") as out, ExitStack() as stack:
            limit_s = None if costly else WALL_S
            try:
                backend = stack.enter_context(kind.open(kind.name, lab, root))
                batch = open_batch(root, lab, Path(out), backend, wall_limit_s=limit_s)
            except UserError as error:
                why = Rerun(None, f"can't be run again here: {error}")
                reruns |= dict.fromkeys((choice.key for choice in choices), why)
                continue
            planned, refused = plan_runs(batch, choices, costly=costly)
            # Two students may claim the same run: it is run once.
            keys = {choice.key: plan_key(choice.run) for choice in choices if choice.key in planned}
            jobs = {keys[key]: job for key, job in planned.items()}
            problems = _run(jobs, finished, path, costly, at_once, quiet)
            failed += [line.replace(f"{out}/", "") for line in problems]
        reruns |= refused
        for choice in choices:
            if choice.key in planned:
                digests = finished.get(keys[choice.key])
                reruns[choice.key] = (
                    compare(choice.run, digests) if digests else Rerun(None, FAILED)
                )
    return reruns, [_in_words(chosen, reruns, _children_s() - began_s), *failed]


def _by_place(todo: Sequence[ChosenRun]) -> dict[type[Backend], list[ChosenRun]]:
    """Runs by the place that repeats them; where none does, the virtual kernel's plan says why not."""
    choices: dict[type[Backend], list[ChosenRun]] = {}
    for choice in todo:
        choices.setdefault(REPEATING.get(choice.run.where, Virtual), []).append(choice)
    return choices


def _run(
    jobs: dict[str, Job],
    finished: FinishedReruns,
    path: Path,
    costly: bool,
    at_once: int | None,
    quiet: bool,
) -> list[str]:
    """Run the jobs with progress; return what failed."""
    if not jobs:
        return []
    parallel = min(at_once or len(usable_cpus()), len(jobs))
    if not quiet:
        seconds = expected_seconds(list(jobs.values()), parallel)
        print(
            f"running {terminal.count(len(jobs), 'run')} again, {parallel} at a time: about {max(5, round(seconds))} "
            "seconds. Ctrl-C loses nothing that is finished.",
            file=sys.stderr,
        )
    failed = []
    context, advance = terminal.counter("runs again", len(jobs), quiet)
    with context, _small_files(costly):
        for job, problem in run_again(jobs, at_once, finished, path):
            advance(job.plan.trial, "")
            if problem:
                failed.append(problem)
    return failed


def _in_words(chosen: Sequence[ChosenRun], reruns: dict[RunKey, Rerun], cpu_s: float) -> str:
    outcomes = Counter(reruns[choice.key].same for choice in chosen)
    parts = [f"{outcomes[True]} the same bytes", f"{outcomes[False]} not"]
    if outcomes[None]:
        parts.append(f"{outcomes[None]} can't be, or weren't")
    cost = f"{cpu_s:.0f} CPU seconds" if cpu_s >= 1 else "all known from before"
    return f"Run again, of {terminal.count(len(chosen), 'run')}: {', '.join(parts)} ({cost})."


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@contextmanager
def _small_files(costly: bool) -> Iterator[None]:
    """Runs write no larger file than any run of the labs: whatever settings somebody has thought of."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    if not costly:
        most = FILE_BYTES if soft == resource.RLIM_INFINITY else min(soft, FILE_BYTES)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@click.command()
@click.argument("path", metavar="ROSTER.csv", type=PATH)
@click.option("--lab", "lab_name", metavar="LAB", required=True, help="The lab.")
@click.option(
    "--term", metavar="WORD", required=True, help="A word of your own that students don't know."
)
@click.option(
    "--out",
    type=PATH,
    metavar="FILE.csv",
    help="Where to write.  [default: ROSTER-LAB-seeds.csv beside the roster]",
)
@AS_JSON
def deal(path: Path, lab_name: str, term: str, out: Path | None, as_json: bool) -> int:
    """Deal each student of a class a seed of their own, with the commands to run.

    ROSTER.csv is what your learning management system exports: a heading, then a line for each
    student. The same word deals the same seeds again. ./lab grade compares runs with them.
    """
    root = root_folder()
    lab = load_lab(root, lab_name)
    roster = read_roster(path)
    if not term.strip():
        raise UserError("--term: expected a word of yours, another each term")
    seeds = deal_seeds(roster.students, lab.name, term)
    out = out or path.with_name(f"{path.stem}-{lab.name}-seeds{path.suffix or '.csv'}")
    if out.resolve() == path.resolve():
        raise UserError(f"--out {out}: is the roster itself; name another file")
    gone = refuse_other_seeds(out, lab, seeds)
    write_bytes(out, dealt_file(roster, lab, seeds))
    says = list(roster.says)
    if gone:
        names = ", ".join(gone[:3]) + (f" and {len(gone) - 3} more" if len(gone) > 3 else "")
        says.append(f"no longer in the file: {names}; the same word gives them their seeds again")
    if read_rubric(lab) is None:
        says.append(f"{lab.name} has no rubric.toml: ./lab grade can't mark it until it has one")
    if as_json:
        dealt = [{"student": s.id, "lab": lab.name, "seed": seeds[s.id]} for s in roster.students]
        print(json.dumps(dealt, indent=2))
        return 0
    printer = terminal.console(sys.stdout)
    for line in (
        f"{len(seeds)} students, {SEEDS_EACH} seeds each: {out}. "
        "The same word deals the same seeds again; keep it to yourself.",
        *says,
    ):
        printer.print(line, markup=False, soft_wrap=True)
    return 0
