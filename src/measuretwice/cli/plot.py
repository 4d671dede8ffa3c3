"""`lab plot`: from finished runs to figures, each with its numbers beside it."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from measuretwice.base.errors import UserError
from measuretwice.cli import terminal
from measuretwice.figures import rows as plot_data
from measuretwice.figures.rows import FIGURES, NamedSet, ParameterNames, Published
from measuretwice.lab import FigureOf, Lab, ModelUse, find_labs, load_lab, read_lab
from measuretwice.runs import recorded
from measuretwice.runs.result import DONE, Result, read_result


def plot_command(
    root: Path,
    targets: Sequence[str],
    *,
    figures: Sequence[str],
    seed: int,
    out: Path | None,
    as_json: bool,
) -> int:
    """Draw, write and say what was written; return 0. Whatever can't be drawn is a UserError."""
    labs = {name: read_lab(folder) for name, folder in find_labs(root).items()}
    meant = [labs[target] for target in targets if target in labs] or list(labs.values())
    _refuse_unknown(figures, list(dict.fromkeys(f for lab in meant for f in _known(lab))))
    sets = _choose(root, targets, seed)
    lab = _lab_of(root, sets)
    _refuse_unknown(figures, _known(lab))
    if lab.file.figures and not lab.file.model:
        return _plot_declared(lab, sets, figures, out or _folder(root, lab), as_json)
    use = _model_of(lab)
    names = ParameterNames(mss=use.mss, rtt=use.rtt, loss=use.loss)
    published = _published(lab.folder / "published.csv")
    out = out or _folder(root, lab)
    files = [
        file
        for figure in _figures(figures, len(sets))
        for file in _write(figure, sets, published, names, out)
    ]
    if as_json:
        document: dict[str, Any] = {
            "lab": lab.name,
            "files": [str(file) for file in files],
            "sets": plot_data.data_for_interactive(sets, names),
            "published": [asdict(value) for value in published],
        }
        print(json.dumps(document, indent=2, allow_nan=False))
    else:
        for file in files:
            print(file)
    return 0


def _known(lab: Lab) -> list[str]:
    """The figures that a lab's runs can be drawn as."""
    return [figure.id for figure in lab.file.figures] + ([*FIGURES] if lab.file.model else [])


def _refuse_unknown(figures: Sequence[str], known: Sequence[str]) -> None:
    if unknown := [figure for figure in figures if figure not in known]:
        raise UserError(f"--figure {unknown[0]}: expected one of {', '.join(known)}")


def _folder(root: Path, lab: Lab) -> Path:
    return terminal.default_out(root) / "figures" / lab.name


def _plot_declared(
    lab: Lab, sets: Sequence[NamedSet], figures: Sequence[str], out: Path, as_json: bool
) -> int:
    """Draw the figures that lab.toml declares: those asked for, or all that these runs allow."""
    results = [result for _, own in sets for result in own]
    files: list[Path] = []
    shown: dict[str, Any] = {}
    problems = []
    for figure in lab.file.figures:
        if figures and figure.id not in figures:
            continue
        try:
            rows = draw_declared(lab, figure, results, out)
        except UserError as error:
            if figures:
                raise
            problems.append(str(error))
            continue
        files += [out / f"{figure.id}.svg", out / f"{figure.id}.csv"]
        shown[figure.id] = rows
    if not files:
        raise UserError(problems[0])
    if as_json:
        names = [str(file) for file in files]
        print(json.dumps({"lab": lab.name, "files": names, "figures": shown}, indent=2))
    else:
        print("\n".join(map(str, files)))
    for problem in problems:
        print(problem, file=sys.stderr)
    return 0


def draw_declared(
    lab: Lab, figure: FigureOf, results: Sequence[Result], out: Path
) -> list[dict[str, Any]]:
    """Write one of a lab's own figures and its rows; return these."""
    from measuretwice.figures import over_time as plot_flows
    from measuretwice.figures import style as plot_style

    drawn, rows = plot_flows.draw(lab, figure, results)
    try:
        plot_style.save_svg(drawn, out / f"{figure.id}.svg")
        (out / f"{figure.id}.csv").write_text(plot_data.csv_text(rows), encoding="utf-8")
    except OSError as error:
        raise UserError(
            f"{out}: can't be written to ({error.strerror}): choose another folder with --out"
        ) from None
    return rows


def _figures(wanted: Sequence[str], sets: int) -> list[str]:
    """The figures that were named; else all, stages only where there are several."""
    return list(dict.fromkeys(wanted)) or [f for f in FIGURES if f != "stages" or sets > 1]


def _choose(root: Path, targets: Sequence[str], seed: int) -> list[NamedSet]:
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
            sets.append((name, _own_runs(root, load_lab(root, name), seed)))
            continue
        title, folder = _titled(target)
        if not folder.is_dir():
            known = ", ".join(labs) or "none"
            raise UserError(f"{folder}: no such folder of runs, and no lab; labs are {known}")
        if recorded := _recorded(root, folder, title):
            sets += recorded
            continue
        results = _read(_finished(folder.absolute()))
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
        document = recorded.read_set(folder)
        lab = load_lab(root, document["runs"][0]["lab"])
        return [(title or str(document["title"]), recorded.results_of(lab, folder))]
    steps = []
    for path in sorted(folder.glob(f"*/{recorded.SET_FILE}")):
        if recorded.read_set(path.parent).get("step"):
            steps += _recorded(root, path.parent, None)
    return steps


def _titled(target: str) -> tuple[str | None, Path]:
    """TITLE=RUN as both; a folder may have '=' in its own name."""
    title, equals, path = target.partition("=")
    return (title, Path(path)) if equals and not Path(target).exists() else (None, Path(target))


def _finished(folder: Path) -> list[Path]:
    """The finished runs that a folder is or holds; hidden folders are at work still."""
    if (folder / DONE).is_file():
        return [folder]
    runs = (done.parent for done in folder.glob(f"**/{DONE}"))
    return sorted(
        run
        for run in runs
        if not any(part.startswith(".") for part in run.relative_to(folder).parts)
    )


def _read(runs: Sequence[Path]) -> list[Result]:
    """The runs' results."""
    return [result for run in runs if (result := read_result(run))]


def _own_runs(root: Path, lab: Lab, seed: int) -> list[Result]:
    """A lab's runs with its own settings and this seed, the newest of each trial; says what not.

    Another set-up is another experiment: with --set, of a pitfall, or with another seed, a run is
    plotted only where its folder is named.
    """
    if not lab.file.figures:
        _model_of(lab)
    folder = terminal.default_out(root) / lab.name
    runs = _finished(folder) if folder.is_dir() else []
    if not runs:
        raise UserError(f"{lab.name}: no finished runs in {folder}; run ./lab run {lab.name} first")
    newest: dict[int, tuple[int, Result]] = {}
    left_out: Counter[str] = Counter()
    for result in _read(runs):
        if reason := _why_not(lab, result, seed):
            left_out[reason] += 1
            continue
        trial = result.trial
        finished_ns = (result.place / DONE).stat().st_mtime_ns
        left_out["older"] += trial in newest
        if trial not in newest or finished_ns > newest[trial][0]:
            newest[trial] = finished_ns, result
    said = ", ".join(f"{count} {reason}" for reason, count in left_out.items() if count)
    if not newest:
        raise UserError(
            f"{lab.name}: none of its {len(runs)} finished runs has the lab's own settings and seed "
            f"{seed} ({said}); run ./lab run {lab.name} --seed {seed} first, or name folders of runs"
        )
    notes = [f"left out of {len(runs)} runs: {said}"] if said else []
    if missing := len(set(lab.trials) - set(newest)):
        notes.append(f"{missing} of {len(lab.trials)} trials have not been run")
    if notes:
        print("; ".join(notes), file=sys.stderr)
    return [newest[trial][1] for trial in sorted(newest)]


def _why_not(lab: Lab, result: Result, seed: int) -> str | None:
    """Why a run isn't one of the lab as it stands; None where it is."""
    trial = lab.trials.get(result.trial)
    if result.pitfall is not None:
        return "of a pitfall"
    if result.seed != seed:
        return "with another seed"
    if trial is None or result.params != {**lab.defaults(), **trial.set}:
        return "with other settings"
    return None


def _lab_of(root: Path, sets: Sequence[NamedSet]) -> Lab:
    """The one lab whose runs these are."""
    known = sorted({str(result.lab) for _, results in sets for result in results})
    if len(known) != 1:
        raise UserError(f"these runs are of {' and '.join(known)}: plot one lab at a time")
    return load_lab(root, known[0])


def _model_of(lab: Lab) -> ModelUse:
    if lab.file.model is None:
        raise UserError(f"{lab.name}: its lab.toml has neither [model] nor [[figures]]")
    return lab.file.model


def _published(path: Path) -> list[Published]:
    """A lab's published values, where it has any."""
    if not path.is_file():
        return []
    name = "/".join(path.parts[-2:])
    return plot_data.read_published(path.read_text(encoding="utf-8", errors="replace"), name)


def _write(
    figure: str,
    sets: Sequence[NamedSet],
    published: Sequence[Published],
    names: ParameterNames,
    out: Path,
) -> list[Path]:
    """Write a figure and its rows; return both files."""
    from measuretwice.figures import against_model as plot
    from measuretwice.figures import style as plot_style

    picture, table = out / f"{figure}.svg", out / f"{figure}.csv"
    drawn = plot.draw(figure, sets, published, names)
    rows = [
        {"set": title, **row}
        for title, results in sets
        for row in plot_data.rows_for_table(results, names)
    ]
    try:
        plot_style.save_svg(drawn, picture)
        table.write_text(plot_data.csv_text(rows), encoding="utf-8")
    except OSError as error:
        raise UserError(
            f"{out}: can't be written to ({error.strerror}): choose another folder with --out"
        ) from None
    return [picture, table]
