"""A study as an artefact: packed for others, read by one of them as data, and what a machine can say of the badges.

Badges: ACM, "Artifact Review and Badging", version 1.1, 2020; USENIX' call for artifacts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from measuretwice.backends import REPEATING
from measuretwice.base import LAST_SEED
from measuretwice.base.errors import UserError, shortened
from measuretwice.base.files import pack_zip, read_object
from measuretwice.course.archives import is_hand_in, lay_open, places_for
from measuretwice.course.study import PILOTS, PLAN_FILE, RUNS, Study, Verdict, parse_study
from measuretwice.course.study_results import Analysis, analyse, analysis_lines, missing_runs
from measuretwice.course.study_runs import (
    FROZEN_FILE,
    MeasuredRun,
    Version,
    commands_for,
    digest_of_run,
    found_runs,
    is_early,
    when_frozen,
)
from measuretwice.execute.batch import Batch
from measuretwice.execute.job import Job
from measuretwice.report.markdown import fence, markdown_text
from measuretwice.runs.folder import PLAN
from measuretwice.runs.remeasure import plan_in, read_run

ANALYSIS = "analysis"
README = "README.md"
FILES = (PLAN_FILE, FROZEN_FILE, f"{ANALYSIS}.json", f"{ANALYSIS}.md")
# An estimate that is derived again is the same but for the last digits.
CLOSE = 1e-9
# How far from a plan's seeds new ones are.
AWAY = 1_000_000
Mark = Literal["x", " ", "?"]


@dataclass(frozen=True)
class Line:
    """A line of the checklist: `x` as far as a machine can tell, empty where it can't say so, `?` for a person alone."""

    mark: Mark
    what: str
    why: str = ""


@dataclass(frozen=True)
class Evidence:
    """What a machine found out of an artefact. `same` of the `again` runs that were run again made the same bytes;
    they are in the folder `place`. `refused` says of others why they couldn't be; `fresh` is the verdict of new seeds, None
    where there were none."""

    study: Study
    versions: tuple[Version, ...]
    analysis: Analysis
    unusable: int
    authors: Verdict | None
    is_consistent: bool
    again: int = 0
    same: int = 0
    refused: tuple[str, ...] = ()
    place: str = ""
    fresh: Verdict | None = None
    fresh_runs: int = 0


def by_first_version(
    root: Path,
    study: Study,
    folder: Path,
    versions: Sequence[Version],
    places: Sequence[Path],
    earlier: bool,
) -> list[str]:
    """Return what the plan as it was first frozen gives of the same runs, where it was changed since."""
    if not versions or versions[0].text == study.text:
        return []
    first, _ = parse_study(root, versions[0].text)
    if first is None:
        return ["By the plan as it was first frozen: it can't be read any more"]
    analysis = analyse(root, first, folder, places=places, earlier=earlier)
    because = f": {analysis.because}" if analysis.because else ""
    return [f"By the plan as it was first frozen: {analysis.verdict}{because}"]


def analysis_markdown(study: Study, versions: Sequence[Version], lines: Sequence[str]) -> str:
    frozen = (
        f"Plan frozen {when_frozen(versions[0])}, SHA-256 {versions[0].sha256}"
        if versions
        else "Plan not frozen"
    )
    return f"# {markdown_text(study.question)}\n\n{frozen}\n\n{fence(chr(10).join(lines))}\n"


def pack_study(
    root: Path, study: Study, folder: Path, versions: Sequence[Version]
) -> tuple[bytes, list[str]]:
    """Return a zip of a study, its plan, what freeze and analyse wrote, its runs, and a README with the commands; and a line
    for each thing that whoever repeats it will miss.

    UserError where it isn't frozen, or not analysed: then others couldn't compare.
    """
    for name, command in ((FROZEN_FILE, "freeze"), (f"{ANALYSIS}.json", "analyse")):
        if not (folder / name).is_file():
            raise UserError(f"{folder}: has no {name} yet; ./lab plan {command} {folder} makes it")
    if not versions:
        raise UserError(f"{folder}: isn't frozen yet; ./lab plan freeze {folder} does it")
    top = folder.resolve().name
    files: dict[str, Path | bytes] = {
        f"{top}/{name}": folder / name for name in FILES if (folder / name).is_file()
    }
    for below in (PILOTS, RUNS):
        for path in sorted((folder / below).rglob("*")):
            inside = path.relative_to(folder)
            hidden = any(part.startswith(".") for part in inside.parts)
            if path.is_file() and not path.is_symlink() and not hidden:
                files[f"{top}/{inside.as_posix()}"] = path
    warnings = _warnings(root, study, folder, versions)
    files[f"{top}/{README}"] = _readme(study, top, versions, warnings).encode()
    return pack_zip(files), warnings


def _warnings(root: Path, study: Study, folder: Path, versions: Sequence[Version]) -> list[str]:
    """Say which planned runs a study lacks, and that its plan was changed after it was frozen."""
    lines = []
    runs = [run for run in found_runs(root, study, folder) if run.place == "run"]
    there = {(run.setting, run.trial, run.seed) for run in runs}
    counted = {(run.setting, run.trial, run.seed) for run in runs if not is_early(run, versions[0])}
    planned = [
        (setting.letter, *pair) for setting in study.settings for pair in study.planned(setting)
    ]
    if missing := [run for run in planned if run not in there]:
        lines.append(missing_runs(missing, len(planned)))
    if early := sum(run in there - counted for run in planned):
        lines.append(
            f"{early} of the plan's {len(planned)} runs {'was' if early == 1 else 'were'} made before it was frozen"
        )
    if versions[0].text != study.text:
        is_frozen = any(version.text == study.text for version in versions[1:])
        lines.append(
            f"the plan was changed after it was frozen on {when_frozen(versions[0])}"
            f"{'' if is_frozen else ', and the change is not frozen'}; ./lab plan diff lists how"
        )
    return lines


def _readme(study: Study, top: str, versions: Sequence[Version], warnings: Sequence[str]) -> str:
    settings = "\n".join(f"- {markdown_text(setting.title)}" for setting in study.settings)
    archive = markdown_text(study.archive) if study.archive else "not named yet"
    commands = "\n".join(commands_for(study, Path(top) / RUNS))
    warned = "".join(f"- {markdown_text(line)}\n" for line in warnings)
    return f"""# {markdown_text(study.question)}

The claim: {markdown_text(study.claim)} ({markdown_text(study.source)})

{settings}

The plan is in {PLAN_FILE}. It was frozen on {versions[0].frozen}, with SHA-256 {versions[0].sha256}.
The result is in {ANALYSIS}.md, and where the study is archived: {archive}.
{f"{chr(10)}When it was packed:{chr(10)}{chr(10)}{warned}" if warned else ""}
To repeat it with Measure Twice, give this folder or its archive to

{fence(f"./lab plan repeat {top}.zip")}

It measures all runs again, runs some of them again, and prints what a machine can tell about the badges of ACM and USENIX.
These commands make all runs:

{fence(commands)}
"""


@contextmanager
def opened_artefact(target: Path) -> Iterator[tuple[Path, list[str]]]:
    """Yield the folder of a study that somebody handed over, packed or not, and what was refused of it, in words. Nothing
    in it is executed. UserError where there is no study in it, or several."""
    if target.is_dir():
        yield _folder_of_study(target, target), []
        return
    if not is_hand_in(target):
        raise UserError(
            f"{target}: expected a study's folder, or the archive of one as ./lab plan pack makes it"
        )
    with TemporaryDirectory(prefix="measuretwice-") as scratch:
        place = places_for([target], Path(scratch)).targets[0]
        refused = lay_open(target, place)
        try:
            yield _folder_of_study(place.parent, target), refused
        except UserError as error:
            why = str(error).replace(f"{place.parent}/", "")
            raise UserError("; ".join([why, *refused])) from None


def _folder_of_study(folder: Path, target: Path) -> Path:
    if (folder / PLAN_FILE).is_file():
        return folder
    plans = sorted(folder.rglob(PLAN_FILE))
    if len(plans) != 1:
        many = "several of them" if plans else "none"
        raise UserError(f"{target}: expected one study with a {PLAN_FILE}, and there are {many}")
    return plans[0].parent


def compare_analysis(folder: Path, analysis: Analysis) -> tuple[Verdict | None, bool]:
    """Return the author's verdict, and whether verdict and estimate are those that the runs give now."""
    try:
        document = read_object(folder / f"{ANALYSIS}.json")
        verdict, estimate = document["verdict"], document["estimate"]
    except (OSError, ValueError, TypeError, KeyError):
        return None, False
    if verdict not in ("holds", "doesn't hold", "can't tell"):
        return None, False
    if (
        analysis.estimate is None
        or isinstance(estimate, bool)
        or not isinstance(estimate, int | float)
    ):
        return verdict, verdict == analysis.verdict and analysis.estimate is estimate
    same = math.isclose(estimate, analysis.estimate, rel_tol=CLOSE, abs_tol=CLOSE)
    return verdict, verdict == analysis.verdict and same


def runs_to_repeat(analysis: Analysis, wanted: int) -> list[MeasuredRun]:
    """Return `wanted` runs, of all settings in turn."""
    by_setting: dict[str, list[MeasuredRun]] = {}
    for run in analysis.runs:
        by_setting.setdefault(run.listed.setting, []).append(run)
    chosen = [
        run
        for place in range(max(map(len, by_setting.values()), default=0))
        for runs in by_setting.values()
        for run in runs[place : place + 1]
    ]
    return chosen[:wanted]


def why_not_again(root: Path, folder: Path, run: MeasuredRun, batch: Batch) -> str:
    """Return why this machine would make other bytes of a run's settings; empty where it makes the same."""
    try:
        _, plan = plan_in(root, folder / run.listed.name / PLAN)
    except UserError as error:
        return str(error)
    if plan.where not in REPEATING:
        return f"it is a run on {plan.where}, which no other run repeats byte for byte"
    if plan.where != batch.backend.name:
        return f"it is a run on {plan.where}; --again repeats those of the virtual kernel"
    if plan.edited:
        return "its node scripts were the author's own"
    if plan.kernel != batch.backend.kernel:
        return f"its kernel was {plan.kernel}, this one is {batch.backend.kernel}"
    if plan.scripts != batch.scripts or plan.tools != batch.backend.tools:
        return "the lab's scripts, or the tools in the virtual kernel, were other versions"
    return ""


def job_again(study: Study, batch: Batch, trial: int, seed: int, letter: str) -> Job:
    """Return the job of a run as the plan has it: the lab's trial, and settings that were checked when the plan was read."""
    setting = next(setting for setting in study.settings if setting.letter == letter)
    return batch.job(trial, seed=seed, changes=dict(setting.changes))


def new_folder(place: Path) -> Path:
    """Return a folder in `place` that isn't there yet, so that no run is in the way, and none is lost."""
    return next(path for n in count(1) if not (path := place / f"again-{n}").exists())


def is_same(root: Path, run: MeasuredRun, job: Job) -> bool:
    """Return whether a run that was run again has the raw files of the first."""
    return digest_of_run(read_run(root, job.folder, job.folder.name)) == run.digest


def fresh_study(study: Study, seeds: int) -> Study:
    """Return the plan with as many seeds that neither it nor pilots are likely to have had."""
    first = (study.first_seed + AWAY) % (LAST_SEED - seeds)
    return replace(study, first_seed=first, per_trial=seeds)


def checklist(evidence: Evidence) -> list[Line]:
    """Return what a machine has looked at."""
    analysis, versions = evidence.analysis, evidence.versions
    frozen = bool(versions) and all(version.is_whole for version in versions)
    unchanged = frozen and versions[0].text == evidence.study.text
    complete = not analysis.because and not evidence.unusable
    left_out = "what was left out is named above" if evidence.unusable else ""
    lines = [
        Line("x" if unchanged else " ", "the plan is complete, frozen, and unchanged since", "" if unchanged else "./lab plan diff lists what changed"),
        Line("x" if complete else " ", "each planned run is there, and its raw files can be measured", analysis.because or left_out),
        Line("x" if evidence.is_consistent else " ", "the analysis, done again from the raw files, gives the author's numbers and verdict"),
        Line(
            "x" if evidence.again and evidence.same == evidence.again else " ",
            f"{evidence.same} of {evidence.again} runs that were run again have the same bytes" if evidence.again else "runs make the same bytes again",
            "; ".join(evidence.refused) or ("" if evidence.again else "not tried; --again 2 does it"),
        ),
    ]  # fmt: skip
    if evidence.fresh is None:
        lines.append(
            Line(" ", "new seeds give the same verdict", "not tried; --fresh-seeds N does it")
        )
    else:
        same = evidence.fresh == analysis.verdict
        why = f"with {evidence.fresh_runs} new runs: {evidence.fresh}"
        lines.append(Line("x" if same else " ", "new seeds give the same verdict", why))
    return lines


def badges(evidence: Evidence) -> list[tuple[str, list[Line]]]:
    """Return the badges of ACM and USENIX as far as a machine can tell, each with what is left to a person."""
    lines = checklist(evidence)
    functional = all(line.mark == "x" for line in lines[1:4])
    fresh_differs = evidence.fresh is not None and evidence.fresh != evidence.analysis.verdict
    reproduced = (
        lines[2].mark == lines[3].mark == "x"
        and evidence.analysis.verdict != "can't tell"
        and not fresh_differs
    )
    available = (
        f"open {shortened(evidence.study.archive, 200)}: is it an archive that keeps things, and is the study there?"
        if evidence.study.archive
        else "the plan names no archive; a DOI of one that keeps things is needed"
    )
    works: Mark = "x" if functional else " "
    again: Mark = "x" if reproduced else " "
    lacks = "" if functional else "see the lines above"
    by_others = "only if you aren't the author" if reproduced else "see the lines above"
    return [
        (
            "ACM, version 1.1",
            [
                Line("?", "Artifacts Available", available),
                Line(works, "Artifacts Evaluated - Functional", lacks or "is its description clear to you, too?"),
                Line("?", "Artifacts Evaluated - Reusable", "could you build another study on it without asking?"),
                Line(again, "Results Reproduced", by_others),
                Line("?", "Results Replicated", "only by a study of your own, without the author's plan and runs"),
            ],
        ),
        (
            "USENIX",
            [
                Line("?", "Artifacts Available", available),
                Line(works, "Artifacts Functional", lacks or "is its description clear to you, too?"),
                Line(again, "Results Reproduced", by_others),
            ],
        ),
    ]  # fmt: skip


def groups_of(evidence: Evidence) -> list[tuple[str, list[Line]]]:
    """Return all lines that a machine has to say, by what they are about."""
    return [("What a machine looked at", checklist(evidence)), *badges(evidence)]


def repeated_lines(evidence: Evidence) -> list[str]:
    """Return in words what came of a repetition: the analysis, then the checklist and the badges."""
    lines = analysis_lines(evidence.study, evidence.analysis)
    lines.append(f"The author's verdict: {evidence.authors or 'none'}")
    for name, group in groups_of(evidence):
        lines += ["", name]
        lines += [
            f"  [{line.mark}] {line.what}{f': {line.why}' if line.why else ''}" for line in group
        ]
    lines += ["", "[x] as far as a machine can tell, [ ] not shown, [?] only a person can judge"]
    if evidence.place:
        lines.append(f"The runs that were run again are in {evidence.place}.")
    return lines
