"""`lab plot`: from finished runs to figures, each with its numbers beside it."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from measuretwice.base.errors import UserError
from measuretwice.cli import terminal
from measuretwice.cli.options import PATH, SEED, root_folder
from measuretwice.cli.over_time import open_in_browser, over_time_command, titled
from measuretwice.figures.files import figures_of, model_figures, published_values, write_figure
from measuretwice.figures.rows import NamedSet, ParameterNames, Row, set_data
from measuretwice.lab import Lab, find_labs, load_lab, read_lab
from measuretwice.runs import recorded
from measuretwice.runs.folder import DONE, finished_in
from measuretwice.runs.result import Result, lab_named, read_result


@click.command()
@click.argument("targets", metavar="LAB|RUN...", nargs=-1, required=True)
@click.option(
    "--figure",
    "figures",
    multiple=True,
    metavar="ID",
    help="For a lab with a model, measured-against-model, window-against-loss or stages; otherwise one of "
    "its lab.toml.  [default: all that apply]",
)
@click.option(
    "--seed",
    type=SEED,
    help="For LAB: the runs with this seed.  [default: the one that most of them have]",
)
@click.option(
    "--out",
    type=PATH,
    help="Folder for figures.  [default: in the checkout runs/figures/LAB/, or .../over-time/]",
)
@click.option(
    "--over-time",
    is_flag=True,
    help="A run's window, round-trip time, queue and losses; two or three runs are shown side by side.",
)
@click.option("--node", metavar="NODE", help="With --over-time: only this node's connections.")
@click.option(
    "--text",
    "as_text",
    is_flag=True,
    help="With --over-time, print it as text too, even if the output isn't a terminal.",
)
@click.option("--open", "open_it", is_flag=True, help="Open the figures in the browser.")
@click.option("--json", "as_json", is_flag=True, help="The rows, as one JSON document on stdout.")
def plot(
    targets: Sequence[str],
    figures: Sequence[str],
    seed: int | None,
    out: Path | None,
    over_time: bool,
    node: str | None,
    as_text: bool,
    open_it: bool,
    as_json: bool,
) -> int:
    """Draw finished runs, as SVG with a CSV of the numbers: compared with the lab's model, or
    in the figures that its lab.toml has; or up to three runs over time.

    LAB means its runs with the lab's own settings, the newest of each trial; if there are none, the newest of each trial as it is.
    RUN is the folder of a run, or a folder of runs. Each folder of runs is a panel of the
    figure called stages, or has figures of its own; TITLE=RUN gives it a title.

    With --over-time, RUN (with or without a title) may also be a live lab's folder, or a folder of your own files.
    Both need samples of ss, each after a line with its time, as in '# t=UNIX-TIME'.
    """
    root = root_folder()
    if over_time:
        if figures:
            raise UserError("--over-time and --figure: one of the two")
        return over_time_command(
            root, targets, node=node, out=out, as_text=as_text, open_it=open_it, as_json=as_json
        )
    if node or as_text:
        raise UserError("--node and --text go with --over-time")
    if figures:
        labs = {name: read_lab(folder) for name, folder in find_labs(root).items()}
        named_labs = [labs[target] for target in targets if target in labs] or list(labs.values())
        _refuse_unknown(
            figures, list(dict.fromkeys(f for lab in named_labs for f in figures_of(lab)))
        )
    sets = _choose(root, targets, seed)
    lab = _lab_of(root, sets)
    if figures:
        _refuse_unknown(figures, figures_of(lab))
    _must_have_figures(lab)
    out = out or terminal.default_out(root) / "figures" / lab.name
    if lab.file.model:
        document = _plot_against_model(lab, sets, figures, out)
    else:
        document = _plot_declared(lab, sets, figures, out)
    if as_json:
        print(json.dumps(document, indent=2, allow_nan=False))
    else:
        print("\n".join(document["files"]))
    for file in document["files"]:
        if open_it and file.endswith(".svg"):
            open_in_browser(Path(file))
    return 0


def _refuse_unknown(figures: Sequence[str], names: Sequence[str]) -> None:
    if unknown := [figure for figure in figures if figure not in names]:
        raise UserError(f"--figure {unknown[0]}: expected one of {', '.join(names)}")


def _plot_against_model(
    lab: Lab, sets: Sequence[NamedSet], figures: Sequence[str], out: Path
) -> dict[str, Any]:
    """Draw the figures that were named; else all, those of several sets only where there are such."""
    names = list(dict.fromkeys(figures)) or [
        name for name, kind in model_figures().items() if len(sets) > 1 or not kind.of_several_sets
    ]
    for name in names:
        write_figure(lab, name, sets, out)
    of_model = ParameterNames.of(lab)
    return {
        "lab": lab.name,
        "files": _files(out, names),
        "sets": [asdict(set_data(title, results, of_model)) for title, results in sets],
        "published": [asdict(value) for value in published_values(lab)],
    }


def _plot_declared(
    lab: Lab, sets: Sequence[NamedSet], figures: Sequence[str], out: Path
) -> dict[str, Any]:
    """Draw the figures that lab.toml declares: those asked for, or all that these runs allow.

    Of several sets each has its own, in a folder of its title: their runs are never pooled.
    """
    shown: dict[str, list[Row]] = {}
    problems: list[str] = []
    for folder, (title, results) in zip(_folders([title for title, _ in sets]), sets, strict=True):
        _refuse_mixed(results)
        several = len(sets) > 1
        for name in figures_of(lab):
            if figures and name not in figures:
                continue
            place = out / folder if several else out
            try:
                rows = write_figure(
                    lab, name, [(title, results)], place, title if several else None
                )
            except UserError as error:
                if figures:
                    raise
                problems.append(f"{title}: {error}" if several else str(error))
            else:
                shown[f"{folder}/{name}" if several else name] = rows
    # What these runs don't allow, and nobody asked for, is nothing to speak of.
    if not shown:
        raise UserError(problems[0])
    return {"lab": lab.name, "files": _files(out, shown), "figures": shown}


def _folders(titles: Sequence[str]) -> list[str]:
    """A folder's name for each set's title, no two the same."""
    names: list[str] = []
    for title in titles:
        name = re.sub(r"[^A-Za-z0-9]+", "-", title).strip("-").lower()[:60] or "set"
        names.append(name if name not in names else f"{name}-{len(names) + 1}")
    return names


def _refuse_mixed(results: Sequence[Result]) -> None:
    """Runs of one trial with different settings can't stand in one figure, at one place in it."""
    first: dict[int, Result] = {}
    for result in results:
        other = first.setdefault(result.trial, result)
        if result.params != other.params:
            names = dict.fromkeys([*other.params, *result.params])
            differ = [name for name in names if other.params.get(name) != result.params.get(name)]
            raise UserError(
                f"trial {result.trial} is there with different settings ({', '.join(differ)}), which "
                "one figure can't show: give each a title, A=RUN B=RUN, or plot two --over-time"
            )


def _files(out: Path, names: Iterable[str]) -> list[str]:
    """The files that each figure has become."""
    return [str(out / f"{name}.{ending}") for name in names for ending in ("svg", "csv")]


def _choose(root: Path, targets: Sequence[str], seed: int | None) -> list[NamedSet]:
    """The runs that the arguments mean, as sets with a title each.

    A lab's name means its runs as the lab has them; TITLE=RUN or a folder that holds runs, all
    of these; a folder of recorded sets, its steps from the first try to the result. Single runs, as a shell's pattern lists them, are one set together.
    """
    labs = find_labs(root)
    by_folder = {folder.name: name for name, folder in labs.items()}
    sets: list[NamedSet] = []
    single: list[Result] = []
    for target in targets:
        name = by_folder.get(target, target)
        if name in labs:
            sets.append((name, _runs_of(root, load_lab(root, name), seed)))
            continue
        title, folder = titled(target)
        if not folder.is_dir():
            names = ", ".join(labs) or "none"
            raise UserError(f"{folder}: no such folder of runs, and no lab; labs are {names}")
        if recorded_sets := _recorded(root, folder, title):
            sets += recorded_sets
            continue
        results = _read(root, finished_in(folder.absolute()))
        if not results:
            raise UserError(f"{folder}: holds no finished run; run ./lab run LAB first")
        if title is None and (folder / DONE).is_file():
            if not single:
                sets.append(("single runs", single))
            single += results
        else:
            sets.append((title or folder.absolute().name, results))
    return sets


def _recorded(root: Path, folder: Path, title: str | None) -> list[NamedSet]:
    """A recorded set, or of a folder of them those that are steps to the result, in order."""
    if (folder / recorded.SET_FILE).is_file():
        recorded_set = recorded.read_set(folder)
        lab = load_lab(root, recorded_set.runs[0].result.lab)
        return [(title or recorded_set.title, recorded.results_of(lab, folder))]
    steps = []
    for place in recorded.set_folders(folder):
        if recorded.read_set(place).step:
            steps += _recorded(root, place, None)
    return steps


def _read(root: Path, runs: Sequence[Path]) -> list[Result]:
    """The runs' results, each of them one that its lab can have."""
    labs = find_labs(root)
    results = []
    for run in runs:
        # Of one that can't be read any lab says why.
        name = lab_named(run)
        lab = load_lab(root, name if name in labs else next(iter(labs)))
        if result := read_result(run, lab):
            results.append(result)
    return results


def _runs_of(root: Path, lab: Lab, seed: int | None) -> list[Result]:
    """A lab's runs with its own settings and one seed, the newest of each trial; says what not.

    Another set-up is another experiment, and another seed another series: the seed is the one that was named, or that of
    most runs. Where no run has the lab's own settings, the newest of each trial is taken as it is, and that is said.
    """
    _must_have_figures(lab)
    folder = terminal.default_out(root) / lab.name
    runs = _read(root, finished_in(folder)) if folder.is_dir() else []
    if not runs:
        raise UserError(f"{lab.name}: no finished runs in {folder}; run ./lab run {lab.name} first")
    wanted = [result for result in runs if seed in (None, result.seed)]
    if not wanted:
        seeds = ", ".join(map(str, sorted({result.seed for result in runs})))
        raise UserError(
            f"{lab.name}: none of its {len(runs)} runs has seed {seed}; they have {seeds}"
        )
    as_the_lab = [result for result in wanted if not _why_not(lab, result)]
    if as_the_lab and seed is None:
        [(seed, _)] = Counter(result.seed for result in as_the_lab).most_common(1)
    chosen = [result for result in as_the_lab if result.seed == seed] or wanted
    newest = {result.trial: result for result in sorted(chosen, key=_finished_ns)}
    left_out = Counter(
        _why_not(lab, result) or ("older" if result.seed == seed else "with another seed")
        for result in runs
        if result is not newest.get(result.trial)
    )
    reasons = ", ".join(f"{count} {reason}" for reason, count in left_out.items())
    notes = [f"left out of {len(runs)} runs: {reasons}"] if reasons else []
    if as_the_lab:
        if missing := len(set(lab.trials) - set(newest)):
            notes.append(f"{missing} of {len(lab.trials)} trials have not been run")
    else:
        kinds = Counter(_why_not(lab, result) for result in newest.values())
        of = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
        notes = [
            f"{lab.name}: no run has the lab's own settings, so the newest of each trial is drawn as it is: {of}"
        ]
    if notes:
        print("; ".join(notes), file=sys.stderr)
    return [newest[trial] for trial in sorted(newest)]


def _finished_ns(result: Result) -> int:
    return (result.run_dir / DONE).stat().st_mtime_ns


def _why_not(lab: Lab, result: Result) -> str:
    """Return the reason why a run isn't one of the lab as it stands; empty where it is."""
    trial = lab.trials.get(result.trial)
    if result.case is not None:
        return "of a case"
    if result.pitfall is not None:
        return "with a mistake that was staged"
    if trial is None or result.params != {**lab.defaults(), **trial.set}:
        return "with other settings"
    return ""


def _lab_of(root: Path, sets: Sequence[NamedSet]) -> Lab:
    """The one lab whose runs these are."""
    names = sorted({str(result.lab) for _, results in sets for result in results})
    if len(names) != 1:
        raise UserError(f"these runs are of {' and '.join(names)}: plot one lab at a time")
    return load_lab(root, names[0])


def _must_have_figures(lab: Lab) -> None:
    if not lab.file.model and not lab.file.figures:
        raise UserError(f"{lab.name}: its lab.toml has neither [model] nor [[figures]]")
