"""`lab plan`: a study of one's own, planned before its runs, frozen, and analysed as planned."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import asdict, replace
from pathlib import Path

import click
from rich.console import Console

from measuretwice.backends.virtual import Virtual
from measuretwice.base.errors import UserError
from measuretwice.base.files import write_bytes, write_json, write_text
from measuretwice.cli import terminal
from measuretwice.cli.options import AS_JSON, PATH, Runs, root_folder
from measuretwice.cli.run import measure_jobs
from measuretwice.course.artefact import (
    ANALYSIS,
    Evidence,
    analysis_markdown,
    by_first_version,
    checklist,
    compare_analysis,
    fresh_study,
    groups_of,
    is_same,
    job_again,
    new_folder,
    opened_artefact,
    pack_study,
    repeated_lines,
    runs_to_repeat,
    why_not_again,
)
from measuretwice.course.study import (
    PILOTS,
    PLAN_FILE,
    RUNS,
    Compare,
    Study,
    begin_study,
    parse_study,
    read_expression,
    read_study,
    read_text_of,
)
from measuretwice.course.study_results import (
    PowerPlan,
    analyse,
    analysis_lines,
    assumptions,
    document_of,
    needed_for,
    plan_power,
    power_of_study,
)
from measuretwice.course.study_runs import (
    commands_for,
    difference_lines,
    difference_of,
    existing_lines,
    freeze,
    limits_lines,
    measured_runs,
    read_frozen,
    read_pilot,
    same_seeds_lines,
    that_matters,
    when_frozen,
)
from measuretwice.execute.batch import Batch, open_batch
from measuretwice.runs.folder import is_finished
from measuretwice.stats.two_samples import MOST_VALUES

# No run that is repeated takes longer, whatever its plan asks for.
REPEAT_WALL_S = 600.0


def folder_of(_context: object, _option: object, given: Path) -> Path:
    """Take the path of a plan, as messages name it, for its study's folder."""
    return given.parent if given.name == PLAN_FILE and not given.is_dir() else given


STUDY = click.argument("folder", metavar="FOLDER", type=PATH, callback=folder_of)


class InOrder(click.Group):
    """A group that lists its commands in the order in which a study needs them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(cls=InOrder)
def plan() -> None:
    """Plan a study of your own before its runs, freeze the plan, and analyse the runs as planned.

    FOLDER holds the study: plan.toml, and the runs that ./lab run --out puts into its pilots/ and runs/.
    """


@plan.command()
@STUDY
@click.option("--lab", metavar="LAB", help="The lab that the study is about.")
def new(folder: Path, lab: str | None) -> int:
    """Begin a plan: FOLDER/plan.toml, with a line for each thing to decide."""
    path = begin_study(root_folder(), folder, lab)
    for line in (
        f"{path}: fill it in with any editor. Then:",
        f"  ./lab run {lab or 'LAB'} --trial N --seed 1 --repeat 5 --out {folder / PILOTS}   makes pilots",
        f"  ./lab plan power {folder}   computes how many runs you need",
        f"  ./lab plan freeze {folder}   keeps the plan when it is complete",
    ):
        print(line)
    return 0


@plan.command()
@click.argument("pilots", metavar="PILOT_A [PILOT_B]", nargs=-1, required=True)
@click.option("--quantity", metavar="VALUE", help="The measured value that is compared.")
@click.option(
    "--matters",
    type=float,
    metavar="D",
    help="The smallest difference that matters, in the value's unit; for a ratio a factor above 1.",
)
@click.option(
    "--compare",
    type=click.Choice(["difference", "ratio", "mean"]),
    help="Two means, two geometric means, or one mean and a limit.  [default: by the number of pilots]",
)
@click.option(
    "--equal",
    is_flag=True,
    help="Show that the two are the same to within D, not that they differ.",
)
@click.option(
    "--confidence",
    type=click.FloatRange(0.5, 0.9999),
    default=0.95,
    show_default=True,
    help="Of the interval that will decide.",
)
@AS_JSON
def power(
    pilots: tuple[str, ...],
    quantity: str | None,
    matters: float | None,
    compare: Compare | None,
    equal: bool,
    confidence: float,
    as_json: bool,
) -> int:
    """Compute how many runs a question needs, by how far pilots scatter.

    PILOT is a run's folder, a folder of runs, or a recorded set of sample-data/. PILOT:1-5 is its trials 1 to 5 only.
    Given a study's folder alone, all is taken from its plan.toml and its pilots/.
    """
    root = root_folder()
    folder = folder_of(None, None, Path(pilots[0]))
    if len(pilots) == 1 and (folder / PLAN_FILE).is_file() and quantity is None:
        if equal or compare or matters is not None:
            raise UserError(
                f"{folder}: a study's folder has all that in its {PLAN_FILE}, so leave the options out; both above and below "
                "in its rule ask whether two settings are the same"
            )
        planned = _power_of_folder(root, folder)
    else:
        if quantity is None or matters is None:
            raise UserError("give --quantity VALUE and --matters D, or a study's folder alone")
        expression = read_expression(quantity)
        if len(pilots) > 2:
            raise UserError(f"expected one pilot or two, got {len(pilots)}")
        read = [(name, read_pilot(root, name)) for name in pilots]
        kind = compare or ("mean" if len(pilots) == 1 else "difference")
        planned = plan_power(
            read, expression, matters, compare=kind, confidence=confidence, equal=equal
        )
    if as_json:
        print(json.dumps(planned.to_json(), indent=2))
    else:
        _print_power(terminal.console(sys.stdout), planned)
    return 0


def _power_of_folder(root: Path, folder: Path) -> PowerPlan:
    study = read_study(root, folder, is_open=True)
    read = measured_runs(root, study, folder, [folder / PILOTS])
    terminal.complain(read.unusable)
    return power_of_study(study, read.runs)


def _print_power(out: Console, planned: PowerPlan) -> None:
    logs = planned.compare == "ratio"
    unit = f" ({planned.unit})" if planned.unit and not logs else ""
    out.print(f"{planned.quantity}{unit}", style="bold")
    shown = math.exp if logs else float
    words = ["geometric mean", "scatter, a factor of"] if logs else ["mean", "deviation"]
    headings = ["pilot", "runs", *words, "its upper limit"]
    rows = [
        [
            pilot.name,
            str(pilot.n),
            f"{shown(pilot.mean):.5g}",
            f"{shown(pilot.deviation or 0.0):.3g}",
            f"{shown(limit):.3g}",
        ]
        for pilot, limit in zip(planned.pilots, planned.limits, strict=True)
    ]
    terminal.print_rows(out, headings, rows, numeric=range(1, 5))
    out.print(
        f"\nRuns {'of each setting ' if len(planned.pilots) == 2 else ''}{needed_for(planned)}:"
    )
    counts = [
        [f"{100 * need.power:g} %", _count(need.by_pilots), _count(need.by_limits)]
        for need in planned.needed
    ]
    terminal.print_rows(
        out,
        ["power", "by the pilots' own scatter", "by the upper limits"],
        counts,
        numeric=range(3),
    )
    out.print()
    for line in assumptions(planned):
        out.print(line, soft_wrap=True, markup=False)


def _count(number: int | None) -> str:
    return f"over {MOST_VALUES}" if number is None else str(number)


@plan.command("freeze")
@STUDY
def freeze_plan(folder: Path) -> int:
    """Check that the plan is complete, and keep it as it is, with a digest, the date and the runs that exist already.

    A later freeze adds a version, and the first one stays. Exit status: 2 if something is missing, or if pilots have the plan's seeds.
    """
    root = root_folder()
    study, problems = parse_study(root, read_text_of(folder / PLAN_FILE, "a study's plan"))
    if study is None:
        terminal.complain(f"{folder / PLAN_FILE}: {line}" for line in problems)
        return 2
    version = freeze(root, study, folder)
    number = len(read_frozen(folder).versions)
    out = terminal.console(sys.stdout)
    if version is None:
        last = read_frozen(folder).versions[-1]
        already = (
            f"{folder / PLAN_FILE}: frozen already, {when_frozen(last)}, SHA-256 {last.sha256}"
        )
        for line in (already, *limits_lines(study), *same_seeds_lines(root, study, folder)):
            out.print(line, soft_wrap=True, markup=False)
        return 0
    again = f" as version {number}; version 1 stays" if number > 1 else ""
    lines = [
        f"{folder / PLAN_FILE}: frozen{again}, {when_frozen(version)}",
        f"SHA-256 {version.sha256}",
        "Give this digest to somebody who keeps it, because a file of your own can't prove its date.",
        "",
        f"The rule: {study.rule.in_words}.",
        f"You would give the claim up if: {study.refuted_by}",
        f"The smallest difference that matters: {that_matters(study)}",
        *limits_lines(study),
        "",
        *existing_lines(root, study, version, read_frozen(folder).versions[0]),
        *_planned_power(root, study, folder),
        "",
        "The plan's runs:",
        *(f"  {command}" for command in commands_for(study, folder / RUNS)),
        f"Then ./lab plan analyse {folder}",
    ]
    for line in lines:
        out.print(line, soft_wrap=True, markup=False)
    return 0


def _planned_power(root: Path, study: Study, folder: Path) -> list[str]:
    """A line on the power that the plan has by its pilots; nothing where these don't tell."""
    try:
        planned = power_of_study(study, measured_runs(root, study, folder, [folder / PILOTS]).runs)
    except UserError:
        return []
    counts = {len(study.planned(setting)) for setting in study.settings}
    if planned.is_without_scatter or min(counts) < 2:
        return []
    power = planned.power_of(min(counts))
    of_each = " of each setting" if len(study.settings) == 2 else ""
    return [f"By the pilots, {min(counts)} runs{of_each} have a power of {100 * power:.0f} %."]


@plan.command("diff")
@STUDY
def diff_plan(folder: Path) -> int:
    """Say what was changed in the plan since it was frozen, line by line, and which runs were made before the freeze.

    Exit status, as for diff(1): 0 if nothing was changed, 1 if something was, 2 for unusable input.
    """
    root = root_folder()
    try:
        study = read_study(root, folder)
    except UserError as error:
        terminal.complain([f"{error}; runs can't be compared with it"])
        study = None
    difference = difference_of(root, study, folder)
    out = terminal.console(sys.stdout)
    for line in difference_lines(difference):
        out.print(line, soft_wrap=True, markup=False)
    return 0 if difference.is_unchanged else 1


@plan.command("analyse")
@STUDY
@click.option(
    "--runs",
    "places",
    type=PATH,
    multiple=True,
    metavar="FOLDER",
    help="Other runs than FOLDER/runs, or a recorded set. May be given several times.",
)
@click.option(
    "--earlier", is_flag=True, help="Also take runs that were made before the plan was frozen."
)
@AS_JSON
def analyse_study(folder: Path, places: tuple[Path, ...], earlier: bool, as_json: bool) -> int:
    """Analyse the runs by the plan's own rule: the claim holds, doesn't hold, or you can't tell.

    All is measured again from the raw files. Exit status: 0 for a verdict, 1 if you can't tell.
    """
    root = root_folder()
    study = read_study(root, folder)
    analysis = analyse(root, study, folder, places=places, earlier=earlier)
    versions = read_frozen(folder).versions
    document = document_of(study, analysis, versions)
    lines = [
        *analysis_lines(study, analysis),
        *by_first_version(root, study, folder, versions, places, earlier),
    ]
    write_json(folder / f"{ANALYSIS}.json", document)
    write_text(folder / f"{ANALYSIS}.md", analysis_markdown(study, versions, lines))
    if as_json:
        print(json.dumps(document, indent=2))
    else:
        out = terminal.console(sys.stdout)
        for line in lines:
            out.print(line, soft_wrap=True, markup=False)
    return 1 if analysis.verdict == "can't tell" else 0


@plan.command("pack")
@STUDY
@click.option("--out", type=PATH, metavar="FILE.zip", help="Where to write.  [default: FOLDER.zip]")
def pack(folder: Path, out: Path | None) -> int:
    """Pack a study that is frozen and analysed, with its runs, for somebody who repeats it."""
    root = root_folder()
    study = read_study(root, folder)
    target = out or folder.resolve().with_name(f"{folder.resolve().name}.zip")
    packed, warnings = pack_study(root, study, folder, read_frozen(folder).versions)
    write_bytes(target, packed)
    terminal.complain(warnings)
    print(f"{target}: hand it over; ./lab plan repeat {target.name} repeats it")
    return 0


@plan.command("repeat")
@click.argument("target", metavar="STUDY.zip", type=PATH, callback=folder_of)
@click.option(
    "--again",
    type=Runs(),
    default=2,
    show_default=True,
    help="Run this many of its runs again, and compare the bytes.",
)
@click.option(
    "--fresh-seeds",
    type=click.IntRange(2, 1000),
    metavar="N",
    help="Run each trial with N new seeds, too, and judge them by the plan's rule.",
)
@click.option(
    "--out",
    type=PATH,
    metavar="DIR",
    help="Folder for the runs; what it holds stays.  [default: STUDY-again, next to it]",
)
@click.option(
    "--jobs", type=click.IntRange(1, 1024), help="Runs in parallel.  [default: one per CPU]"
)
@AS_JSON
def repeat(
    target: Path,
    again: int,
    fresh_seeds: int | None,
    out: Path | None,
    jobs: int | None,
    as_json: bool,
) -> int:
    """Repeat somebody's study, and print which badges of ACM and USENIX a machine can vouch for.

    It is read as data: nothing in it is executed, and its runs are planned here, from a lab's trials and checked settings.
    Exit status: 0 if all that was looked at is well, 1 otherwise.
    """
    root = root_folder()
    place = (out or target.resolve().with_name(f"{target.resolve().stem}-again")).absolute()
    with opened_artefact(target) as (folder, refused):
        terminal.complain(refused)
        study = read_study(root, folder)
        analysis = analyse(root, study, folder)
        unusable = len(refused) + sum(line.startswith("not used: ") for line in analysis.remarks)
        authors, consistent = compare_analysis(folder, analysis)
        evidence = Evidence(
            study, read_frozen(folder).versions, analysis, unusable, authors, consistent
        )
        with Virtual.open(Virtual.name, study.lab, root) as backend:
            batch = open_batch(root, study.lab, place, backend, wall_limit_s=REPEAT_WALL_S)
            evidence = _run_again(root, folder, evidence, batch, again, jobs, as_json)
            evidence = _run_fresh(root, evidence, batch, fresh_seeds, jobs, as_json)
    _print_repeated(evidence, as_json)
    return 0 if all(line.mark == "x" for line in checklist(evidence)[:4]) else 1


def _run_again(
    root: Path,
    folder: Path,
    evidence: Evidence,
    batch: Batch,
    wanted: int,
    jobs: int | None,
    quiet: bool,
) -> Evidence:
    # What lies there from an earlier time stays, and proves nothing now.
    batch = replace(batch, out=new_folder(batch.out))
    chosen, refused = [], []
    for run in runs_to_repeat(evidence.analysis, wanted):
        if why := why_not_again(root, folder, run, batch):
            refused.append(f"{run.listed.name} can't be run again here: {why}")
        else:
            chosen.append(
                (
                    run,
                    job_again(
                        evidence.study, batch, run.listed.trial, run.listed.seed, run.listed.setting
                    ),
                )
            )
    _, failures = measure_jobs([job for _, job in chosen], jobs, quiet)
    refused += [str(failure) for failure in failures]
    done = [(run, job) for run, job in chosen if is_finished(job.folder)]
    same = sum(is_same(root, run, job) for run, job in done)
    place = str(terminal.relative(batch.out)) if done else ""
    refused = list(dict.fromkeys(refused))
    return replace(evidence, again=len(done), same=same, refused=tuple(refused), place=place)


def _run_fresh(
    root: Path, evidence: Evidence, batch: Batch, seeds: int | None, jobs: int | None, quiet: bool
) -> Evidence:
    if seeds is None:
        return evidence
    study = fresh_study(evidence.study, seeds)
    work = [
        job_again(study, batch, trial, seed, setting.letter)
        for setting in study.settings
        for trial, seed in study.planned(setting)
    ]
    _, failures = measure_jobs(work, jobs, quiet)
    terminal.complain(failures)
    fresh = analyse(root, study, batch.out, places=[batch.out / study.lab.name])
    return replace(evidence, fresh=fresh.verdict, fresh_runs=len(fresh.runs))


def _print_repeated(evidence: Evidence, as_json: bool) -> None:
    groups = groups_of(evidence)
    if as_json:
        document = {
            "verdict": evidence.analysis.verdict,
            "authors_verdict": evidence.authors,
            **{name: [asdict(line) for line in lines] for name, lines in groups},
        }
        print(json.dumps(document, indent=2))
        return
    out = terminal.console(sys.stdout)
    for line in repeated_lines(evidence):
        out.print(line, soft_wrap=True, markup=False)
