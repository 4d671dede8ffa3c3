"""One submission read: every run in it measured anew, and what its report answers.

It returns plain data and judges nothing. It runs in a process of its own, with little memory and
time: whatever a file does to it, the other submissions are graded.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from measuretwice.base.errors import UserError
from measuretwice.checks import check_set
from measuretwice.grading.agreement import find_agreement
from measuretwice.grading.answers import WRITTEN, find_quotes, read_reports, reported_books
from measuretwice.grading.books import is_book, read_books
from measuretwice.grading.contents import BroughtFiles, Contents, OurRun, Raised, SetFinding
from measuretwice.grading.likeness import Sketch, sketches
from measuretwice.grading.remade import find_figures, write_report
from measuretwice.grading.unpack import Opened, shown
from measuretwice.lab import Lab, StageName, trial_params
from measuretwice.measure import imported
from measuretwice.report.report import anchors
from measuretwice.runs.folder import DONE, EDIT_DIFF, command_again, files_of, runs_in
from measuretwice.runs.remeasure import RunData, read_run

MAX_RUNS = 400
# iperf3 draws it for each test, from the system's randomness: two tests don't have the same.
COOKIE = re.compile(rb'"cookie":\s*"([a-z2-7]{16,64})"')
# Output of a test that is under way. What describes a machine may well be the same on another, and
# ping's times, in the virtual kernel, of another seed.
NEVER_THE_SAME = frozenset({"iperf3", "iperf2", "ss", "tcpdump"})
# What a folder of a student's own files says of them.
MEANT = re.compile(r"trial-([0-9]{1,4})(?:-([a-z][a-z0-9-]*)-(broken|fixed))?\b")
RUN_FILES = frozenset(
    {"plan.json", "provenance.json", "result.json", DONE, EDIT_DIFF, "experiment.sh",
     "experiment.log", "console.txt"}
)  # fmt: skip
DRAWN = (".svg", ".png", ".jpg", ".jpeg", ".csv")


def read_submission(
    root: Path,
    sources: list[Path],
    tree: Path,
    report: Path | None = None,
    lab: Lab | None = None,
) -> Contents:
    """Lay the submission's files open below `tree`, an empty folder's place, and read them.

    Files from a testbed are read as of a run of `lab`, where that is known. Into `report`, if it is given, goes a report on all runs, made here and now.
    """
    opened = Opened(tree)
    tree.mkdir()
    for source in sources:
        opened.take(source)
    runs, unusable = _runs(root, tree)
    of_runs = {tree / name for name in (*(data.name for data, _ in runs), *unusable)}
    loose = [p for p in sorted(tree.rglob("*")) if p.is_file() and not _of_run(p, of_runs)]
    reports = [path for path in loose if not is_book(path)]
    places, written = read_reports(reports, tree)
    books, no_books = read_books(
        root, [path for path in loose if is_book(path)], reported_books(reports), tree
    )
    data = [one for one, _ in runs]
    quotes, cited = find_quotes(places, [one.name for one in data], tree)
    if report:
        # One that can't be written for whatever is in it leaves the runs as they were read.
        with contextlib.suppress(Exception):
            write_report(report, data)
    files, unread = _brought_files(
        [p for p in loose if p.suffix.lower() not in WRITTEN + DRAWN], tree, lab
    )
    return Contents(
        refused=tuple(opened.summed),
        unusable=(*(reason for reason in unusable.values() if reason), *map(shown_line, no_books)),
        runs=_placed(runs),
        together=tuple(_together(data)),
        brought=tuple(files),
        unread=tuple(unread),
        places=places,
        quotes=quotes,
        written=tuple(written),
        cited=cited,
        figures=find_figures(places, data),
        books=books,
    )


def _placed(runs: Sequence[tuple[RunData, OurRun]]) -> tuple[OurRun, ...]:
    """The runs, each with its place in the report on all of them."""
    places = anchors([data for data, _ in runs])
    return tuple(replace(run, anchor=places[run.run]) for _, run in runs)


def _of_run(path: Path, folders: set[Path]) -> bool:
    """Is it one of the files that a run's folder has? A report may well stand beside them."""
    if path.parent in folders and path.name in RUN_FILES:
        return True
    return any(above.name == "raw" and above.parent in folders for above in path.parents)


def _runs(root: Path, tree: Path) -> tuple[list[tuple[RunData, OurRun]], dict[str, str]]:
    """Each run once, and by its folder why another can't be used: no word of one that is there twice."""
    found: dict[tuple[str, str], tuple[RunData, OurRun]] = {}
    unusable: dict[str, str] = {}
    for number, folder in enumerate(runs_in(tree)):
        name = folder.relative_to(tree).as_posix()
        if number >= MAX_RUNS:
            unusable[name] = f"{shown(name)}: more than {MAX_RUNS} runs; not read"
            continue
        try:
            data = read_run(root, folder, name)
            run = _run(data, folder)
        except UserError as error:
            unusable[name] = shown_line(str(error).replace(f"{tree}/", ""))
        except Exception as error:
            unusable[name] = shown_line(f"{name}: can't be read ({type(error).__name__}: {error})")
        else:
            key = (run.plan, run.digest)
            if key in found:
                unusable[name] = ""
            else:
                found[key] = (data, run)
    return list(found.values()), unusable


def shown_line(text: str) -> str:
    """A line with words of a submission in it: shortened, and nothing that a terminal would obey."""
    return " ".join(shown(part) for part in text.split(" "))[:400]


def _run(data: RunData, folder: Path) -> OurRun:
    plan, changed = data.plan, tuple(_changed(data))
    pitfall, stage = _staged(data, changed)
    return OurRun(
        run=data.name,
        lab=plan.lab,
        trial=plan.trial,
        pitfall=pitfall,
        stage=stage,
        seed=plan.seed,
        plan=plan.digest,
        params=dict(plan.params),
        changed=changed,
        findings=tuple(Raised.of(finding) for finding in data.result.findings),
        digest=_digest(data.digests),
        cookies=tuple(sorted(cookies(folder / "raw"))),
        case=plan.case,
        command=shown_line(command_again(plan, data.lab, "")),
        kernel_seed=plan.kernel_seed,
        where=shown(plan.where),
        kernel=shown(plan.kernel),
        edited=plan.edited is not None,
        agreement=find_agreement(data, folder),
        files={shown(name.removeprefix("raw/")): digest for name, digest in data.digests.items()},
        sketches=_sketches(data, folder / "raw"),
    )


def _sketches(data: RunData, raw: Path) -> dict[str, Sketch]:
    content = {shown(name): path.read_bytes() for name, path in files_of(raw).items()}
    return sketches(data.lab, data.plan.params, content)


def _staged(data: RunData, changed: Sequence[str]) -> tuple[str | None, StageName | None]:
    """The pitfall and its stage, of a case too.

    A case's run that its student changed is neither stage: it is their own way to mend it.
    """
    plan = data.plan
    if not plan.case:
        return plan.pitfall, plan.stage
    return data.lab.case(plan.case).id, plan.stage or (None if changed else "broken")


def _digest(digests: dict[str, str]) -> str:
    """The same as archive.digest_of: one SHA-256 of all raw files, with their names."""
    named = {name.removeprefix("raw/"): digest for name, digest in digests.items()}
    lines = [f"{named[name]}  {name}\n" for name in sorted(named)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def cookies(raw: Path) -> set[str]:
    """What iperf3 called each of a run's tests."""
    return _cookies(path for path in raw.rglob("*") if path.is_file())


def _cookies(files: Iterable[Path]) -> set[str]:
    return {cookie.decode() for path in files for cookie in COOKIE.findall(path.read_bytes())}


def _changed(data: RunData) -> list[str]:
    """Which settings are others than the lab's for this trial and stage; and which node scripts."""
    plan = data.plan
    meant = trial_params(
        data.lab, plan.trial, pitfall=plan.pitfall, stage=plan.stage, case=plan.case, seed=plan.seed
    )
    names = sorted(meant.keys() | plan.params.keys())
    settings = [f"{n}={plan.params.get(n)}" for n in names if plan.params.get(n) != meant.get(n)]
    return settings + [f"own {n} ({digest})" for n, digest in sorted((plan.edited or {}).items())]


def _together(runs: list[RunData]) -> list[SetFinding]:
    """What no single run shows: the finding, and which stages' runs it is about."""
    by_lab: dict[str, tuple[Lab, list[RunData]]] = {}
    for data in runs:
        by_lab.setdefault(data.lab.name, (data.lab, []))[1].append(data)
    found = []
    for lab, of_lab in by_lab.values():
        for raised in check_set(lab, [data.result.member for data in of_lab]):
            first = of_lab[raised.members[0]]
            pitfall, stage = _staged(first, _changed(first))
            found.append(
                SetFinding(
                    lab=lab.name,
                    id=raised.finding.id,
                    measured=raised.finding.measured,
                    expected=raised.finding.expected,
                    pitfall=pitfall,
                    stage=stage,
                    runs=tuple(of_lab[place].name for place in raised.members),
                )
            )
    return found


# Files of their own


def _brought_files(
    files: Sequence[Path], tree: Path, lab: Lab | None
) -> tuple[list[BroughtFiles], list[str]]:
    """Files that ./lab check takes, by the folder that says what they are; and those in none."""
    groups: dict[Path, list[Path]] = defaultdict(list)
    unread: list[str] = []
    for path in files:
        folders = path.relative_to(tree).parents
        meant = next((tree / folder for folder in folders if MEANT.match(folder.name)), None)
        if meant is None:
            unread.append(shown(path.relative_to(tree).as_posix()))
        else:
            groups[meant].append(path)
    return [_measured(folder, paths, tree, lab) for folder, paths in groups.items()], unread


def _measured(folder: Path, paths: list[Path], tree: Path, lab: Lab | None) -> BroughtFiles:
    meant = MEANT.match(folder.name)
    assert meant is not None  # what made it a group
    files = BroughtFiles(
        shown(folder.relative_to(tree).as_posix()),
        int(meant[1]),
        meant[2],
        cast(StageName | None, meant[3]),
    )
    try:
        params = None
        if lab and files.trial in lab.trials:
            params = trial_params(lab, files.trial, pitfall=files.pitfall, stage=files.stage)
        found = imported.read_files(
            paths[: imported.MAX_FILES], lab if params is not None else None, params
        )
    except UserError as error:
        return replace(files, refused=(shown_line(str(error).replace(f"{tree}/", "")),))
    except Exception as error:
        return replace(files, refused=(shown_line(f"{type(error).__name__}: {error}"),))
    refused = [shown_line(line.replace(f"{tree}/", "")) for line in found.refused]
    return replace(
        files,
        measured=found.measured,
        refused=tuple(refused[:20]),
        missing=tuple(found.missing),
        digests={
            hashlib.sha256(path.read_bytes()).hexdigest(): shown(path.relative_to(tree).as_posix())
            for kind in sorted(NEVER_THE_SAME)
            for path in map(Path, found.tools.get(kind, ()))
        },
        cookies=tuple(sorted(_cookies(paths))),
    )
