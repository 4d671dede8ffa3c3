"""Read submissions, each in a process of its own: every run measured anew, and what its report answers.

Reading returns plain data and judges nothing. The process has little memory and time: whatever a
file does to it, the other submissions are read.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import cast

from measuretwice.base.errors import UserError
from measuretwice.base.files import now
from measuretwice.base.limited_process import WALL_S, LimitedProcess, describe_unforeseen
from measuretwice.checks import check_set
from measuretwice.grading.answers import (
    DOCUMENTS,
    find_quotes,
    is_book,
    judge_answers,
    match_numbers,
    read_books,
    read_reports,
)
from measuretwice.grading.evidence import cookies_in, find_agreement, sketches
from measuretwice.grading.submission import (
    CaseNotes,
    Contents,
    RaisedFinding,
    Reading,
    SetFinding,
    StudentFiles,
    SubmittedRun,
)
from measuretwice.lab import Lab, StageName, published_labs, trial_params
from measuretwice.measure import imported
from measuretwice.report.report import anchors, make_report, render_html
from measuretwice.runs.folder import DONE, EDIT_DIFF, command_again, files_of, runs_in
from measuretwice.runs.remeasure import RunData, read_run
from measuretwice.runs.unpack import Extractor, printable
from measuretwice.stats.intervals import binomial_interval

MAX_RUNS = 400
# Output of the tests themselves. What describes a machine may well be the same on another, and
# ping's times, in the virtual kernel, of another seed.
NEVER_THE_SAME = frozenset({"iperf3", "iperf2", "ss", "tcpdump"})
# The name of a folder of a student's own files.
TRIAL_FOLDER = re.compile(r"trial-([0-9]{1,4})(?:-([a-z][a-z0-9-]*)-(broken|fixed))?\b")
RUN_FILES = frozenset(
    {"plan.json", "provenance.json", "result.json", DONE, EDIT_DIFF, "experiment.sh",
     "experiment.log", "console.txt"}
)  # fmt: skip
DRAWINGS = (".svg", ".png", ".jpg", ".jpeg", ".csv")


# Processes


@dataclass
class _Worker:
    index: int
    process: LimitedProcess
    tree: Path
    deadline: float

    def end(self) -> None:
        self.process.end()
        shutil.rmtree(self.tree.parent, ignore_errors=True)


def read_all(
    root: Path,
    submissions: list[list[Path]],
    parallel: int,
    wall_s: float = WALL_S,
    reports: Path | None = None,
    lab: Lab | None = None,
) -> Iterator[tuple[int, Reading]]:
    """Read the submissions, `parallel` at a time; yield each one's index and what was read, as it ends.

    Files from a testbed are read as of runs of the `lab`, where it is known. Into the folder
    `reports` goes a report on each one's runs, named by its index: 0.html, ... Where a process
    didn't come to an end, the reading's `problem` says why.
    """
    # What all processes need is loaded once, here.
    binomial_interval(10, 0.5, 0.9)
    waiting = list(enumerate(submissions))[::-1]
    workers: list[_Worker] = []
    with tempfile.TemporaryDirectory(prefix="measuretwice-grade-") as folder:
        try:
            while waiting or workers:
                while waiting and len(workers) < parallel:
                    index, paths = waiting.pop()
                    tree = Path(folder) / str(index) / "files"
                    tree.parent.mkdir()
                    report = reports / f"{index}.html" if reports else None
                    process = LimitedProcess(partial(_work, root, paths, tree, report, lab))
                    workers.append(_Worker(index, process, tree, time.monotonic() + wall_s))
                ready = wait([worker.process.pipe for worker in workers], timeout=1.0)
                for worker in [*workers]:
                    if worker.process.pipe in ready or time.monotonic() > worker.deadline:
                        workers.remove(worker)
                        reading = _receive(worker, worker.process.pipe in ready)
                        worker.end()
                        yield worker.index, reading
        finally:
            for worker in workers:
                worker.end()


def _work(
    root: Path,
    paths: list[Path],
    tree: Path,
    report: Path | None,
    lab: Lab | None,
    pipe: Connection,
) -> None:
    """In the process: read, and send JSON, not a pickle."""
    try:
        reading = Reading(read_submission(root, paths, tree, report, lab)).to_json()
    except Exception as error:
        reading = Reading(problem=describe_unforeseen(error)).to_json()
    pipe.send_bytes(reading)


def _receive(worker: _Worker, ready: bool) -> Reading:
    if not ready:
        return Reading(problem=f"not read: took more than {WALL_S:.0f} s")
    try:
        # The process has worked on untrusted files: what it sends is untrusted, too.
        return Reading.from_json(worker.process.pipe.recv_bytes())
    except (EOFError, OSError):
        return Reading(problem=worker.process.failure())
    except ValueError:
        return Reading(problem="not read: what was read of it is no description of runs")


# A submission


def read_submission(
    root: Path,
    paths: list[Path],
    tree: Path,
    report: Path | None = None,
    lab: Lab | None = None,
) -> Contents:
    """Extract the submission's files into `tree`, which isn't there yet, and read them.

    Files from a testbed are read as of a run of `lab`, where that is known. The file `report`, if it
    is given, becomes a report on all runs.
    """
    extractor = Extractor(tree)
    tree.mkdir()
    for path in paths:
        extractor.extract(path)
    runs, unusable = _read_runs(root, tree)
    run_folders = {tree / name for name in (*(data.name for data, _ in runs), *unusable)}
    loose = [p for p in sorted(tree.rglob("*")) if p.is_file() and not _is_of_run(p, run_folders)]
    reports = read_reports([path for path in loose if not is_book(path)], tree)
    books, book_problems = read_books(root, filter(is_book, loose), reports.books, tree)
    all_data = [data for data, _ in runs]
    books = _with_answers(root, books, all_data)
    quotes, cited = find_quotes(reports.answers, [data.name for data in all_data], tree)
    if report and all_data:
        # If a report can't be written, for whatever is in it, the runs are still read.
        with contextlib.suppress(Exception):
            _write_report(report, all_data)
    files, unread = _read_student_files(
        [path for path in loose if path.suffix.lower() not in DOCUMENTS + DRAWINGS], tree, lab
    )
    anchor_by_run = anchors(all_data)
    return Contents(
        refused=tuple(extractor.summary),
        unusable=(*filter(None, unusable.values()), *map(printable_line, book_problems)),
        runs=tuple(replace(run, anchor=anchor_by_run[run.run]) for _, run in runs),
        together=tuple(_set_findings(all_data)),
        brought=tuple(files),
        unread=tuple(unread),
        answers=reports.answers,
        quotes=quotes,
        written=tuple(reports.documents),
        cited=cited,
        figures=match_numbers(reports.answers, all_data),
        books=books,
    )


def _with_answers(
    root: Path, books: dict[str, tuple[CaseNotes, ...]], runs: list[RunData]
) -> dict[str, tuple[CaseNotes, ...]]:
    by_lab: dict[str, list[tuple[RunData, str]]] = defaultdict(list)
    for data in runs:
        by_lab[data.lab.name].append((data, ", ".join(_changed_settings(data))))
    return judge_answers(root, books, by_lab, published_labs(root))


def printable_line(text: str) -> str:
    """Return a line with words of a submission in it, shortened and safe to print."""
    return " ".join(printable(part) for part in text.split(" "))[:400]


def _write_report(path: Path, runs: Sequence[RunData]) -> None:
    """Write a report on the runs for who marks: every string in it is escaped, and no cause veiled."""
    report = make_report(
        list(runs), title="The runs, measured again", author=None, made=now(), for_marking=True
    )
    path.write_text(render_html(report), encoding="utf-8", errors="replace")


def _is_of_run(path: Path, run_folders: set[Path]) -> bool:
    """Return whether it is one of the files that a run's folder has: a report may stand beside them."""
    if path.parent in run_folders and path.name in RUN_FILES:
        return True
    return any(folder.name == "raw" and folder.parent in run_folders for folder in path.parents)


# Runs


def _read_runs(root: Path, tree: Path) -> tuple[list[tuple[RunData, SubmittedRun]], dict[str, str]]:
    """Return each run once, and by its folder why another can't be used: "" for one that is there twice."""
    runs: dict[tuple[str, str], tuple[RunData, SubmittedRun]] = {}
    unusable: dict[str, str] = {}
    for number, folder in enumerate(runs_in(tree)):
        name = folder.relative_to(tree).as_posix()
        if number >= MAX_RUNS:
            unusable[name] = f"{printable(name)}: more than {MAX_RUNS} runs; not read"
            continue
        try:
            data = read_run(root, folder, name)
            run = _submitted_run(data, folder)
        except UserError as error:
            unusable[name] = printable_line(str(error).replace(f"{tree}/", ""))
        except Exception as error:
            unusable[name] = printable_line(
                f"{name}: can't be read ({type(error).__name__}: {error})"
            )
        else:
            if (run.plan, run.digest) in runs:
                unusable[name] = ""
            else:
                runs[run.plan, run.digest] = (data, run)
    return list(runs.values()), unusable


def _submitted_run(data: RunData, folder: Path) -> SubmittedRun:
    plan, changed = data.plan, tuple(_changed_settings(data))
    pitfall, stage = _pitfall_and_stage(data, changed)
    raw = files_of(folder / "raw")
    digests = {name.removeprefix("raw/"): digest for name, digest in data.digests.items()}
    # As archive.digest_of makes it.
    lines = "".join(f"{digests[name]}  {name}\n" for name in sorted(digests))
    return SubmittedRun(
        run=data.name,
        lab=plan.lab,
        trial=plan.trial,
        pitfall=pitfall,
        stage=stage,
        seed=plan.seed,
        plan=plan.digest,
        params=dict(plan.params),
        changed=changed,
        findings=tuple(RaisedFinding.of(finding) for finding in data.result.findings),
        digest=hashlib.sha256(lines.encode()).hexdigest(),
        cookies=tuple(sorted(cookies_in(raw.values()))),
        case=plan.case,
        command=printable_line(command_again(plan, data.lab, "")),
        kernel_seed=plan.kernel_seed,
        where=printable(plan.where),
        kernel=printable(plan.kernel),
        edited=plan.edited is not None,
        agreement=find_agreement(data, folder),
        files={printable(name): digest for name, digest in digests.items()},
        sketches=sketches(
            data.lab, plan.params, {printable(name): raw[name].read_bytes() for name in raw}
        ),
    )


def _pitfall_and_stage(
    data: RunData, changed: Sequence[str]
) -> tuple[str | None, StageName | None]:
    """Return the run's pitfall and stage. A case's run that its student changed is of neither stage."""
    plan = data.plan
    if not plan.case:
        return plan.pitfall, plan.stage
    return data.lab.case(plan.case).id, plan.stage or (None if changed else "broken")


def _changed_settings(data: RunData) -> list[str]:
    """Return the settings that aren't the lab's for this trial and stage, and own node scripts."""
    plan = data.plan
    default = trial_params(
        data.lab, plan.trial, pitfall=plan.pitfall, stage=plan.stage, case=plan.case, seed=plan.seed
    )
    names = sorted(default.keys() | plan.params.keys())
    settings = [f"{n}={plan.params.get(n)}" for n in names if plan.params.get(n) != default.get(n)]
    return settings + [f"own {n} ({digest})" for n, digest in sorted((plan.edited or {}).items())]


def _set_findings(runs: list[RunData]) -> list[SetFinding]:
    """Return what sets of runs show, lab by lab."""
    by_lab: dict[str, tuple[Lab, list[RunData]]] = {}
    for data in runs:
        by_lab.setdefault(data.lab.name, (data.lab, []))[1].append(data)
    findings = []
    for lab, lab_runs in by_lab.values():
        for raised in check_set(lab, [data.result.member for data in lab_runs]):
            first = lab_runs[raised.members[0]]
            pitfall, stage = _pitfall_and_stage(first, _changed_settings(first))
            findings.append(
                SetFinding(
                    lab=lab.name,
                    id=raised.finding.id,
                    measured=raised.finding.measured,
                    expected=raised.finding.expected,
                    pitfall=pitfall,
                    stage=stage,
                    runs=tuple(lab_runs[index].name for index in raised.members),
                )
            )
    return findings


# A student's own files


def _read_student_files(
    files: Sequence[Path], tree: Path, lab: Lab | None
) -> tuple[list[StudentFiles], list[str]]:
    """Read files that ./lab check reads, by the folder that names their trial; return those in none, too."""
    by_folder: dict[Path, list[Path]] = defaultdict(list)
    unread: list[str] = []
    for path in files:
        folders = path.relative_to(tree).parents
        folder = next((tree / name for name in folders if TRIAL_FOLDER.match(name.name)), None)
        if folder is None:
            unread.append(printable(path.relative_to(tree).as_posix()))
        else:
            by_folder[folder].append(path)
    return [_measure(folder, paths, tree, lab) for folder, paths in by_folder.items()], unread


def _measure(folder: Path, paths: list[Path], tree: Path, lab: Lab | None) -> StudentFiles:
    name = TRIAL_FOLDER.match(folder.name)
    assert name is not None  # how _read_student_files chose it
    files = StudentFiles(
        printable(folder.relative_to(tree).as_posix()),
        int(name[1]),
        name[2],
        cast(StageName | None, name[3]),
    )
    try:
        params = None
        if lab and files.trial in lab.trials:
            params = trial_params(lab, files.trial, pitfall=files.pitfall, stage=files.stage)
        brought = imported.read_files(
            paths[: imported.MAX_FILES], lab if params is not None else None, params
        )
    except UserError as error:
        return replace(files, refused=(printable_line(str(error).replace(f"{tree}/", "")),))
    except Exception as error:
        return replace(files, refused=(printable_line(f"{type(error).__name__}: {error}"),))
    refused = [printable_line(line.replace(f"{tree}/", "")) for line in brought.refused]
    tested = [Path(path) for kind in sorted(NEVER_THE_SAME) for path in brought.tools.get(kind, ())]
    return replace(
        files,
        measured=brought.measured,
        refused=tuple(refused[:20]),
        missing=tuple(brought.missing),
        is_whole=not brought.unread,
        digests={
            hashlib.sha256(path.read_bytes()).hexdigest(): printable(
                path.relative_to(tree).as_posix()
            )
            for path in tested
        },
        cookies=tuple(sorted(cookies_in(paths))),
    )
