"""`lab plan`: a study of one's own, planned before its runs, frozen, and analysed as planned."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console

from measuretwice.base.errors import UserError
from measuretwice.base.files import write_json, write_text
from measuretwice.cli import terminal
from measuretwice.cli.options import AS_JSON, PATH, root_folder
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
    LIMIT_CONFIDENCE,
    Analysis,
    PowerPlan,
    analyse,
    document_of,
    plan_power,
    power_of_study,
)
from measuretwice.course.study_runs import (
    FoundRun,
    LineChange,
    PlanDifference,
    Version,
    commands_for,
    difference_of,
    freeze,
    measured_runs,
    read_frozen,
    read_pilot,
    runs_elsewhere,
    seeds_used_twice,
)
from measuretwice.report.markdown import fence, markdown_text
from measuretwice.stats.two_samples import MOST_VALUES

ANALYSIS = "analysis"
STUDY = click.argument("folder", metavar="FOLDER", type=PATH)


class InOrder(click.Group):
    """A group that lists its commands in the order in which a study needs them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(cls=InOrder)
def plan() -> None:
    """Plan a study of your own before its runs, freeze the plan, and analyse the runs as planned.

    FOLDER is the study's: plan.toml, and the runs that ./lab run --out puts into its pilots/ and runs/.
    """


@plan.command()
@STUDY
@click.option("--lab", metavar="LAB", help="The lab that the study is about.")
def new(folder: Path, lab: str | None) -> int:
    """Begin a plan: FOLDER/plan.toml, with a line for each thing to decide."""
    path = begin_study(root_folder(), folder, lab)
    for line in (
        f"{path}: fill it in with any editor. Then:",
        f"  ./lab run LAB --trial N --seed 1 --repeat 5 --out {folder / PILOTS}   makes pilots",
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

    PILOT is a run's folder, a folder of runs, or a recorded set of sample-data/; only trials 1 to 5 of it as PILOT:1-5.
    Given a study's folder alone, all is taken from its plan.toml and its pilots/.
    """
    root = root_folder()
    if len(pilots) == 1 and (Path(pilots[0]) / PLAN_FILE).is_file() and quantity is None:
        planned = _power_of_folder(root, Path(pilots[0]))
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
    of = " of the logarithm" if logs else ""
    headings = ["pilot", "runs", f"mean{of}", f"deviation{of}", "its upper limit"]
    rows = [
        [pilot.name, str(pilot.n), f"{pilot.mean:.5g}", f"{pilot.deviation:.3g}", f"{limit:.3g}"]
        for pilot, limit in zip(planned.pilots, planned.limits, strict=True)
    ]
    terminal.print_rows(out, headings, rows, numeric=range(1, 5))
    out.print(f"\nRuns {'of each setting ' if len(planned.pilots) == 2 else ''}{_to_see(planned)}:")
    counts = [
        [f"{100 * need.power:g} %", _count(need.by_pilots), _count(need.by_limits)]
        for need in planned.needed
    ]
    terminal.print_rows(
        out, ["power", "by the pilots' deviations", "by the upper limits"], counts, numeric=range(3)
    )
    out.print()
    for line in _assumptions(planned):
        out.print(line, soft_wrap=True)


def _count(number: int | None) -> str:
    return f"over {MOST_VALUES}" if number is None else str(number)


def _amount(planned: PowerPlan) -> str:
    if planned.compare == "ratio":
        return f"a factor of {planned.matters:g}"
    return f"{planned.matters:g} {planned.unit}".rstrip()


def _to_see(planned: PowerPlan) -> str:
    if planned.equal:
        return (
            f"to show that the two are the same to within {_amount(planned)}, if they are the same"
        )
    if planned.compare == "mean":
        return f"to tell the mean from a limit that is {_amount(planned)} away"
    return f"to see a difference of {_amount(planned)}, if there is one"


def _assumptions(planned: PowerPlan) -> list[str]:
    test = "Student's" if len(planned.pilots) == 1 else "Welch's"
    lines = [
        f"Power is the probability that the {100 * planned.confidence:g} % interval ({test} t) leaves the limit of your rule "
        "out, if the truth is that far from the limit.",
        "Assumed: runs are independent, each with its own seed; their values"
        f"{' are, as logarithms,' if planned.compare == 'ratio' else ' are'} near a normal distribution; later runs scatter as "
        f"the pilots do; {'both settings have' if len(planned.pilots) == 2 else 'there are'} as many runs.",
        f"The upper limit: the true deviation is below it with {100 * LIMIT_CONFIDENCE:g} % confidence. With few pilots plan by it.",
    ]
    if planned.is_without_scatter:
        lines.append(
            "The pilots don't scatter at all: a seed changes nothing in these settings, so one run is worth as much as many, and "
            "this calculation has nothing to go by."
        )
    elif any(pilot.deviation == 0 for pilot in planned.pilots):
        lines.append("One pilot doesn't scatter at all: a seed changes nothing in its settings.")
    return lines


@plan.command("freeze")
@STUDY
def freeze_plan(folder: Path) -> int:
    """Check that the plan is complete, and keep it as it is, with a digest, the date and the runs that exist already.

    A later freeze adds a version, and the first one stays. Exit status: 2 if something is missing.
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
        out.print(
            f"{folder / PLAN_FILE}: frozen already, {_when(last)}, SHA-256 {last.sha256}",
            soft_wrap=True,
        )
        return 0
    again = f" as version {number}; version 1 stays" if number > 1 else ""
    lines = [
        f"{folder / PLAN_FILE}: frozen{again}, {_when(version)}",
        f"SHA-256 {version.sha256}",
        "Give this digest to somebody who keeps it, because a file of your own can't prove its date.",
        "",
        f"The rule: {study.rule.in_words}.",
        f"You would give the claim up if: {study.refuted_by}",
        f"The smallest difference that matters: {study.matters:g} {study.quantity.unit}".rstrip(),
        "",
        *_existing(root, study, version.runs),
        *_planned_power(root, study, folder),
        "",
        "The plan's runs:",
        *(f"  {command}" for command in commands_for(study, folder / RUNS)),
        f"Then ./lab plan analyse {folder}",
    ]
    for line in lines:
        out.print(line, soft_wrap=True)
    return 0


def _when(version: Version) -> str:
    return f"{version.moment:%Y-%m-%d %H:%M:%S} UTC"


def _existing(root: Path, study: Study, runs: Sequence[FoundRun]) -> list[str]:
    """Lines on the data that exist before the freeze."""
    pilots = [run for run in runs if run.place == "pilot"]
    early = [run for run in runs if run.place == "run"]
    own, recorded = runs_elsewhere(root, study)
    lines = [f"Pilots: {_by_setting(pilots)}." if pilots else "Pilots: none."]
    if early:
        lines.append(
            f"Made before the plan, in {RUNS}/: {_by_setting(early)}. The analysis leaves them out."
        )
    if own or recorded:
        lines.append(
            f"With the same settings there are {terminal.count(own, 'run')} in the checkout's runs/ and "
            f"{terminal.count(recorded, 'recorded run')} in sample-data/. State whether you have seen their values."
        )
    if twice := seeds_used_twice(study, runs):
        lines.append(
            f"Pilots have seeds of the plan ({', '.join(map(str, twice))}): those runs would be the pilots again, byte for byte. "
            "Choose another first_seed."
        )
    return lines


def _by_setting(runs: Sequence[FoundRun]) -> str:
    counts = Counter(run.setting for run in runs)
    words = [f"{counts[letter]} of {letter}" for letter in ("A", "B") if counts[letter]]
    return ", ".join(words + [f"{counts['']} of neither setting"] * bool(counts[""]))


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
    each = " of each setting" if len(study.settings) == 2 else ""
    return [f"By the pilots, {min(counts)} runs{each} have a power of {100 * power:.0f} %."]


@plan.command("diff")
@STUDY
def diff_plan(folder: Path) -> int:
    """Say what was changed in the plan since it was frozen, line by line, and which runs were made before it.

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
    for line in _difference_lines(difference):
        out.print(line, soft_wrap=True)
    return 0 if difference.is_unchanged else 1


def _difference_lines(difference: PlanDifference) -> list[str]:
    first = difference.versions[0]
    lines = []
    if difference.changes:
        lines += [
            f"Changed since it was frozen, {_when(first)}:",
            *_change_lines(difference.changes),
        ]
    else:
        lines.append(f"The same as it was frozen, {_when(first)}. SHA-256 {first.sha256}")
    if len(difference.versions) > 1:
        for number, (version, step) in enumerate(
            zip(difference.versions[1:], difference.steps, strict=False), 2
        ):
            lines += [f"Frozen again as version {number}, {_when(version)}:", *_change_lines(step)]
        if difference.steps[-1]:
            lines += ["Changed since, and not frozen:", *_change_lines(difference.steps[-1])]
    lines += [
        f"Version {number} in frozen.json isn't the text of its digest: somebody has edited it."
        for number in difference.damaged
    ]
    for place, name in (("pilot", PILOTS), ("run", RUNS)):
        if runs := [run for run in difference.early if run.place == place]:
            lines.append(f"In {name}/, made before the plan was frozen: {_by_setting(runs)}")
            lines += [f"  {run.name}" for run in runs]
    if not difference.early:
        lines.append("No run in the study's folder was made before the plan was frozen.")
    return lines


def _change_lines(changes: Sequence[LineChange]) -> list[str]:
    lines = []
    for change in changes:
        lines.append(f"  line {change.line}")
        lines += [f"    - {line}" for line in change.before]
        lines += [f"    + {line}" for line in change.after]
    return lines


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
    "--earlier", is_flag=True, help="Take runs too that were made before the plan was frozen."
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
        *_by_first_version(root, study, folder, versions, places, earlier),
    ]
    write_json(folder / f"{ANALYSIS}.json", document)
    write_text(folder / f"{ANALYSIS}.md", _as_markdown(study, versions, lines))
    if as_json:
        print(json.dumps(document, indent=2))
    else:
        out = terminal.console(sys.stdout)
        for line in lines:
            out.print(line, soft_wrap=True)
    return 1 if analysis.verdict == "can't tell" else 0


def analysis_lines(study: Study, analysis: Analysis) -> list[str]:
    """Return an analysis in words: the settings, the estimate with its interval, the rule, the verdict, and what differs
    from the plan."""
    unit = f" {study.quantity.unit}" if study.quantity.unit else ""
    rule = study.rule
    scatter = "factor" if rule.compare == "ratio" else "deviation"
    mean = "geometric mean" if rule.compare == "ratio" else "mean"
    lines = [study.question, f"{study.quantity.text}{f',{unit}' if unit else ''}:"]
    for sample in analysis.samples:
        spread = "" if sample.deviation is None else f", {scatter} {sample.deviation:.3g}"
        lines.append(f"  {sample.name}: n = {sample.n}, {mean} {sample.mean:.5g}{spread}")
    if analysis.estimate is not None:
        shown = "" if rule.compare == "ratio" else unit
        interval = "no interval"
        if analysis.low is not None and analysis.high is not None:
            interval = f"{100 * rule.confidence:g} % interval {analysis.low:.5g} to {analysis.high:.5g}{shown}"
        lines.append(f"{rule.estimate} = {analysis.estimate:.5g}{shown}, {interval}")
    because = f": {analysis.because}" if analysis.because else ""
    counts = " and ".join(str(sample.n) for sample in analysis.samples)
    lines += [
        f"The rule: {rule.in_words}.",
        f"Verdict: {analysis.verdict}{because} (n = {counts})",
        *(f"Note: {remark}" for remark in analysis.remarks),
    ]
    return lines


def _by_first_version(
    root: Path,
    study: Study,
    folder: Path,
    versions: Sequence[Version],
    places: Sequence[Path],
    earlier: bool,
) -> list[str]:
    """What the plan as it was first frozen says of the same runs, where it was changed since."""
    if not versions or versions[0].text == study.text:
        return []
    first, _ = parse_study(root, versions[0].text)
    if first is None:
        return ["By the plan as it was first frozen: it can't be read any more"]
    analysis = analyse(root, first, folder, places=places, earlier=earlier)
    because = f": {analysis.because}" if analysis.because else ""
    return [f"By the plan as it was first frozen: {analysis.verdict}{because}"]


def _as_markdown(study: Study, versions: Sequence[Version], lines: Sequence[str]) -> str:
    frozen = (
        f"Plan frozen {_when(versions[0])}, SHA-256 {versions[0].sha256}"
        if versions
        else "Plan not frozen"
    )
    return f"# {markdown_text(study.question)}\n\n{frozen}\n\n{fence(chr(10).join(lines))}\n"
